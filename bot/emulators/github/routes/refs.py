"""Routes of git refs: create, move with a fast-forward check, delete."""

from __future__ import annotations

import re

from bot.emulators.github.call import Call, Handler, Reply
from bot.emulators.github.consequences import Moved, after_refs_moved
from bot.emulators.github.errors import ApiError, not_accessible, not_found, unprocessable
from bot.emulators.github.gitside import history
from bot.emulators.github.gitside.bare import ZERO, is_sha
from bot.emulators.github.routes.gitdata import demand_commits
from bot.emulators.github.routes.paging import paged
from bot.emulators.github.routes.scene import scene
from bot.emulators.github.shapes import gitdata

_R = "/repos/{owner}/{repo}/git"
_PUBLIC = re.compile(r"(heads|tags|pull)/.+")


async def _reply(call: Call, name: str, sha: str, status: int = 200) -> Reply:
    kind = await call.bare.kind(sha) or "commit"
    shape = gitdata.ref(call.repository, name, sha, kind, call.urls)
    return Reply(shape, status, headers={"Location": shape["url"]} if status == 201 else {})


async def get_ref(call: Call) -> Reply:
    await demand_commits(call)
    name = call.values["ref"]
    if name.startswith("refs/") or not _PUBLIC.fullmatch(name):
        raise not_found()
    sha = await call.bare.ref(f"refs/{name}")
    if sha is None:
        raise not_found()
    return await _reply(call, f"refs/{name}", sha)


async def matching_refs(call: Call) -> Reply:
    await demand_commits(call)
    prefix = f"refs/{call.values['ref']}"
    found = [(name, sha) for name, sha in (await call.bare.refs()).items() if name.startswith(prefix)]
    kinds = await call.bare.kinds([sha for _, sha in found]) if found else []
    shapes = [
        gitdata.ref(call.repository, name, sha, kind or "commit", call.urls)
        for (name, sha), kind in zip(found, kinds, strict=True)
    ]
    return paged(call, shapes)


async def create_ref(call: Call) -> Reply:
    await demand_commits(call)
    name, sha = call.body.text("ref"), call.body.text("sha")
    if not name.startswith("refs/") or name.count("/") < 2:
        raise unprocessable("Reference name must start with 'refs/' and have at least two slashes.")
    await _check_target(call, sha)
    if not name.startswith(("refs/heads/", "refs/tags/")) or not await _acceptable(call, name):
        raise unprocessable(f"{name} is not a valid ref name.")
    if await call.bare.ref(name) is not None:
        raise unprocessable("Reference already exists")
    rule = call.repository.protection(name.removeprefix("refs/heads/"))
    if rule and rule.restricted and name.startswith("refs/heads/"):
        _refuse_protected(call, name, "Cannot create ref due to creations being restricted.")
    await _refuse_workflows(call, sha)
    if not await call.bare.move(name, sha, ZERO):
        raise unprocessable("Reference update failed")
    await after_refs_moved(scene(call), [Moved(name, ZERO, sha)])
    return await _reply(call, name, sha, 201)


async def _acceptable(call: Call, name: str) -> bool:
    short = name.split("/", 2)[2]
    return await call.bare.acceptable(name) and not is_sha(short) and not short.startswith("refs/")


async def _check_target(call: Call, sha: str) -> None:
    if not is_sha(sha):
        raise unprocessable("The sha parameter must be exactly 40 characters and contain only [0-9a-f].")
    kind = await call.bare.kind(sha)
    if kind is None:
        raise unprocessable("Object does not exist")
    if kind != "commit":
        raise unprocessable("Reference update failed")


async def _refuse_workflows(call: Call, sha: str) -> None:
    if call.by_app and not call.actor.may("workflows", "write") and await history.touched_workflows(call.bare, sha):
        raise not_accessible()


def _refuse_protected(call: Call, name: str, what: str = "Cannot update this protected ref.") -> None:
    rule = call.repository.protection(name.removeprefix("refs/heads/")) if name.startswith("refs/heads/") else None
    if rule and call.by_app and call.world.app.id in rule.bypass_apps:
        return
    if rule and rule.restricted:
        raise ApiError(422, f"Repository rule violations found\n\n{what}\n\n")
    if rule and (rule.pull_request or rule.required_approving_review_count or rule.merge_queue):
        raise ApiError(422, "Repository rule violations found\n\nChanges must be made through a pull request.\n\n")


async def _existing(call: Call) -> tuple[str, str]:
    await demand_commits(call)
    name = f"refs/{call.values['ref']}"
    sha = await call.bare.ref(name) if name.startswith(("refs/heads/", "refs/tags/")) else None
    if sha is None:
        raise unprocessable("Reference does not exist")
    return name, sha


async def update_ref(call: Call) -> Reply:
    name, old = await _existing(call)
    sha = call.body.text("sha")
    force = call.body.flag("force")
    await _check_target(call, sha)
    if not force and not await history.is_ancestor(call.bare, old, sha):
        raise unprocessable("Update is not a fast forward")
    _refuse_protected(call, name)
    await _refuse_workflows(call, sha)
    if not await call.bare.move(name, sha, old):
        raise unprocessable("Reference update failed")
    if sha != old:
        await after_refs_moved(scene(call), [Moved(name, old, sha)])
    return await _reply(call, name, sha)


async def delete_ref(call: Call) -> Reply:
    name, old = await _existing(call)
    if name == f"refs/heads/{call.repository.default_branch}":
        raise unprocessable("Cannot delete the default branch")
    _refuse_protected(call, name)
    await call.bare.drop(name)
    await after_refs_moved(scene(call), [Moved(name, old, ZERO)])
    return Reply(status=204)


HANDLERS: dict[str, Handler] = {
    f"GET {_R}/ref/{{ref*}}": get_ref,
    f"GET {_R}/matching-refs/{{ref*}}": matching_refs,
    f"POST {_R}/refs": create_ref,
    f"PATCH {_R}/refs/{{ref*}}": update_ref,
    f"DELETE {_R}/refs/{{ref*}}": delete_ref,
}
