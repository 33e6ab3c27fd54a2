"""Routes of a repository as a whole: settings, people, branches, rules, contents."""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import quote

from bot.emulators.github.call import Call, Handler, Json, Reply
from bot.emulators.github.errors import ApiError, custom, not_found
from bot.emulators.github.gitside.bare import TreeEntry
from bot.emulators.github.gitside.commits import read_commit
from bot.emulators.github.routes.paging import paged
from bot.emulators.github.routes.scene import scene
from bot.emulators.github.shapes import gitdata, people, repositories
from bot.emulators.github.versions import OLD_VERSION
from bot.emulators.github.webhooks.events import on_repository
from bot.emulators.github.world import ROLES, at_least

_R = "/repos/{owner}/{repo}"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_PLAIN = {"maintain": "write", "triage": "read"}


def _full(call: Call) -> Json:
    role = None
    if call.actor.kind == "person":
        role = call.world.role(call.repository, call.user)
    return repositories.full(call.repository, call.urls, role)


async def get_repository(call: Call) -> Reply:
    return Reply(_full(call))


async def update_repository(call: Call) -> Reply:
    """Renaming leaves a redirect behind; archiving makes the rest read-only."""
    item = call.repository
    name = call.body.optional_text("name")
    if name and name != item.name:
        if not _NAME.fullmatch(name):
            raise custom("Repository", "name can only contain ASCII letters, digits, and the characters ., -, and _")
        if call.world.repository(f"{item.owner.login}/{name}") is not None:
            raise custom("Repository", "name already exists on this account")
        before = item.name
        item.former_names.add(item.full_name.lower())
        item.name = name
        on_repository(scene(call), "renamed", changes={"repository": {"name": {"from": before}}})
    if call.body.has("archived") and call.body.flag("archived") != item.archived:
        item.archived = call.body.flag("archived")
        on_repository(scene(call), "archived" if item.archived else "unarchived")
    branch = call.body.optional_text("default_branch")
    if branch:
        if await call.bare.ref(f"refs/heads/{branch}") is None:
            raise custom("Repository", "The branch default_branch was not found. Please push that ref first.")
        item.default_branch = branch
        await call.bare.point_head(branch)
    _switches(call)
    item.updated_at = call.world.clock.now()
    return Reply(_full(call))


def _switches(call: Call) -> None:
    item = call.repository
    if call.body.has("delete_branch_on_merge"):
        item.delete_branch_on_merge = call.body.flag("delete_branch_on_merge")
    methods = set(item.merge_methods)
    for method, key in (("merge", "merge_commit"), ("squash", "squash_merge"), ("rebase", "rebase_merge")):
        if call.body.has(f"allow_{key}"):
            (methods.add if call.body.flag(f"allow_{key}") else methods.discard)(method)
    item.merge_methods = frozenset(methods)


async def list_collaborators(call: Call) -> Reply:
    found = []
    for login, role in call.repository.roles.items():
        person = call.world.find_user(login)
        if person is not None and role != "none":
            found.append({**people.user(person, call.urls), "role_name": role, "permissions": _flags(role)})
    return paged(call, found)


async def is_collaborator(call: Call) -> Reply:
    role = call.repository.roles.get(call.values["login"].lower(), "none")
    if role == "none":
        raise not_found()
    return Reply(status=204)


async def permission(call: Call) -> Reply:
    """`permission` is the coarse level (maintain is write, triage is read); `role_name` the exact one."""
    person = call.world.user(call.values["login"])
    role = call.world.role(call.repository, person)
    if call.actor.user is person and call.by_app:
        role = "none"
    return Reply(
        {
            "permission": _PLAIN.get(role, role),
            "user": {**people.user(person, call.urls), "role_name": role, "permissions": _flags(role)},
            "role_name": role,
        }
    )


async def set_permission(call: Call) -> Reply:
    """Adds or re-grades a collaborator at once; the real service sends an invitation first."""
    person = call.world.user(call.values["login"])
    names = {"pull": "read", "push": "write"}
    asked = call.body.optional_text("permission", "push") or "push"
    role = names.get(asked, asked)
    if role not in ROLES:
        raise custom("Repository", "permission is invalid")
    call.repository.roles[person.login.lower()] = role
    return Reply(status=204)


def _flags(role: str) -> dict[str, bool]:
    levels = {"pull": "read", "triage": "triage", "push": "write", "maintain": "maintain", "admin": "admin"}
    return {flag: at_least(role, level) for flag, level in levels.items()}


async def list_branches(call: Call) -> Reply:
    refs = await call.bare.refs("refs/heads/")
    names = [(name.removeprefix("refs/heads/"), sha) for name, sha in refs.items()]
    if call.query.get("protected") in {"true", "false"}:
        wanted = call.query["protected"] == "true"
        names = [(name, sha) for name, sha in names if (name in call.repository.protections) == wanted]
    return paged(call, [repositories.short_branch(call.repository, name, sha, call.urls) for name, sha in names])


async def get_branch(call: Call) -> Reply:
    name = call.values["branch"]
    sha = await call.bare.ref(f"refs/heads/{name}")
    if sha is None:
        raise ApiError(404, "Branch not found")
    commit = gitdata.commit(call.world, call.repository, await read_commit(call.bare, sha), call.urls)
    return Reply(repositories.branch(call.repository, name, commit, call.urls))


