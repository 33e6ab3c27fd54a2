"""Makes an event of a payload, by the few fields we use. Nothing raises: what is unknown or unreadable is ignored with a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from bot.domain.event import (
    Actor,
    Closing,
    CommentDeleted,
    Commented,
    Event,
    GroundGained,
    GroundLost,
    Ignored,
    IssueClosed,
    Labelled,
    PullActivity,
    PullChanged,
    Reviewed,
    ReviewState,
    Subject,
    Unlabelled,
)
from bot.domain.ids import CommentId, InstallationId, RepositoryId, ReviewId, UserId
from bot.domain.repository import RepositoryRef
from bot.stages.intake.fields import Fields, Unreadable

PING = "ping"


def extract(event: str, payload: Mapping[str, object]) -> Event:
    """The event in this payload of the event named in the header."""
    reader = _READERS.get(event)
    if reader is None:
        return Ignored(f"we do nothing about `{event[:60]}`")
    fields = Fields(payload)
    try:
        if not fields.has("installation"):
            return Ignored("no installation: this is not a delivery to the App")
        return reader(fields)
    except Unreadable as unreadable:
        return Ignored(f"the payload has no usable `{unreadable.path}`")


def _issues(fields: Fields) -> Event:
    match fields.text("action"):
        case "labeled":
            return _labelled(fields, fields.at("issue"), is_pull=False)
        case "unlabeled":
            return _unlabelled(fields, fields.at("issue"), is_pull=False)
        case "closed" | "deleted" | "transferred" as how:
            subject = _subject(fields, fields.at("issue"), is_pull=False)
            return IssueClosed(subject, _actor(fields.at("sender")), Closing(f"issue_{how}"))
        case action:
            return _no_concern("issues", action)


def _pull_request(fields: Fields) -> Event:
    action = fields.text("action")
    if action == "labeled":
        return _labelled(fields, fields.at("pull_request"), is_pull=True)
    if action == "edited" and not (fields.has("changes") and fields.at("changes").has("base")):
        return Ignored("title and text of a pull request are no part of what was approved")
    if action not in {activity.value for activity in PullActivity}:
        return _no_concern("pull_request", action)
    pull = fields.at("pull_request")
    return PullChanged(
        subject=_subject(fields, pull, is_pull=True),
        actor=_actor(fields.at("sender")),
        activity=PullActivity(action),
        head_sha=pull.at("head").commit("sha"),
        base_ref=pull.at("base").text("ref"),
        merged=pull.get("merged") is True,
    )


def _issue_comment(fields: Fields) -> Event:
    match fields.text("action"):
        case "created":
            return _commented(fields)
        case "edited":
            return Ignored("edits of comments do nothing; a new comment does")
        case "deleted":
            issue = fields.at("issue")
            subject = _subject(fields, issue, is_pull=issue.has("pull_request"))
            return CommentDeleted(subject, _actor(fields.at("sender")), CommentId(fields.at("comment").number("id")))
        case action:
            return _no_concern("issue_comment", action)


def _review(fields: Fields) -> Event:
    action = fields.text("action")
    if action == "edited":
        return Ignored("edits of reviews do nothing; a new review does")
    if action not in {"submitted", "dismissed"}:
        return _no_concern("pull_request_review", action)
    review = fields.at("review")
    state = review.text("state").lower()
    if state not in {each.value for each in ReviewState}:
        return Ignored(f"a review in the unknown state `{state[:40]}`")
    return Reviewed(
        subject=_subject(fields, fields.at("pull_request"), is_pull=True),
        actor=_actor(fields.at("sender")),
        review_id=ReviewId(review.number("id")),
        reviewer=_actor(review.at("user")),
        state=ReviewState(state),
        commit_id=None if review.get("commit_id") is None else review.commit("commit_id"),
        body=review.text_or_empty("body"),
        base_ref=fields.at("pull_request").at("base").text("ref"),
        open=fields.at("pull_request").get("state") == "open",
    )


def _review_comment(fields: Fields) -> Event:
    match fields.text("action"):
        case "created":
            return _on_line(fields)
        case "edited":
            return Ignored("edits of comments do nothing; a new comment does")
        case action:
            return _no_concern("pull_request_review_comment", action)


def _labelled(fields: Fields, thing: Fields, *, is_pull: bool) -> Labelled:
    return Labelled(
        subject=_subject(fields, thing, is_pull=is_pull),
        actor=_actor(fields.at("sender")),
        label=fields.at("label").text("name"),
        title=thing.text("title"),
        body=thing.text_or_empty("body"),
        updated_at=thing.text("updated_at")[:40],
        open=thing.get("state") == "open",
    )


def _unlabelled(fields: Fields, thing: Fields, *, is_pull: bool) -> Unlabelled:
    subject = _subject(fields, thing, is_pull=is_pull)
    return Unlabelled(subject, _actor(fields.at("sender")), fields.at("label").text("name"))


def _repository(fields: Fields) -> Event:
    action = fields.text("action")
    if action in _GOES_ON:
        return Ignored(_GOES_ON[action])
    if action not in _GROUND:
        return _no_concern("repository", action)
    return _lost(fields, (RepositoryId(fields.at("repository").number("id")),), _GROUND[action])


def _installation(fields: Fields) -> Event:
    match fields.text("action"):
        case "deleted":
            return _lost(fields, (), Closing.UNINSTALLED)
        case "suspend":
            return _lost(fields, (), Closing.SUSPENDED)
        case "created":
            return _gained(fields, "repositories")
        case action:
            return _no_concern("installation", action)


def _installation_repositories(fields: Fields) -> Event:
    action, listed = fields.text("action"), fields.get("repositories_removed")
    if action == "added":
        return _gained(fields, "repositories_added")
    if action != "removed":
        return _no_concern("installation_repositories", action)
    if not isinstance(listed, list) or not listed:
        raise Unreadable("repositories_removed")
    removed = [Fields(one, "repositories_removed").number("id") for one in listed]
    return _lost(fields, tuple(RepositoryId(number) for number in removed), Closing.REMOVED)


def _lost(fields: Fields, repositories: tuple[RepositoryId, ...], why: Closing) -> GroundLost:
    installation = InstallationId(fields.at("installation").number("id"))
    return GroundLost(installation, repositories, _actor(fields.at("sender")), why)


def _gained(fields: Fields, name: str) -> Event:
    """GitHub lists what is new; a long list may be cut, and what is left out is indexed at its first task."""
    listed = fields.get(name)
    if not isinstance(listed, list):
        raise Unreadable(name)
    added = tuple(RepositoryId(Fields(one, name).number("id")) for one in listed)
    if not added:
        return Ignored("no repository was added")
    return GroundGained(InstallationId(fields.at("installation").number("id")), added, _actor(fields.at("sender")))


_GROUND = {
    "archived": Closing.ARCHIVED,
    "deleted": Closing.DELETED,
    "transferred": Closing.TRANSFERRED,
    "publicized": Closing.PUBLICIZED,
}
_GOES_ON = {
    "renamed": "tasks go on: a repository is known by its number",
    "privatized": "tasks go on: fewer people see the repository than before",
    "edited": "tasks go on with the base branch they began on; a change of the base is seen on the pull request",
}
"""What happens to a repository, and whether its tasks can go on."""


def _commented(fields: Fields) -> Commented:
    issue = fields.at("issue")
    return _comment_on(fields, issue, is_pull=issue.has("pull_request"))


def _on_line(fields: Fields) -> Commented:
    comment = fields.at("comment")
    review = comment.get("pull_request_review_id")
    return replace(
        _comment_on(fields, fields.at("pull_request"), is_pull=True),
        review_id=None if review is None else ReviewId(comment.number("pull_request_review_id")),
        on_line=True,
    )


def _comment_on(fields: Fields, thing: Fields, *, is_pull: bool) -> Commented:
    comment = fields.at("comment")
    via = comment.at("performed_via_github_app") if comment.has("performed_via_github_app") else None
    return Commented(
        subject=_subject(fields, thing, is_pull=is_pull),
        actor=_actor(fields.at("sender")),
        comment_id=CommentId(comment.number("id")),
        body=comment.text_or_empty("body"),
        title=thing.text("title"),
        subject_body=thing.text_or_empty("body"),
        open=thing.get("state") == "open",
        locked=thing.get("locked") is True,
        by_app=None if via is None else via.number("id"),
    )


def _subject(fields: Fields, thing: Fields, *, is_pull: bool) -> Subject:
    repository = fields.at("repository")
    reference = RepositoryRef(
        id=RepositoryId(repository.number("id")),
        full_name=repository.full_name("full_name"),
        installation_id=InstallationId(fields.at("installation").number("id")),
    )
    return Subject(reference, thing.number("number"), is_pull=is_pull)


def _actor(user: Fields) -> Actor:
    """Whatever does not say that it is a person counts as a bot."""
    login = user.text("login")[:100]
    person = user.get("type") == "User" and not login.endswith("[bot]")
    return Actor(UserId(user.number("id")), login, is_bot=not person)


def _no_concern(event: str, action: str) -> Ignored:
    return Ignored(f"we do nothing about `{event}.{action[:60]}`")


_READERS: Mapping[str, Callable[[Fields], Event]] = {
    "issues": _issues,
    "issue_comment": _issue_comment,
    "pull_request": _pull_request,
    "pull_request_review": _review,
    "pull_request_review_comment": _review_comment,
    "repository": _repository,
    "installation": _installation,
    "installation_repositories": _installation_repositories,
}
