"""Routes of comments on issues and pull requests."""

from __future__ import annotations

from typing import Any

from bot.emulators.github.call import Call, Handler, Reply
from bot.emulators.github.errors import ApiError, forbidden, gone, not_found
from bot.emulators.github.records import Comment, Issue
from bot.emulators.github.routes.issues import LONGEST_BODY, demand_subject
from bot.emulators.github.routes.paging import paged
from bot.emulators.github.routes.scene import scene
from bot.emulators.github.shapes import apps, issues
from bot.emulators.github.webhooks.events import on_comment

_R = "/repos/{owner}/{repo}"


def _body(call: Call) -> str:
    text = call.body.text("body")
    if not text.strip():
        raise _unprocessable("Body cannot be blank")
    if len(text) > LONGEST_BODY:
        raise _unprocessable(f"Body is too long (maximum is {LONGEST_BODY} characters)")
    return text


def _unprocessable(message: str) -> ApiError:
    entry = {"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": message}
    return ApiError(422, "Validation Failed", [entry])


def _shape(call: Call, item: Comment) -> dict[str, Any]:
    app = apps.app(call.world.app, call.urls) if item.by_app else None
    return issues.comment(call.repository, item, call.urls, app=app)


def find_comment(call: Call) -> tuple[Issue, Comment]:
    wanted = call.number("comment_id")
    for issue in call.repository.issues.values():
        for item in issue.comments:
            if item.id == wanted:
                if issue.deleted:
                    raise gone()
                return issue, item
    raise not_found()


async def list_comments(call: Call) -> Reply:
    issue = call.issue()
    demand_subject(call, issue, "read")
    since = call.query.get("since")
    shapes = [_shape(call, item) for item in issue.comments]
    return paged(call, [one for one in shapes if not since or one["updated_at"] >= since])


async def list_all(call: Call) -> Reply:
    every = [item for issue in call.repository.issues.values() if not issue.deleted for item in issue.comments]
    every.sort(key=lambda item: item.id)
    return paged(call, [_shape(call, item) for item in every])


async def create(call: Call) -> Reply:
    issue = call.issue()
    demand_subject(call, issue, "write")
    call.demand_open_conversation(issue)
    text = _body(call)
    now = call.world.clock.now()
    number, node = call.world.ids.new("IC")
    item = Comment(number, node, issue.number, call.user, text, now, now, call.by_app)
    issue.comments.append(item)
    issue.updated_at = now
    on_comment(scene(call), "created", issue, item)
    shape = _shape(call, item)
    return Reply(shape, 201, headers={"Location": shape["url"]})


async def get(call: Call) -> Reply:
    issue, item = find_comment(call)
    demand_subject(call, issue, "read")
    return Reply(_shape(call, item))


async def update(call: Call) -> Reply:
    issue, item = find_comment(call)
    demand_subject(call, issue, "write")
    if item.user is not call.user and not (call.actor.kind == "person" and call.has_role("write")):
        raise forbidden("Must have admin rights to Repository.")
    text = _body(call)
    before, item.body = item.body, text
    item.updated_at = call.world.clock.now()
    on_comment(scene(call), "edited", issue, item, changes={"body": {"from": before}})
    return Reply(_shape(call, item))


async def delete(call: Call) -> Reply:
    issue, item = find_comment(call)
    demand_subject(call, issue, "write")
    if item.user is not call.user and not call.has_role("write"):
        raise forbidden("Must have admin rights to Repository.")
    issue.comments.remove(item)
    on_comment(scene(call), "deleted", issue, item)
    return Reply(status=204)


HANDLERS: dict[str, Handler] = {
    f"GET {_R}/issues/{{number}}/comments": list_comments,
    f"POST {_R}/issues/{{number}}/comments": create,
    f"GET {_R}/issues/comments": list_all,
    f"GET {_R}/issues/comments/{{comment_id}}": get,
    f"PATCH {_R}/issues/comments/{{comment_id}}": update,
    f"DELETE {_R}/issues/comments/{{comment_id}}": delete,
}
