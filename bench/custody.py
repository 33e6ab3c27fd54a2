"""How long the sandbox line takes for a generated repository. Prints one JSON object last.

`in` fills a sandbox, `again` begins another with what was kept of it and brings it to a tree with ten changed files, `out` takes changes.

The sandbox is the local server's; `--sandbox e2b` takes the one that E2B_API_KEY (E2B_API_URL, E2B_SANDBOX_URL) leads to, and
`--sandbox directory` none at all.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from bot.custody.export import populate, settle
from bot.custody.importer import capture
from bot.custody.mirror import Mirror
from bot.domain.ids import CommitId, RepositoryId, TreeId
from bot.providers.sandbox.e2b import E2BSandboxes
from bot.providers.sandbox.port import WORK, Sandbox
from bot.sandboxd.serve import Config, running
from tests.unit.custody.local import Clone, LocalSandbox

T = TypeVar("T")
CHANGED = 10
LABELS = {"bench": "custody"}
KEPT = "pullwright-bench-custody"


def generate(clone: Clone, files: int) -> CommitId:
    """A repository of `files` source files of about 2 kB in a few hundred directories, packed as clones are."""
    chance = random.Random(7)
    words = [f"name_{chance.randrange(10**6)}" for _ in range(3000)]
    body = {
        f"src/package_{number % 80}/part_{number % 7}/module_{number}.py": "".join(
            f"    {chance.choice(words)} = {chance.choice(words)}({number})\n" for _ in range(60)
        )
        for number in range(files)
    }
    commit = clone.commit(body)
    clone.git("repack", "-q", "-a", "-d")
    return commit


async def timed(act: Awaitable[T], figures: dict[str, float], name: str) -> T:
    started = time.perf_counter()
    result = await act
    figures[name] = round(time.perf_counter() - started, 4)
    return result


@asynccontextmanager
async def sandbox(kind: str, directory: Path) -> AsyncIterator[tuple[Sandbox, E2BSandboxes | None]]:
    """A sandbox of the asked kind, ended afterwards, and who makes more of them."""
    if kind == "directory":
        yield LocalSandbox(directory), None
        return
    async with AsyncExitStack() as stack:
        if kind == "e2b":
            keys = ("E2B_API_KEY", "E2B_API_URL", "E2B_SANDBOX_URL")
            api_key, api_url, sandbox_url = (os.environ.get(key) for key in keys)
            sandboxes = E2BSandboxes(api_key or "", api_url, sandbox_url)
        else:
            home = Path(stack.enter_context(TemporaryDirectory(prefix="bench-sandboxd-")))
            end = await stack.enter_async_context(running(Config(home=home, api_key="e2b_" + "0" * 40)))
            sandboxes = E2BSandboxes(end.api_key, end.api_url, end.sandbox_url)
        made = await sandboxes.create(template="base", labels=LABELS, lifetime_seconds=600)
        stack.push_async_callback(made.kill)
        yield made, sandboxes


async def again(mirror: Mirror, machine: Sandbox, sandboxes: E2BSandboxes, tree: TreeId) -> dict[str, float]:
    """Keep what stands in the sandbox, and have another begin with it and hold another tree."""
    figures: dict[str, float] = {}
    if not await timed(machine.snapshot(KEPT), figures, "snapshot"):
        return {}
    template = await sandboxes.snapshot_of(KEPT) or ""
    create = sandboxes.create(template=template, labels=LABELS, lifetime_seconds=600)
    other = await timed(create, figures, "create_from_it")
    try:
        await timed(settle(mirror, other, tree), figures, "settle")
    finally:
        await other.kill()
        await sandboxes.forget(KEPT, but="")
    return figures


async def measure(kind: str, files: int, rounds: int) -> dict[str, object]:
    """Into the sandbox once, out of it a few times: untouched, with ten changed files, and again."""
    into: dict[str, float] = {}
    out: dict[str, float] = {}
    with TemporaryDirectory(prefix="bench-custody-") as directory:
        root = Path(directory)
        clone = Clone(root / "clone")
        base = generate(clone, files)
        mirror = Mirror(root / "mirror", RepositoryId(1))
        await timed(mirror.from_directory(clone.path), into, "import_clone")
        tree = await mirror.tree_of(base)
        async with sandbox(kind, root / "sandbox") as (machine, sandboxes):
            await timed(populate(mirror, machine, tree), into, "populate")
            other = await _changed(mirror, tree)
            more = await again(mirror, machine, sandboxes, other) if sandboxes is not None else {}
            await timed(capture(mirror, machine, base), out, "first_untouched")
            untouched = [await _again(mirror, machine, base) for _ in range(rounds)]
            edit = f"for f in $(git ls-files | head -{CHANGED}); do echo 'x = 1' >> $f; done; echo new > new.py"
            done = await machine.run(edit, timeout_seconds=60, cwd=WORK)
            changed = [await _again(mirror, machine, base) for _ in range(rounds)]
            change = await capture(mirror, machine, base)
    out["untouched"] = round(sorted(untouched)[rounds // 2], 4)
    out["changed"] = round(sorted(changed)[rounds // 2], 4)
    right = done.exit_code == 0 and len(change.paths) == CHANGED + 1
    return {
        "bench": "custody",
        "sandbox": kind,
        "files": files,
        "in": into,
        "again": more,
        "out": out,
        "right": right,
    }


async def _changed(mirror: Mirror, tree: TreeId) -> TreeId:
    """The tree with ten other files."""
    entries = (await mirror.entries(tree))[:CHANGED]
    blobs = await mirror.write_blobs([entry.path.encode() for entry in entries])
    return await mirror.write_tree(
        tree, put=[replace(entry, blob=blob) for entry, blob in zip(entries, blobs, strict=True)]
    )


async def _again(mirror: Mirror, machine: Sandbox, base: CommitId) -> float:
    started = time.perf_counter()
    await capture(mirror, machine, base)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=6000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sandbox", choices=["local", "e2b", "directory"], default="local")
    given = parser.parse_args()
    print(json.dumps(asyncio.run(measure(given.sandbox, given.files, given.rounds))))


if __name__ == "__main__":
    main()
