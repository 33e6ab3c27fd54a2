"""First index, re-index after a commit of 10 files, query, memory and disk, beside parsing alone and Universal Ctags, in one run.

  python -m bench.index [--files 1000] [--files 10000] [--files 50000] [--sources DIR]

The trees are real code of what is installed here (this Python, its packages, C headers, npm) and of the folders given by
--sources. When there is less than asked for, files come again with a quarter of their names changed, another quarter each
time. Prints one JSON object last; processor seconds stand beside wall seconds, for machines where others work, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import resource
import shutil
import site
import subprocess
import sys
import sysconfig
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from bot.custody.mirror import Mirror
from bot.domain.ids import RepositoryId
from bot.retrieval.index import index_folder, index_tree
from bot.retrieval.languages import has_grammar, language_of, tools_for
from bot.retrieval.rank import rank
from bot.retrieval.store import Store
from bot.retrieval.view import View

CHANGED = 10
LARGEST = 400_000
PARSED = 10_000
"""Files that are parsed alone; more are reckoned up."""
QUERIES = (
    "Timeout is ignored when a connection is retried\n\nhttp.client.HTTPConnection waits forever when `timeout` is given",
    "json.dumps fails on subclasses of int\n\n`JSONEncoder.default` is never called",
    "zipfile: wrong date for members written by another system",
)
_NAME = re.compile(r"\b[A-Za-z_]\w{5,}\b")


def originals(more: list[Path]) -> list[Path]:
    """Real files of code on this machine, mixed."""
    npm = shutil.which("npm")
    roots = [Path(sysconfig.get_paths()["stdlib"]), *map(Path, site.getsitepackages()), Path("/usr/include"), *more]
    roots += [Path(npm).resolve().parents[1]] if npm else []
    found = {
        Path(folder, name)
        for root in roots
        for folder, _, names in os.walk(root)
        for name in names
        if has_grammar(language_of(name)) and not Path(folder, name).is_symlink()
    }
    kept = sorted(path for path in found if 0 < path.stat().st_size <= LARGEST)
    random.Random(1).shuffle(kept)
    return kept


def varied(text: str, copy: int) -> str:
    """The text with a quarter of its names changed; `copy` says which quarter, and into what."""

    def name(match: re.Match[str]) -> str:
        word = match[0]
        return f"{word}{copy}" if zlib.crc32(f"{copy} {word}".encode()) % 4 == 0 else word

    return _NAME.sub(name, text) if copy else text


def tree(root: Path, files: int, more: list[Path]) -> int:
    """Write that many different files; their bytes."""
    sources = originals(more)
    written, size, seen = 0, 0, set[int]()
    for number in range(files * 2):
        copy, source = number // len(sources), sources[number % len(sources)]
        data = varied(source.read_bytes().decode("utf-8", "surrogateescape"), copy).encode("utf-8", "surrogateescape")
        if hash(data) in seen:
            continue
        seen.add(hash(data))
        inside = "/".join(part.replace("node_modules", "modules").lstrip(".") for part in source.parts[1:])
        path = root / f"part_{copy}" / inside
        path.parent.mkdir(parents=True, exist_ok=True)
        size += path.write_bytes(data)
        written += 1
        if written == files:
            break
    return size


def paths_of(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def parse(root: Path, part: int, parts: int) -> dict[str, float]:
    """Parsing alone of every `parts`-th file, at most 10,000 in all."""
    chosen = paths_of(root)
    chosen = chosen[:: max(1, len(chosen) // PARSED)][:PARSED]
    held = [(tools_for(language_of(path.name)).parser, path.read_bytes()) for path in chosen[part::parts]]
    wall, cpu = time.perf_counter(), time.process_time()
    for parser, data in held:
        parser.parse(data)
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "files": len(held)}


def parse_alone(root: Path, files: int) -> tuple[float, float]:
    """Wall and processor seconds for all files, one process on each core."""
    cores = os.cpu_count() or 1
    command = [sys.executable, "-m", "bench.index", "--parse", str(root), "--parts", str(cores), "--part"]
    workers = [subprocess.Popen([*command, str(part)], stdout=subprocess.PIPE) for part in range(cores)]
    answers = [json.loads(worker.communicate()[0]) for worker in workers]
    scale = files / sum(answer["files"] for answer in answers)
    return max(a["wall"] for a in answers) * scale, sum(a["cpu"] for a in answers) * scale


def ctags(root: Path) -> float | None:
    """Wall seconds of Universal Ctags over the tree; None where it is not installed."""
    if (
        shutil.which("ctags") is None
        or b"Universal" not in subprocess.run(["ctags", "--version"], check=False, capture_output=True).stdout
    ):
        return None
    start = time.perf_counter()
    subprocess.run(
        ["ctags", "-R", "-f", os.devnull, str(root)], check=False, capture_output=True
    )  # 1: some files puzzle it
    return time.perf_counter() - start


def _git(root: Path, *words: str) -> None:
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0")
    subprocess.run(["git", "-C", str(root), *identity, *words], check=True, capture_output=True)


def change(root: Path) -> None:
    """Eight files changed, one new, one gone."""
    paths = [path for path in paths_of(root) if ".git" not in path.parts]
    chosen = paths[:: max(1, len(paths) // (CHANGED - 1))][: CHANGED - 1]
    for path in chosen[1:]:
        path.write_bytes(path.read_bytes() + b"\n\n# changed here\n")
    chosen[0].unlink()
    (root / "new_module.py").write_bytes(b"def new_module():\n    pass\n")


async def after_a_commit(store: Store, root: Path, home: Path) -> tuple[View, dict[str, object]]:
    """Seconds from the commit's tree, in a mirror that has it, to a view that can be asked."""
    for words in (("init", "-q"), ("add", "-A", "-f"), ("commit", "-qm", "one")):
        _git(root, *words)
    mirror = Mirror(home, RepositoryId(1))
    await index_tree(store, mirror, await mirror.tree_of(await mirror.from_directory(root)))
    change(root)
    _git(root, "add", "-A", "-f")
    _git(root, "commit", "-qm", "two")
    tree = await mirror.tree_of(await mirror.from_directory(root))
    store.close()
    wall, cpu = time.perf_counter(), time.process_time()
    view, report = await index_tree(Store(store.path), mirror, tree)
    spent = {"seconds": time.perf_counter() - wall, "processor_seconds": time.process_time() - cpu, "read": report.read}
    return view, {"after_a_commit_of_10": spent}


