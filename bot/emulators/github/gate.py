"""Whether this actor may use this route on this repository: the permission table, applied."""

from __future__ import annotations

from bot.emulators.github.auth import Actor
from bot.emulators.github.errors import (
    ApiError,
    forbidden,
    not_accessible,
    not_found,
    requires_authentication,
)
from bot.emulators.github.permissions import Rule
from bot.emulators.github.records import Repository
from bot.emulators.github.world import World, at_least


def admit(
    world: World, rule: Rule, actor: Actor, repository: Repository | None, method: str, organisation: str = ""
) -> str:
    """The permission that let the actor in, for the journal; raises the refusal otherwise."""
    if rule.who == "app":
        if actor.kind != "app":
            raise ApiError(401, "A JSON web token could not be decoded")
        return "app jwt"
    if rule.who == "any":
        return "-"
    if actor.kind == "app":
        raise not_accessible()
    if actor.kind == "nobody":
        return _admit_nobody(rule, repository, method)
    if actor.kind == "installation":
        return _admit_installation(rule, actor, repository)
    if repository is None or repository.private or method != "GET" or rule.role != "read":
        _demand_of_token(rule, actor)
    if rule.organisation and not (actor.user and world.owns(organisation, actor.user)):
        raise forbidden("You must be an owner of the organization.") if world.find_user(organisation) else not_found()
    return _admit_person(world, rule, actor, repository)


def _demand_of_token(rule: Rule, actor: Actor) -> None:
    """A fine-grained token needs what an App's token needs, but for reading what is public; the answer has words of its own."""
    if rule.token and not any(actor.granted(*need.split(":")) for need in rule.token):
        raise ApiError(403, "Resource not accessible by personal access token")


def _admit_nobody(rule: Rule, repository: Repository | None, method: str) -> str:
    if repository is None:
        raise requires_authentication()
    if repository.private:
        raise not_found()
    if method != "GET" or rule.role != "read":
        raise requires_authentication()
    return "public"


def _admit_installation(rule: Rule, actor: Actor, repository: Repository | None) -> str:
    if rule.who == "person":
        raise not_accessible()
    if repository is not None and not actor.sees(repository):
        raise not_found()
    for need in rule.token:
        permission, _, level = need.partition(":")
        if actor.may(permission, level):
            return need
    if rule.token:
        raise not_accessible()
    return "token"


def _admit_person(world: World, rule: Rule, actor: Actor, repository: Repository | None) -> str:
    if rule.who == "installation":
        if repository is None:
            raise forbidden("You must authenticate with an installation access token in order to list repositories.")
        raise forbidden("You must authenticate via a GitHub App.")
    if repository is None:
        return "person"
    if actor.user is None:
        raise requires_authentication()
    role = world.role(repository, actor.user)
    if role == "none":
        raise not_found()
    if not at_least(role, rule.role):
        raise forbidden("Must have admin rights to Repository.")
    return f"role {role}"
