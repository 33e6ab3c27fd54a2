"""Routes of check runs and commit statuses."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bot.emulators.github.body import Body
from bot.emulators.github.call import Call, Handler, Reply
from bot.emulators.github.errors import ApiError, invalid_request, not_found, unprocessable
from bot.emulators.github.gitside.commits import read_commit
from bot.emulators.github.identifiers import Identifiers
from bot.emulators.github.records import CheckRun, Repository, Status
from bot.emulators.github.routes.paging import counted, paged
from bot.emulators.github.routes.scene import scene
from bot.emulators.github.shapes import apps, repositories
from bot.emulators.github.webhooks.events import on_check_run, on_status

_R = "/repos/{owner}/{repo}"
_LONGEST = 65_535
_CONCLUSIONS = ("action_required", "cancelled", "failure", "neutral", "success", "skipped", "timed_out")
_STATUSES = ("queued", "in_progress", "completed", "waiting", "requested", "pending")
_STATES = ("error", "failure", "pending", "success")


def _shape(call: Call, run: CheckRun) -> dict[str, Any]:
    return apps.check_run(call.repository, run, call.world.app, call.urls)


async def create_run(call: Call) -> Reply:
    name, sha = call.body.text("name"), call.body.text("head_sha")
    if await call.bare.kind(sha) != "commit":
        raise ApiError(422, f"No commit found for SHA: {sha}")
    number, node = call.world.ids.new("CR")
    suite = _suite(call.repository, sha, call.world.ids)
    run = CheckRun(number, node, suite, name, sha, "queued", None, call.world.clock.now(), None)
    _apply(call, run)
    call.repository.checks.append(run)
    on_check_run(scene(call), "created", run)
    if run.status == "completed":
        on_check_run(scene(call), "completed", run)
    return Reply(_shape(call, run), 201)


def _suite(repository: Repository, sha: str, ids: Identifiers) -> int:
    for run in repository.checks:
        if run.head_sha == sha:
            return run.suite_id
    return ids.number("CS")


def _apply(call: Call, run: CheckRun) -> None:
    """Check everything, then write: a refused update changes nothing."""
    status = call.body.one_of("status", _STATUSES)
    conclusion = call.body.one_of("conclusion", _CONCLUSIONS)
    if status == "completed" and conclusion is None and run.conclusion is None:
        raise invalid_request('"conclusion" wasn\'t supplied.')
    output = call.body.object("output")
    annotations = _annotations(output) if output else []
    _check_actions(call.body.objects("actions"))
    run.name = call.body.optional_text("name", run.name) or run.name
    run.external_id = call.body.optional_text("external_id", run.external_id)
    run.details_url = call.body.optional_text("details_url", run.details_url)
    run.started_at = _moment(call.body, "started_at") or run.started_at
    if output:
        run.output = {key: output.raw(key) for key in ("title", "summary", "text")}
        run.annotations.extend(annotations)
    if conclusion is not None:
        run.status, run.conclusion = "completed", conclusion
        run.completed_at = _moment(call.body, "completed_at") or call.world.clock.now()
    elif status is not None:
        run.status, run.conclusion, run.completed_at = status, None, None


def _annotations(output: Body) -> list[dict[str, Any]]:
    output.text("summary")
    for key in ("summary", "text"):
        text = output.optional_text(key)
        if text is not None and len(text.encode()) > _LONGEST:
            raise invalid_request(f"Only {_LONGEST} characters are allowed; {len(text)} were supplied.")
    entries = output.objects("annotations")
    if len(entries) > 50:
        raise invalid_request(
            f"For 'properties/annotations', no more than 50 items are allowed; {len(entries)} were supplied."
        )
    found = []
    for entry in entries:
        entry.text("path")
        level = entry.one_of("annotation_level", ("notice", "warning", "failure"))
        if level is None or entry.integer("start_line") is None or entry.integer("end_line") is None:
            raise invalid_request('"annotation_level", "start_line" or "end_line" wasn\'t supplied.')
        _check_lengths(entry, {"message": 65_536, "raw_details": 65_536, "title": 255})
        entry.text("message")
        found.append(dict(entry.items()))
    return found


def _check_lengths(entry: Body, limits: dict[str, int]) -> None:
    for key, limit in limits.items():
        text = entry.optional_text(key)
        if text is not None and len(text) > limit:
            raise invalid_request(
                f"For 'properties/{key}', only {limit} characters are allowed; {len(text)} were supplied."
            )


def _check_actions(actions: tuple[Body, ...]) -> None:
    if len(actions) > 3:
        raise invalid_request("For 'properties/actions', no more than 3 items are allowed.")
    for action in actions:
        for key in ("label", "description", "identifier"):
            action.text(key)
        _check_lengths(action, {"label": 20, "description": 40, "identifier": 20})


def _moment(body: Body, name: str) -> datetime | None:
    text = body.optional_text(name)
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise invalid_request(f"For 'properties/{name}', {text} is not a valid date-time.") from None
    if moment.tzinfo is None:
        raise invalid_request(f"For 'properties/{name}', {text} is not a valid date-time.")
    return moment


def _find(call: Call) -> CheckRun:
    wanted = call.number("check_run_id")
    for run in call.repository.checks:
        if run.id == wanted:
            return run
    raise not_found()


async def get_run(call: Call) -> Reply:
    return Reply(_shape(call, _find(call)))


async def update_run(call: Call) -> Reply:
    run = _find(call)
    before = run.status
    _apply(call, run)
    if run.status == "completed" and before != "completed":
        on_check_run(scene(call), "completed", run)
    return Reply(_shape(call, run))


async def list_annotations(call: Call) -> Reply:
    run = _find(call)
    blob = call.urls.html(f"{call.repository.full_name}/blob/{run.head_sha}")
    blank = {"start_column": None, "end_column": None, "title": None, "raw_details": None}
    return paged(call, [{**blank, "blob_href": f"{blob}/{item['path']}", **item} for item in run.annotations])


async def rerequest(call: Call) -> Reply:
    run = _find(call)
    on_check_run(scene(call), "rerequested", run)
    return Reply({}, 201)


async def resolve(call: Call) -> str:
    sha = await call.bare.resolve(call.values["ref"])
    if sha is None:
        raise unprocessable(f"No commit found for SHA: {call.values['ref']}")
    return sha


async def list_runs(call: Call) -> Reply:
    """The latest run of each name unless `filter=all`."""
    sha = await resolve(call)
    found = [run for run in call.repository.checks if run.head_sha == sha]
    if call.query.get("filter", "latest") == "latest":
        found = list({run.name: run for run in found}.values())
    for key, attribute in (("check_name", "name"), ("status", "status")):
        if call.query.get(key):
            found = [run for run in found if getattr(run, attribute) == call.query[key]]
    return counted(call, "check_runs", [_shape(call, run) for run in found])


async def create_status(call: Call) -> Reply:
    sha = call.values["sha"]
    if await call.bare.kind(sha) != "commit":
        raise ApiError(422, f"No commit found for SHA: {sha}")
    state = call.body.one_of("state", _STATES)
    if state is None:
        raise invalid_request('"state" wasn\'t supplied.')
    description = call.body.optional_text("description")
    if description is not None and len(description) > 140:
        raise unprocessable("Validation Failed", "description is too long (maximum is 140 characters)")
    number, node = call.world.ids.new("SC")
    item = Status(
        id=number,
        node_id=node,
        sha=sha,
        state=state,
        context=call.body.optional_text("context", "default") or "default",
        description=description,
        target_url=call.body.optional_text("target_url"),
        creator=call.user,
        created_at=call.world.clock.now(),
    )
    call.repository.statuses.append(item)
    on_status(scene(call), item, await read_commit(call.bare, sha))
    return Reply(apps.status(call.repository, item, call.urls), 201)


async def list_statuses(call: Call) -> Reply:
    sha = await resolve(call)
    found = [item for item in reversed(call.repository.statuses) if item.sha == sha]
    return paged(call, [apps.status(call.repository, item, call.urls) for item in found])


async def combined(call: Call) -> Reply:
    sha = await resolve(call)
    latest = {item.context: item for item in call.repository.statuses if item.sha == sha}
    states = {item.state for item in latest.values()}
    state = "failure" if states & {"error", "failure"} else "success" if states == {"success"} else "pending"
    address = call.urls.repo(call.repository.full_name, f"/commits/{sha}")
    return Reply(
        {
            "state": state,
            "statuses": [apps.status(call.repository, item, call.urls, creator=False) for item in latest.values()],
            "sha": sha,
            "total_count": len(latest),
            "repository": repositories.minimal(call.repository, call.urls),
            "commit_url": address,
            "url": f"{address}/status",
        }
    )


HANDLERS: dict[str, Handler] = {
    f"POST {_R}/check-runs": create_run,
    f"GET {_R}/check-runs/{{check_run_id}}": get_run,
    f"PATCH {_R}/check-runs/{{check_run_id}}": update_run,
    f"GET {_R}/check-runs/{{check_run_id}}/annotations": list_annotations,
    f"POST {_R}/check-runs/{{check_run_id}}/rerequest": rerequest,
    f"GET {_R}/commits/{{ref*}}/check-runs": list_runs,
    f"GET {_R}/commits/{{ref*}}/status": combined,
    f"GET {_R}/commits/{{ref*}}/statuses": list_statuses,
    f"POST {_R}/statuses/{{sha}}": create_status,
}
