"""Routes of labels, and of reactions."""

from __future__ import annotations

from typing import Any

from bot.emulators.github.call import Call, Handler, Reply
from bot.emulators.github.errors import ApiError, forbidden, invalid, invalid_request, not_found
from bot.emulators.github.records import Issue, Label, Reaction
from bot.emulators.github.routes.comments import find_comment
from bot.emulators.github.routes.issues import demand_subject, labels_named, replace_labels
from bot.emulators.github.routes.paging import paged
from bot.emulators.github.routes.scene import scene
from bot.emulators.github.shapes import people
from bot.emulators.github.webhooks.events import on_label, on_labelled

_R = "/repos/{owner}/{repo}"


def _shape(call: Call, item: Label) -> dict[str, Any]:
    return people.label(item, call.urls.repo(call.repository.full_name))


def _shapes(call: Call, issue: Issue) -> list[dict[str, Any]]:
    return [_shape(call, item) for item in issue.labels]


def _named(call: Call) -> Label:
    label = call.world.label(call.repository, call.values["name"])
    if label is None:
        raise not_found()
    return label


async def list_labels(call: Call) -> Reply:
    return paged(call, [_shape(call, item) for item in call.repository.labels.values()])


async def create_label(call: Call) -> Reply:
    name = call.body.text("name")
    if call.world.label(call.repository, name) is not None:
        raise invalid("Label", "name", "already_exists")
    color = call.body.optional_text("color", "ededed") or "ededed"
    label = call.world.add_label(call.repository, name, color, call.body.optional_text("description"))
    on_label(scene(call), "created", label)
    return Reply(_shape(call, label), 201)


async def get_label(call: Call) -> Reply:
    return Reply(_shape(call, _named(call)))


async def delete_label(call: Call) -> Reply:
    label = _named(call)
    del call.repository.labels[label.name.lower()]
    for issue in call.repository.issues.values():
        if label in issue.labels:
            issue.labels.remove(label)
    on_label(scene(call), "deleted", label)
    return Reply(status=204)


async def labels_of(call: Call) -> Reply:
    issue = call.issue()
    demand_subject(call, issue, "read")
    return paged(call, _shapes(call, issue))


def _asked(call: Call) -> tuple[str, ...]:
    """Names as a list of strings; the form with objects is taken too."""
    raw = call.body.raw("labels")
    if isinstance(raw, list) and raw and all(isinstance(item, dict) for item in raw):
        return tuple(item.text("name") for item in call.body.objects("labels"))
    if "labels" not in call.body:
        raise invalid_request('"labels" wasn\'t supplied.')
    return call.body.texts("labels")


async def add_labels(call: Call) -> Reply:
    issue = call.issue()
    demand_subject(call, issue, "write")
    for label in labels_named(call, _asked(call)):
        if label not in issue.labels:
            issue.labels.append(label)
            issue.updated_at = call.world.clock.now()
            on_labelled(scene(call), "labeled", issue, label)
    return Reply(_shapes(call, issue))


async def set_labels(call: Call) -> Reply:
    issue = call.issue()
    demand_subject(call, issue, "write")
    replace_labels(call, issue, labels_named(call, _asked(call)))
    return Reply(_shapes(call, issue))


async def remove_label(call: Call) -> Reply:
    issue = call.issue()
    demand_subject(call, issue, "write")
    label = call.world.label(call.repository, call.values["name"])
    if label is None or label not in issue.labels:
        raise ApiError(404, "Label does not exist")
    issue.labels.remove(label)
    issue.updated_at = call.world.clock.now()
    on_labelled(scene(call), "unlabeled", issue, label)
    return Reply(_shapes(call, issue))


def react(call: Call, reactions: list[Reaction]) -> Reply:
    """201 for a new reaction, 200 for one that was there."""
    content = call.body.text("content")
    if content not in people.CONTENTS:
        raise invalid("Reaction", "content")
    for item in reactions:
        if item.user is call.user and item.content == content:
            return Reply(people.reaction(item, call.urls))
    number, node = call.world.ids.new("REA")
    item = Reaction(number, node, call.user, content, call.world.clock.now())
    reactions.append(item)
    return Reply(people.reaction(item, call.urls), 201)


def _withdraw(call: Call, reactions: list[Reaction]) -> Reply:
    wanted = call.number("reaction_id")
    for item in reactions:
        if item.id == wanted:
            if item.user is not call.user:
                raise forbidden("You cannot delete this reaction.")
            reactions.remove(item)
            return Reply(status=204)
    raise not_found()


async def issue_reactions(call: Call) -> Reply:
    issue = call.issue()
    demand_subject(call, issue, "read")
    return paged(call, [people.reaction(item, call.urls) for item in issue.reactions])


async def react_to_issue(call: Call) -> Reply:
    issue = call.issue()
    demand_subject(call, issue, "write")
    call.demand_open_conversation(issue)
    return react(call, issue.reactions)


async def withdraw_from_issue(call: Call) -> Reply:
    return _withdraw(call, call.issue().reactions)


async def comment_reactions(call: Call) -> Reply:
    issue, comment = find_comment(call)
    demand_subject(call, issue, "read")
    return paged(call, [people.reaction(item, call.urls) for item in comment.reactions])


async def react_to_comment(call: Call) -> Reply:
    issue, comment = find_comment(call)
    demand_subject(call, issue, "write")
    call.demand_open_conversation(issue)
    return react(call, comment.reactions)


async def withdraw_from_comment(call: Call) -> Reply:
    return _withdraw(call, find_comment(call)[1].reactions)


HANDLERS: dict[str, Handler] = {
    f"GET {_R}/labels": list_labels,
    f"POST {_R}/labels": create_label,
    f"GET {_R}/labels/{{name}}": get_label,
    f"DELETE {_R}/labels/{{name}}": delete_label,
    f"GET {_R}/issues/{{number}}/labels": labels_of,
    f"POST {_R}/issues/{{number}}/labels": add_labels,
    f"PUT {_R}/issues/{{number}}/labels": set_labels,
    f"DELETE {_R}/issues/{{number}}/labels/{{name}}": remove_label,
    f"GET {_R}/issues/{{number}}/reactions": issue_reactions,
    f"POST {_R}/issues/{{number}}/reactions": react_to_issue,
    f"DELETE {_R}/issues/{{number}}/reactions/{{reaction_id}}": withdraw_from_issue,
    f"GET {_R}/issues/comments/{{comment_id}}/reactions": comment_reactions,
    f"POST {_R}/issues/comments/{{comment_id}}/reactions": react_to_comment,
    f"DELETE {_R}/issues/comments/{{comment_id}}/reactions/{{reaction_id}}": withdraw_from_comment,
}
