"""Routes of the Git Data API: blobs, trees and commits."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime

from bot.custody.git import GitError
from bot.emulators.github.body import Body
from bot.emulators.github.call import Call, Handler, Reply
from bot.emulators.github.errors import ApiError, invalid_request, not_accessible, not_found, unprocessable
from bot.emulators.github.gitside.bare import Placement, is_sha
from bot.emulators.github.gitside.commits import Draft, Identity, read_commit, web_flow, write_commit
from bot.emulators.github.shapes import gitdata

_R = "/repos/{owner}/{repo}/git"
_MODES = {"100644": "blob", "100755": "blob", "120000": "blob", "040000": "tree", "160000": "commit"}
_LARGEST_BLOB = 100 * 1024 * 1024


async def demand_commits(call: Call) -> None:
    """An empty repository has no Git Data API."""
    call.repository.born = call.repository.born or bool(await call.bare.refs("refs/heads/"))
    if not call.repository.born:
        raise ApiError(409, "Git Repository is empty.")


async def create_blob(call: Call) -> Reply:
    await demand_commits(call)
    content = call.body.text("content")
    encoding = call.body.optional_text("encoding", "utf-8")
    if encoding == "base64":
        try:
            data = base64.b64decode("".join(content.split()), validate=True)
        except binascii.Error:
            raise unprocessable("content is not valid Base64") from None
    elif encoding == "utf-8":
        data = content.encode("utf-8", "surrogatepass")
    else:
        raise unprocessable("encoding must be utf-8 or base64")
    if len(data) > _LARGEST_BLOB:
        raise unprocessable("Blob is too big")
    sha = await call.bare.write("blob", data)
    return Reply({"sha": sha, "url": call.urls.repo(call.repository.full_name, f"/git/blobs/{sha}")}, 201)


async def get_blob(call: Call) -> Reply:
    sha = call.values["sha"]
    await demand_commits(call)
    if not is_sha(sha):
        raise unprocessable("The sha parameter must be exactly 40 characters and contain only [0-9a-f].")
    if await call.bare.kind(sha) != "blob":
        raise not_found()
    data = await call.bare.blob(sha)
    if "raw" in call.accept:
        return Reply(raw=data, media_type="application/vnd.github.raw")
    return Reply(
        {
            "sha": sha,
            "node_id": f"B_kw{sha[:20]}",
            "size": len(data),
            "url": call.urls.repo(call.repository.full_name, f"/git/blobs/{sha}"),
            "content": base64.encodebytes(data).decode(),
            "encoding": "base64",
        }
    )


async def create_tree(call: Call) -> Reply:
    await demand_commits(call)
    base = call.body.optional_text("base_tree")
    if base is not None:
        base = await call.bare.resolve(base, "tree")
        if base is None:
            raise unprocessable("base_tree is not a valid tree oid")
    entries = call.body.objects("tree")
    if not entries:
        raise unprocessable("Invalid tree info")
    placements = [await _placement(call, entry, base) for entry in entries]
    _refuse_workflows(call, placements)
    await _check_objects(call, placements)
    try:
        sha = await call.bare.build_tree(base, placements)
    except GitError as failure:
        if "is not in the tree" in failure.stderr:
            raise unprocessable("GitRPC::BadObjectState") from None
        raise unprocessable("tree.path contains a malformed path component") from None
    listing = await call.bare.tree(sha)
    return Reply(gitdata.tree(call.repository, sha, listing, call.urls), 201)


async def _placement(call: Call, entry: Body, base: str | None) -> Placement:
    path = entry.text("path")
    parts = path.split("/")
    if not path or any(part in {"", ".", ".."} or part.lower() == ".git" for part in parts) or "\0" in path:
        raise unprocessable("tree.path contains a malformed path component")
    mode = entry.optional_text("mode")
    if "sha" in entry and entry.raw("sha") is None and not entry.has("content"):
        if base is None:
            raise unprocessable("tree.sha can only be null with a base_tree")
        return Placement(path, mode or "100644", None)
    if mode not in _MODES:
        raise unprocessable("Must supply a valid tree.mode")
    kind = entry.optional_text("type")
    if kind is not None and kind != _MODES[mode]:
        raise unprocessable("tree.type does not match tree.mode")
    if entry.has("content") == entry.has("sha"):
        raise unprocessable("Must supply either tree.sha or tree.content")
    if entry.has("content"):
        return Placement(path, mode, await call.bare.write("blob", entry.text("content").encode()))
    sha = entry.text("sha")
    if not is_sha(sha):
        raise unprocessable(f"tree.sha {sha} is not a valid {_MODES[mode]}")
    return Placement(path, mode, sha)


def _refuse_workflows(call: Call, placements: list[Placement]) -> None:
    """An App without the workflows permission cannot even write such a tree."""
    touches = any(item.path.startswith(".github/workflows/") for item in placements)
    if touches and call.by_app and not call.actor.may("workflows", "write"):
        raise not_accessible()


async def _check_objects(call: Call, placements: list[Placement]) -> None:
    named = [(item.sha, item.mode) for item in placements if item.sha is not None]
    kinds = await call.bare.kinds([sha for sha, _ in named]) if named else []
    for (sha, mode), kind in zip(named, kinds, strict=True):
        if mode != "160000" and kind != _MODES[mode]:
            raise unprocessable(f"tree.sha {sha} is not a valid {_MODES[mode]}")


async def get_tree(call: Call) -> Reply:
    await demand_commits(call)
    sha = await call.bare.resolve(call.values["sha"], "tree")
    if sha is None:
        raise not_found()
    listing = await call.bare.tree(sha, recursive=bool(call.query.get("recursive")))
    return Reply(gitdata.tree(call.repository, sha, listing, call.urls))


async def create_commit(call: Call) -> Reply:
    await demand_commits(call)
    message = call.body.text("message")
    tree = call.body.text("tree")
    if await call.bare.kind(tree) != "tree":
        raise unprocessable("Tree SHA does not exist")
    parents = call.body.texts("parents")
    for parent, kind in zip(parents, await call.bare.kinds(parents) if parents else [], strict=True):
        if not is_sha(parent) or kind != "commit":
            raise unprocessable("Parent SHA does not exist or is not a commit object")
    author, committer = call.body.object("author"), call.body.object("committer")
    now = call.world.clock.now()
    own = Identity(call.user.login, call.user.email, now)
    signs = call.by_app and author is None and committer is None and not call.body.has("signature")
    written = _identity(author, now) or own
    draft = Draft(
        tree=tree,
        parents=parents,
        message=message,
        author=written,
        committer=_identity(committer, now) or (web_flow(now) if signs else written),
        signature=call.body.optional_text("signature"),
        sign=signs,
    )
    sha = await write_commit(call.bare, draft)
    return Reply(gitdata.git_commit(call.repository, await read_commit(call.bare, sha), call.urls), 201)


def _identity(asked: Body | None, now: datetime) -> Identity | None:
    if asked is None:
        return None
    date = asked.optional_text("date")
    try:
        moment = datetime.fromisoformat(date) if date else now
    except ValueError:
        raise invalid_request("date is not a valid ISO 8601 timestamp.") from None
    if moment.tzinfo is None:
        raise invalid_request("date is not a valid ISO 8601 timestamp.")
    return Identity(asked.text("name"), asked.text("email"), moment)


async def get_commit(call: Call) -> Reply:
    await demand_commits(call)
    sha = call.values["sha"]
    if await call.bare.kind(sha) != "commit":
        raise not_found()
    return Reply(gitdata.git_commit(call.repository, await read_commit(call.bare, sha), call.urls))


HANDLERS: dict[str, Handler] = {
    f"POST {_R}/blobs": create_blob,
    f"GET {_R}/blobs/{{sha}}": get_blob,
    f"POST {_R}/trees": create_tree,
    f"GET {_R}/trees/{{sha*}}": get_tree,
    f"POST {_R}/commits": create_commit,
    f"GET {_R}/commits/{{sha}}": get_commit,
}
