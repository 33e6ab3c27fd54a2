"""Routes of issues, which pull requests share."""

from __future__ import annotations

import re
from typing import Any

from bot.emulators.github.call import Call, Handler, Reply
from bot.emulators.github.consequences import close
from bot.emulators.github.errors import custom, forbidden, gone, invalid, not_accessible
from bot.emulators.github.records import Issue, Label, Repository, User
from bot.emulators.github.routes.paging import paged
from bot.emulators.github.routes.scene import scene
from bot.emulators.github.shapes import issues
from bot.emulators.github.webhooks.events import Scene, on_issue, on_label, on_labelled, on_subject
from bot.emulators.github.world import World

_R = "/repos/{owner}/{repo}"
LONGEST_BODY = 65_536
LONGEST_TITLE = 256
_CLOSES = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#(\d{1,9})\b", re.IGNORECASE)


def next_number(repository: Repository) -> int:
    return max(repository.issues, default=0) + 1


def check_texts(title: str | None, body: str | None, resource: str = "Issue") -> None:
    """The limits of titles and bodies, counted in code points."""
    if title is not None and not title.strip():
        raise invalid(resource, "title", "missing_field")
    if title is not None and len(title) > LONGEST_TITLE:
        raise invalid(resource, "title", "custom", f"title is too long (maximum is {LONGEST_TITLE} characters)")
    if body is not None and len(body) > LONGEST_BODY:
        raise invalid(resource, "body", "custom", f"body is too long (maximum is {LONGEST_BODY} characters)")


def demand_subject(call: Call, issue: Issue, level: str) -> None:
    """Reading a pull request as an issue takes pull_requests; writing to a plain issue takes issues."""
    if call.actor.kind != "installation":
        return
    if issue.pull is None:
        allowed = call.actor.may("issues", level)
    elif level == "read":
        allowed = call.actor.may("pull_requests", level)
    else:
        allowed = call.actor.may("pull_requests", level) or call.actor.may("issues", level)
    if not allowed:
        raise not_accessible()


def shape(call: Call, item: Issue) -> dict[str, Any]:
    return issues.issue(call.repository, item, call.urls)


def labels_named(call: Call, names: tuple[str, ...]) -> list[Label]:
    """Labels by name; an unknown one is created, as the service does."""
    found: list[Label] = []
    for name in names:
        label = call.world.label(call.repository, name)
        if label is None:
            label = call.world.add_label(call.repository, name)
            on_label(scene(call), "created", label)
        if label not in found:
            found.append(label)
    return found


def people_named(call: Call, names: tuple[str, ...]) -> list[User]:
    found = []
    for name in names:
        person = call.world.find_user(name)
        if person is None or call.world.role(call.repository, person) == "none":
            raise invalid("Issue", "assignees", "invalid")
        found.append(person)
    return found


def open_issue(world: World, repository: Repository, user: User, title: str, body: str | None) -> Issue:
    """A new record under the next number; announces nothing."""
    now = world.clock.now()
    number, node = world.ids.new("I")
    issue = Issue(number, node, next_number(repository), title, body, user, now, now)
    repository.issues[issue.number] = issue
    return issue


async def list_issues(call: Call) -> Reply:
    found = [item for item in call.repository.issues.values() if not item.deleted]
    state = call.query.get("state", "open")
    if state != "all":
        found = [item for item in found if item.state == state]
    for name in filter(None, call.query.get("labels", "").split(",")):
        found = [item for item in found if any(label.name.lower() == name.lower() for label in item.labels)]
    creator = call.query.get("creator")
    if creator:
        found = [item for item in found if item.user.login.lower() == creator.lower()]
    key = "updated_at" if call.query.get("sort") == "updated" else "created_at"
    found.sort(key=lambda item: (getattr(item, key), item.number), reverse=call.query.get("direction") != "asc")
    if call.by_app:
        found = [item for item in found if call.actor.may("pull_requests" if item.pull else "issues", "read")]
    return paged(call, [shape(call, item) for item in found])