def queries(view: View) -> dict[str, object]:
    """The slowest of three queries, each asked twice: the first time it is cold."""
    found = []
    for query in QUERIES:
        for turn in ("cold", "warm"):
            wall, cpu = time.perf_counter(), time.process_time()
            rank(view, query)
            found.append((turn, time.perf_counter() - wall, time.process_time() - cpu))
    return {
        f"query_{turn}": {
            "seconds": max(wall for kind, wall, _ in found if kind == turn),
            "processor_seconds": max(cpu for kind, _, cpu in found if kind == turn),
        }
        for turn in ("cold", "warm")
    }


def _cpu() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def measure(files: int, more: list[Path]) -> dict[str, object]:
    """One size."""
    with tempfile.TemporaryDirectory() as scratch:
        root, path = Path(scratch, "tree"), Path(scratch, "index.db")
        size = tree(root, files, more)
        alone, alone_cpu = parse_alone(root, files)
        wall, cpu = time.perf_counter(), _cpu()
        store = Store(path)
        _, report = index_folder(store, root)
        first, first_cpu = time.perf_counter() - wall, _cpu() - cpu
        disk = sum(part.stat().st_size for part in path.parent.glob("index.db*"))
        tags = ctags(root)
        view, again = asyncio.run(after_a_commit(store, root, Path(scratch, "mirrors")))
        return {
            "files": report.files,
            "mb": size / 1e6,
            "first": {"seconds": first, "processor_seconds": first_cpu},
            "parse_alone_on_all_cores": {"seconds": alone, "processor_seconds": alone_cpu},
            "times_parse_alone": {"wall": first / alone, "processor": first_cpu / alone_cpu},
            "ctags_seconds": tags,
            **again,
            **queries(view),
            "disk_share_of_source": disk / size,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "peak_mb_of_a_parsing_process": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
        }


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    return round(value, 3) if isinstance(value, float) else value


def _sizes(given: argparse.Namespace) -> Iterator[object]:
    """Each size in a process of its own, so that its peak of memory is its own."""
    for files in given.files or [1000, 10_000]:
        print(f"{files} files", file=sys.stderr)
        more = [word for folder in given.sources for word in ("--sources", str(folder))]
        command = [sys.executable, "-m", "bench.index", "--one", str(files), *more]
        yield json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, action="append")
    parser.add_argument("--sources", type=Path, action="append", default=[])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--parse", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--parts", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.parse:
        print(json.dumps(parse(given.parse, given.part, given.parts)))
    elif given.one:
        print(json.dumps(_rounded(measure(given.one, given.sources))))
    else:
        print(json.dumps({"cores": os.cpu_count(), "sizes": list(_sizes(given))}))


if __name__ == "__main__":
    main()