async def branch_protection(_call: Call) -> Reply:
    """Rules here come from rulesets, so the classic protection endpoint has nothing to show."""
    raise ApiError(404, "Branch not protected")


async def branch_rules(call: Call) -> Reply:
    protection = call.repository.protection(call.values["branch"])
    return paged(call, repositories.rules(call.repository, protection) if protection else [])


async def ruleset(call: Call) -> Reply:
    """Who may bypass the rules is told only to those who may change them."""
    number = call.number("ruleset_id")
    every = call.repository.protections.values()
    rule = next((one for one in every if repositories.ruleset_id(call.repository, one) == number), None)
    if rule is None:
        raise not_found()
    changes = call.actor.may("administration", "write") if call.by_app else call.has_role("admin")
    return Reply(repositories.ruleset(call.repository, rule, bypass=changes and call.actor.granted("administration")))


async def list_keys(call: Call) -> Reply:
    return paged(call, repositories.deploy_keys(call.repository, call.urls))


async def list_forks(call: Call) -> Reply:
    """Those that the asker may see."""
    every = (one for one in call.world.registry.repositories.values() if one.parent is call.repository)
    seen = [one for one in every if not one.private or (call.actor.user and call.world.role(one, call.user) != "none")]
    return paged(call, [repositories.repository(one, call.urls) for one in seen])


async def root_contents(call: Call) -> Reply:
    return await _contents(call, "")


async def contents(call: Call) -> Reply:
    return await _contents(call, call.values["path"].strip("/"))


async def _contents(call: Call, path: str) -> Reply:
    reference = call.query.get("ref") or call.repository.default_branch
    sha = await call.bare.resolve(reference)
    if sha is None:
        if not await call.bare.refs("refs/heads/"):
            raise ApiError(404, "This repository is empty.")
        raise ApiError(404, f"No commit found for the ref {reference}")
    entry = await call.bare.at(sha, path) if path else None
    if path and entry is None:
        raise not_found()
    if entry is None or entry.kind == "tree":
        inside = await call.bare.tree(f"{sha}:{path}" if path else sha)
        prefix = f"{path}/" if path else ""
        return Reply([_entry(call, item, prefix + item.path, reference, listed=True) for item in inside])
    if entry.kind == "commit":
        return Reply({**_entry(call, entry, path, reference), "submodule_git_url": ""})
    data = await call.bare.blob(entry.sha)
    if "raw" in call.accept:
        return Reply(raw=data, media_type="application/vnd.github.raw; charset=utf-8")
    shape = _entry(call, entry, path, reference)
    if entry.mode == "120000":
        return Reply({**shape, "target": data.decode("utf-8", "replace")})
    small = len(data) <= 1024 * 1024
    shape["encoding"] = "base64" if small else "none"
    shape["content"] = base64.encodebytes(data).decode() if small else ""
    return Reply(shape)


def _kind(call: Call, entry: TreeEntry, *, listed: bool) -> str:
    if entry.kind == "tree":
        return "dir"
    if entry.kind == "commit":
        return "file" if listed and call.version == OLD_VERSION else "submodule"
    return "symlink" if entry.mode == "120000" else "file"


def _entry(call: Call, entry: TreeEntry, path: str, reference: str, *, listed: bool = False) -> dict[str, Any]:
    name = call.repository.full_name
    address = call.urls.repo(name, f"/contents/{quote(path)}?ref={quote(reference)}")
    area = "trees" if entry.kind == "tree" else "blobs"
    git_address = call.urls.repo(name, f"/git/{area}/{entry.sha}")
    page = call.urls.html(f"{name}/{'tree' if entry.kind == 'tree' else 'blob'}/{reference}/{quote(path)}")
    raw = call.urls.html(f"{name}/raw/{reference}/{quote(path)}") if entry.kind == "blob" else None
    return {
        "name": path.rsplit("/", 1)[-1],
        "path": path,
        "sha": entry.sha,
        "size": entry.size or 0,
        "url": address,
        "html_url": page,
        "git_url": git_address,
        "download_url": raw,
        "type": _kind(call, entry, listed=listed),
        "_links": {"self": address, "git": git_address, "html": page},
    }


HANDLERS: dict[str, Handler] = {
    f"GET {_R}": get_repository,
    f"PATCH {_R}": update_repository,
    f"GET {_R}/collaborators": list_collaborators,
    f"GET {_R}/collaborators/{{login}}": is_collaborator,
    f"GET {_R}/collaborators/{{login}}/permission": permission,
    f"PUT {_R}/collaborators/{{login}}": set_permission,
    f"GET {_R}/branches": list_branches,
    f"GET {_R}/branches/{{branch*}}": get_branch,
    f"GET {_R}/branches/{{branch*}}/protection": branch_protection,
    f"GET {_R}/rules/branches/{{branch*}}": branch_rules,
    f"GET {_R}/rulesets/{{ruleset_id}}": ruleset,
    f"GET {_R}/keys": list_keys,
    f"GET {_R}/forks": list_forks,
    f"GET {_R}/contents": root_contents,
    f"GET {_R}/contents/{{path*}}": contents,
}
