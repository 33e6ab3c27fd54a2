"""A1-A4 and A17: where people and agents left something outside, and what those who left still hold. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.audit.facts import PersonFacts, PublicRepository, Snapshot
from bot.audit.findings import Finding, Severity, unknown, unread

_NAME = re.compile(r"(?:.*[-_.])?(?:screenshots?|screen-?shots?)(?:[-_.].*)?|assets?-.+|pr-.+|pr\d+.*", re.IGNORECASE)
_MEDIA = re.compile(r".*\.(?:png|jpe?g|gif|webp|bmp|avif|mp4|mov|webm)", re.IGNORECASE)
_PICTURE = re.compile(
    r"!\[[^\]\n]{0,300}\]\s*[(\[]|<img\b|https://(?:github\.com/user-attachments/|(?:private-)?user-images\.githubusercontent\.com/)[^\s)]*"
    r"|https?://[^\s)\"']{1,500}\.(?:png|jpe?g|gif|webp|mp4|mov)\b",
    re.IGNORECASE,
)
LOGGED = ("repo.access", "repo.create")
"""The actions of the audit log that A3 looks at."""


def check_media(snapshot: Snapshot) -> Iterator[Finding]:
    """A1: public repositories and gists of members and of people who left that look like a store of pictures."""
    yield from unread("A1", snapshot.organisation, snapshot.members)
    for person in snapshot.people:
        yield from unread("A1", person.login, person.repositories, person.gists)
        yield from _repositories(person)
        for gist in person.gists.value:
            if any(kind.startswith(("image/", "video/")) for kind in gist.media_types):
                where = f"gist {gist.id} of {person.login}"
                yield Finding("A1", Severity.MEDIUM, where, "is public and holds pictures", _TAKE_DOWN)


_TAKE_DOWN = "Ask its owner to look at it and to delete what belongs to the organisation; it may be cached elsewhere."


def _repositories(person: PersonFacts) -> Iterator[Finding]:
    for one in person.repositories.value:
        name = one.repository.full_name
        if _NAME.fullmatch(name.partition("/")[2]):
            yield Finding("A1", Severity.MEDIUM, name, "is public, and named like a store of pictures", _TAKE_DOWN)
        elif one.paths.value is None or one.paths.fault:
            if one.paths.fault:
                yield unknown("A1", name, one.paths.fault)
        elif _all_media(one):
            yield Finding("A1", Severity.MEDIUM, name, "is public and holds nothing but pictures", _TAKE_DOWN)


def _all_media(one: PublicRepository) -> bool:
    paths = [path for path in one.paths.value or () if "readme" not in path.lower()]
    return bool(paths) and all(_MEDIA.fullmatch(path) for path in paths)


def check_forks(snapshot: Snapshot) -> Iterator[Finding]:
    """A2: forks by people who left, and public forks of private repositories."""
    for facts in snapshot.repositories.value:
        yield from unread("A2", facts.name, facts.forks)
        for fork in facts.forks.value:
            if facts.repository.private and not fork.private:
                evidence = f"{fork.full_name} is a public fork of a private repository"
                yield Finding(
                    "A2", Severity.HIGH, facts.name, evidence, "Ask its owner to delete it, or GitHub's support."
                )
            elif fork.owner.lower() in snapshot.operator.gone:
                evidence = f"{fork.full_name} is a fork of somebody who left"
                yield Finding(
                    "A2", Severity.MEDIUM, facts.name, evidence, "Ask them to delete it, or GitHub's support."
                )


def check_visibility(snapshot: Snapshot) -> Iterator[Finding]:
    """A3: repositories that were made public or private, or that an agent created."""
    yield from unread("A3", f"{snapshot.organisation}, audit log", snapshot.log)
    for entry in snapshot.log.value:
        if entry.action == LOGGED[0]:
            severity = Severity.HIGH if entry.visibility == "public" else Severity.LOW
            evidence = f"{entry.actor or 'somebody'} made it {entry.visibility or 'something else'}"
            yield Finding("A3", severity, entry.repository, evidence, "Make it what it was, unless this was meant.")
        elif entry.action == LOGGED[1] and (
            entry.actor.lower() in snapshot.operator.bots or entry.actor.endswith("[bot]")
        ):
            evidence = f"was created by {entry.actor}"
            yield Finding(
                "A3", Severity.MEDIUM, entry.repository, evidence, "Ask what it is for; agents need no repositories."
            )


def check_departed(snapshot: Snapshot) -> Iterator[Finding]:
    """A4: memberships, collaborations, deploy keys and authorised credentials of people who left."""
    gone, place = snapshot.operator.gone, snapshot.organisation
    reads = (snapshot.members, snapshot.collaborators, snapshot.credentials)
    for what, read in zip(("members", "outside collaborators", "authorised credentials"), reads, strict=True):
        yield from unread("A4", f"{place}, {what}", read)
    for what, logins in (
        ("a member", snapshot.members.value),
        ("an outside collaborator", snapshot.collaborators.value),
    ):
        for login in logins:
            if login.lower() in gone:
                yield Finding(
                    "A4", Severity.HIGH, place, f"{login} left and is {what}", "Take them out of the organisation."
                )
    for credential in snapshot.credentials.value:
        if credential.login.lower() in gone:
            evidence = f"{credential.login} left and has an authorised {credential.kind}"
            yield Finding("A4", Severity.HIGH, place, evidence, "Revoke it under Authentication security.")
    for facts in snapshot.repositories.value:
        yield from unread("A4", f"{facts.name}, deploy keys", facts.keys)
        for key in facts.keys.value:
            if key.added_by.lower() in gone:
                rights = "reads" if key.read_only else "writes"
                evidence = f"deploy key “{key.title}” {rights} and was added by {key.added_by}, who left"
                yield Finding("A4", Severity.HIGH, facts.name, evidence, "Delete the key, or make a new one.")


def check_posts(snapshot: Snapshot) -> Iterator[Finding]:
    """A17: pictures and attachments in what agents wrote in public repositories."""
    for facts in snapshot.repositories.value:
        yield from unread("A17", facts.name, facts.posts)
        for post in facts.posts.value:
            found = _PICTURE.search(post.body) if post.author.lower() in snapshot.operator.bots else None
            if found:
                evidence = f"{post.author} shows {found[0][:80]}"
                yield Finding(
                    "A17", Severity.MEDIUM, post.place, evidence, "Look at the picture; edit the text and delete it."
                )
