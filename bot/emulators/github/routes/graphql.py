"""GraphQL: the mutations that have no REST form, and the few queries that clients ask with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bot.emulators.github.call import Call, Handler, Reply
from bot.emulators.github.clock import stamp
from bot.emulators.github.querylanguage import Field, SyntaxRefused, parse
from bot.emulators.github.records import Issue, Pull, Repository, User
from bot.emulators.github.routes.issues import delete_issue
from bot.emulators.github.shapes.pulls import mergeable_state
from bot.emulators.github.webhooks.events import Scene, on_pull
from bot.emulators.github.world import at_least


@dataclass(slots=True)
class _Refusal(Exception):  # noqa: N818 - becomes an entry of `errors`
    kind: str
    message: str


_INACCESSIBLE = _Refusal("FORBIDDEN", "Resource not accessible by integration")
_Resolver = Callable[[Call, Field], Awaitable[Any]]


async def answer(call: Call) -> Reply:
    """Always 200; what went wrong is under `errors`, with a type that clients read."""
    query = call.body.optional_text("query")
    if query is None:
        return Reply({"message": "A query attribute must be specified and must be a string."}, 400)
    variables = call.body.object("variables")
    try:
        document = parse(query, variables.items() if variables else {})
    except SyntaxRefused as refusal:
        return Reply({"errors": [{"message": str(refusal)}]})
    except RecursionError:
        return Reply({"errors": [{"message": "The query is nested too deeply"}]})
    table = _MUTATIONS if document.kind == "mutation" else _QUERIES
    data: dict[str, Any] = {}
    errors: list[dict[str, Any]] = []
    for one in document.fields:
        data[one.alias] = None
        try:
            data[one.alias] = await _resolve(call, table, document.kind, one)
        except _Refusal as refusal:
            errors.append({"type": refusal.kind, "path": [one.alias], "message": refusal.message})
    return Reply({"data": data, **({"errors": errors} if errors else {})})


async def _resolve(call: Call, table: Mapping[str, _Resolver], kind: str, one: Field) -> Any:
    if one.name == "__typename":
        return kind.title()
    resolver = table.get(one.name)
    if resolver is None:
        raise _Refusal("undefinedField", f"Field '{one.name}' doesn't exist on type '{kind.title()}'")
    return _select(await resolver(call, one), one.selection, one.name)


def _select(value: Any, selection: tuple[Field, ...], owner: str) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return [_select(item, selection, owner) for item in value]
    if not isinstance(value, dict):
        return value
    if not selection:
        raise _Refusal("selectionMismatch", f"Field must have selections (field '{owner}' returns an object)")
    chosen: dict[str, Any] = {}
    for one in selection:
        if one.name not in value:
            raise _Refusal("undefinedField", f"Field '{one.name}' doesn't exist on '{owner}'")
        chosen[one.alias] = _select(value[one.name], one.selection, one.name)
    return chosen


async def _viewer(call: Call, _one: Field) -> Any:
    return _person(call.user)


def _person(person: User) -> dict[str, Any]:
    return {"login": person.login, "id": person.node_id, "databaseId": person.id, "__typename": person.type}


async def _rate_limit(_call: Call, _one: Field) -> Any:
    return {"limit": 5000, "cost": 1, "remaining": 4999, "used": 1, "resetAt": "2030-01-01T00:00:00Z"}


async def _node(call: Call, one: Field) -> Any:
    repository, issue, _ = _find_pull(call, one.arguments.get("id"))
    return _pull_shape(call, repository, issue)


async def _repository(call: Call, one: Field) -> Any:
    full_name = f"{one.arguments.get('owner')}/{one.arguments.get('name')}"
    found = call.world.repository(full_name)
    if found is None or not _visible(call, found):
        raise _Refusal("NOT_FOUND", f"Could not resolve to a Repository with the name '{full_name}'.")
    shape: dict[str, Any] = {"id": found.node_id, "databaseId": found.id, "nameWithOwner": found.full_name}
    for inner in one.selection:
        if inner.name == "pullRequest":
            number = inner.arguments.get("number")
            issue = found.issues.get(number) if isinstance(number, int) else None
            if issue is None or issue.pull is None:
                raise _Refusal("NOT_FOUND", "Could not resolve to a PullRequest with that number.")
            shape["pullRequest"] = _pull_shape(call, found, issue)
    return shape


def _pull_shape(call: Call, repository: Repository, issue: Issue) -> dict[str, Any]:
    pull = issue.pull
    if pull is None:
        raise TypeError("not a pull request")
    merge_state = mergeable_state(repository, issue).upper()
    return {
        "__typename": "PullRequest",
        "id": pull.node_id,
        "databaseId": pull.id,
        "number": issue.number,
        "title": issue.title,
        "body": issue.body or "",
        "state": "MERGED" if pull.merged else issue.state.upper(),
        "isDraft": pull.draft,
        "merged": pull.merged,
        "mergeable": {None: "UNKNOWN", True: "MERGEABLE", False: "CONFLICTING"}[pull.mergeable],
        "mergeStateStatus": merge_state,
        "headRefOid": pull.head_sha,
        "headRefName": pull.head_ref,
        "baseRefName": pull.base_ref,
        "baseRefOid": pull.base_sha,
        "updatedAt": stamp(issue.updated_at),
        "url": call.urls.html(f"{repository.full_name}/pull/{issue.number}"),
        "author": _person(issue.user),
    }


def _visible(call: Call, repository: Repository) -> bool:
    if call.actor.kind == "installation":
        return call.actor.sees(repository)
    return call.world.role(repository, call.user) != "none"


def _find_pull(call: Call, node: Any) -> tuple[Repository, Issue, Pull]:
    found = call.world.pull_by_node(node) if isinstance(node, str) else None
    if found is None or not _visible(call, found[0]):
        raise _Refusal("NOT_FOUND", f"Could not resolve to a node with the global id of '{node}'")
    return found


def _input(one: Field) -> Mapping[str, Any]:
    given = one.arguments.get("input")
    if not isinstance(given, dict):
        raise _Refusal("missingRequiredArguments", f"Field '{one.name}' is missing required arguments: input")
    return given


async def _ready(call: Call, one: Field) -> Any:
    return await _set_draft(call, one, draft=False)


async def _to_draft(call: Call, one: Field) -> Any:
    return await _set_draft(call, one, draft=True)


async def _set_draft(call: Call, one: Field, *, draft: bool) -> Any:
    """An installation needs contents:write besides pull_requests:write; that surprises many."""
    given = _input(one)
    repository, issue, pull = _find_pull(call, given.get("pullRequestId"))
    if call.actor.kind == "installation":
        if not (call.actor.may("pull_requests", "write") and call.actor.may("contents", "write")):
            raise _INACCESSIBLE
    elif issue.user is not call.user and not at_least(call.world.role(repository, call.user), "write"):
        raise _Refusal("FORBIDDEN", f"{call.user.login} does not have the correct permissions to execute `{one.name}`")
    async with repository.lock:
        if issue.state != "open":
            raise _Refusal("UNPROCESSABLE", "Pull request is closed")
        if draft and not repository.drafts_supported:
            raise _Refusal("UNPROCESSABLE", "Draft pull requests are not supported in this repository.")
        if pull.draft == draft:
            told = "already a draft" if draft else "not in a draft state"
            raise _Refusal("UNPROCESSABLE", f"Pull request is {told}")
        pull.draft = draft
        issue.updated_at = call.world.clock.now()
        place = Scene(call.world, repository, call.user, call.urls)
        on_pull(place, "converted_to_draft" if draft else "ready_for_review", issue)
    return {
        "clientMutationId": given.get("clientMutationId"),
        "pullRequest": _pull_shape(call, repository, issue),
    }


async def _delete_issue(call: Call, one: Field) -> Any:
    given = _input(one)
    for repository in call.world.registry.repositories.values():
        for issue in repository.issues.values():
            if issue.node_id == given.get("issueId") and not issue.deleted and not issue.pull:
                if call.actor.kind != "person" or call.world.role(repository, call.user) != "admin":
                    raise _Refusal("FORBIDDEN", "Viewer not authorized to delete")
                delete_issue(Scene(call.world, repository, call.user, replace(call.urls)), issue)
                return {"clientMutationId": given.get("clientMutationId"), "repository": {"id": repository.node_id}}
    raise _Refusal("NOT_FOUND", f"Could not resolve to a node with the global id of '{given.get('issueId')}'")


_QUERIES: dict[str, _Resolver] = {
    "viewer": _viewer,
    "rateLimit": _rate_limit,
    "node": _node,
    "repository": _repository,
}
_MUTATIONS: dict[str, _Resolver] = {
    "markPullRequestReadyForReview": _ready,
    "convertPullRequestToDraft": _to_draft,
    "deleteIssue": _delete_issue,
}
HANDLERS: dict[str, Handler] = {"POST /graphql": answer}