async def create_issue(call: Call) -> Reply:
    title, body = call.body.text("title"), call.body.optional_text("body")
    check_texts(title, body)
    trusted = call.has_role("triage")
    labels = labels_named(call, call.body.texts("labels")) if trusted else []
    assignees = people_named(call, call.body.texts("assignees")) if trusted else []
    item = open_issue(call.world, call.repository, call.user, title, body)
    item.labels, item.assignees, item.by_app = labels, assignees, call.by_app
    on_issue(scene(call), "opened", item)
    for label in labels:
        on_labelled(scene(call), "labeled", item, label)
    return Reply(shape(call, item), 201, headers={"Location": shape(call, item)["url"]})


async def get_issue(call: Call) -> Reply:
    item = call.issue()
    demand_subject(call, item, "read")
    return Reply(shape(call, item))


async def update_issue(call: Call) -> Reply:
    item = call.issue()
    demand_subject(call, item, "write")
    if item.user is not call.user and not call.has_role("triage"):
        raise forbidden("Must have admin rights to Repository.")
    title, body = call.body.optional_text("title"), call.body.optional_text("body")
    check_texts(title, body)
    state = call.body.one_of("state", ("open", "closed"))
    _edit(scene(call), item, title, body if "body" in call.body else item.body)
    if "labels" in call.body:
        replace_labels(call, item, labels_named(call, call.body.texts("labels")))
    if "assignees" in call.body:
        item.assignees = people_named(call, call.body.texts("assignees"))
    if state:
        reason = call.body.one_of("state_reason", ("completed", "not_planned", "reopened", "duplicate"))
        set_state(scene(call), item, state, reason)
    return Reply(shape(call, item))


def _edit(place: Scene, item: Issue, title: str | None, body: str | None) -> None:
    changes: dict[str, Any] = {}
    if title is not None and title != item.title:
        changes["title"] = {"from": item.title}
        item.title = title
    if body != item.body:
        changes["body"] = {"from": item.body or ""}
        item.body = body
    if changes:
        item.updated_at = place.world.clock.now()
        on_subject(place, "edited", item, changes=changes)


def replace_labels(call: Call, item: Issue, wanted: list[Label]) -> None:
    """Set the labels, announcing each difference."""
    before, item.labels = item.labels, wanted
    item.updated_at = call.world.clock.now()
    for label in before:
        if label not in wanted:
            on_labelled(scene(call), "unlabeled", item, label)
    for label in wanted:
        if label not in before:
            on_labelled(scene(call), "labeled", item, label)


def set_state(place: Scene, item: Issue, state: str, reason: str | None) -> None:
    """Close or reopen; a merged pull request stays closed."""
    if state == item.state:
        return
    if state == "closed":
        close(place, item)
        item.state_reason = None if item.pull else reason or "completed"
        on_subject(place, "closed", item)
        return
    if item.pull and item.pull.merged:
        raise custom("PullRequest", "state cannot be changed. The pull request cannot be reopened.")
    item.state, item.closed_at, item.closed_by = "open", None, None
    item.state_reason = None if item.pull else "reopened"
    item.updated_at = place.world.clock.now()
    on_subject(place, "reopened", item)


def close_mentioned(place: Scene, text: str) -> None:
    """Merging to the default branch closes the issues that the text says it closes."""
    for number in dict.fromkeys(int(found) for found in _CLOSES.findall(text)):
        item = place.repository.issues.get(number)
        if item is not None and item.state == "open" and item.pull is None:
            set_state(place, item, "closed", "completed")


async def lock(call: Call) -> Reply:
    item = call.issue()
    demand_subject(call, item, "write")
    call.body.one_of("lock_reason", ("off-topic", "too heated", "resolved", "spam"))
    item.locked = True
    on_subject(scene(call), "locked", item)
    return Reply(status=204)


async def unlock(call: Call) -> Reply:
    item = call.issue()
    demand_subject(call, item, "write")
    item.locked = False
    on_subject(scene(call), "unlocked", item)
    return Reply(status=204)


def delete_issue(place: Scene, item: Issue) -> None:
    """From then on the number answers 410."""
    if item.deleted:
        raise gone()
    item.deleted = True
    on_issue(place, "deleted", item)


HANDLERS: dict[str, Handler] = {
    f"GET {_R}/issues": list_issues,
    f"POST {_R}/issues": create_issue,
    f"GET {_R}/issues/{{number}}": get_issue,
    f"PATCH {_R}/issues/{{number}}": update_issue,
    f"PUT {_R}/issues/{{number}}/lock": lock,
    f"DELETE {_R}/issues/{{number}}/lock": unlock,
}
