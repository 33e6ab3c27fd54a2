"""Rows of the localisation benchmark, the source archives they run on, and which files are candidates.

Data and rules are those of the published baselines (spec "retrieval" §1), so figures can be compared with them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_CODE = frozenset(
    [
        ".py",
        ".pyx",
        ".pyi",
        ".js",
        ".jsx",
        ".mjs",
        ".cjs",
        ".ts",
        ".tsx",
        ".go",
        ".java",
        ".kt",
        ".rs",
        ".c",
        ".h",
        ".cc",
        ".cpp",
        ".hpp",
        ".cs",
        ".rb",
        ".php",
        ".scala",
        ".swift",
        ".vue",
        ".svelte",
    ]
)
_TEST_FOLDERS = frozenset(
    ["test", "tests", "testing", "__tests__", "e2e", "spec", "specs", "testdata", "test_data", "fixtures", "__mocks__"]
)
_SKIPPED = frozenset(["node_modules", "vendor", "third_party", ".git", "dist", "build", "_vendor"])
_TEST_NAME = re.compile(
    r"(^test_|_test\.|\.test\.|\.spec\.|_spec\.|^conftest\.py$|tests?\.py$|Tests?\.java$|TestCase\.java$|^IT[A-Z].*\.java$)"
)
LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """One issue: `gold` are the files its fix changed, `symbols` and `lines` what it touched in them."""

    id: str
    project: str
    archive: str
    query: str
    gold: tuple[str, ...]
    symbols: dict[str, list[str]]
    lines: dict[str, list[list[int]]]
    named: bool
    commit: str = ""
    """Of a row without an archive: its tree is in a git mirror of the project."""


def rows(data: Path, *, mirrored: bool = False) -> list[Row]:
    """Rows that run from an archive, and with `mirrored` those that need a git mirror of their project."""
    found = []
    for line in data.read_text("utf-8").splitlines():
        raw = json.loads(line)
        spec = raw["snapshot"].get("spec")
        if spec or mirrored:
            found.append(
                Row(
                    raw["id"],
                    raw["repo"],
                    spec or f"{raw['repo'].replace('/', '+')}-{raw['base_commit']}",
                    raw["query"],
                    tuple(raw["gold_files"]),
                    raw.get("gold_symbols") or {},
                    raw.get("gold_lines") or {},
                    raw["path_in_query"],
                    "" if spec else raw["base_commit"],
                )
            )
    return found


def by_archive(found: list[Row]) -> dict[str, list[Row]]:
    """Rows of each archive, so that it is indexed once."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in found:
        groups[row.archive].append(row)
    return dict(sorted(groups.items()))


def is_candidate(path: str) -> bool:
    """Source files that are neither tests nor vendored; gold files all are."""
    *folders, name = path.split("/")
    if Path(name).suffix.lower() not in _CODE or name.endswith((".min.js", ".d.ts")):
        return False
    return not (set(folders) & _SKIPPED or _is_test(folders, name))


def _is_test(folders: list[str], name: str) -> bool:
    for folder in (folder.lower() for folder in folders):
        if folder in _TEST_FOLDERS - {"test", "testing"} or (folder == "test" and folders[0] != "django"):
            return True
    return bool(_TEST_NAME.search(name)) and name not in {"test.py", "tests.py"}


def candidates(snapshot: Path) -> Iterator[Path]:
    """Candidate files of an unpacked archive, relative to it."""
    for folder, folders, names in os.walk(snapshot):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            inside = path.relative_to(snapshot)
            if is_candidate(inside.as_posix()) and not path.is_symlink() and path.stat().st_size <= LARGEST:
                yield inside


def snapshot(archive: str, home: Path) -> Path:
    """The unpacked archive, fetched by the registries' own clients when it is not there."""
    place = home / archive.replace("==", "-").replace("@", "-")
    if not place.is_dir():
        home.mkdir(parents=True, exist_ok=True)
        print(f"fetching {archive}", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            _fetched(archive, Path(scratch)).rename(place)
    return place


def _fetched(archive: str, scratch: Path) -> Path:
    if "==" in archive:
        places = (str(Path(__file__).parents[1] / ".venv-setup" / "bin"), os.environ.get("PATH", os.defpath))
        command = [
            shutil.which("uvx", path=os.pathsep.join(places)) or "uvx",
            "unearth",
            "--no-binary",
            "--download",
            str(scratch / "got"),
            archive,
        ]
        subprocess.run(command, check=True, capture_output=True)
    else:
        (scratch / "got").mkdir()
        subprocess.run(["npm", "pack", "--silent", archive], cwd=scratch / "got", check=True, capture_output=True)
    (found,) = (scratch / "got").iterdir()
    if found.is_file():
        with tarfile.open(found) as packed:
            packed.extractall(scratch / "unpacked", filter="data")
        found = scratch / "unpacked"
    inside = list(found.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else found


def laid_out(snapshot_of: Path, to: Path) -> None:
    """Only the candidates, as a plain folder."""
    for inside in candidates(snapshot_of):
        (to / inside).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(snapshot_of / inside, to / inside)


def lay(row: Row, to: Path, *, snapshots: Path, mirrors: Path | None) -> None:
    """The row's candidates as a plain folder, from its archive or from OWNER+NAME/repo among the mirrors."""
    if not row.commit:
        laid_out(snapshot(row.archive, snapshots), to)
    elif mirrors is not None:
        _checked_out(mirrors / row.project.replace("/", "+") / "repo", row.commit, to)


def _checked_out(repository: Path, commit: str, to: Path) -> None:
    listing = _git(repository, "ls-tree", "-r", "-l", "-z", commit).split(b"\0")
    entries = [entry.split(b"\t", 1) for entry in listing if entry]
    files = [(facts.split(), path.decode("utf-8", "surrogateescape")) for facts, path in entries]
    for (mode, kind, oid, size), path in files:
        if kind == b"blob" and mode != b"120000" and is_candidate(path) and int(size) <= LARGEST:
            (to / path).parent.mkdir(parents=True, exist_ok=True)
            (to / path).write_bytes(_git(repository, "cat-file", "blob", oid.decode()))


def _git(repository: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(repository), *arguments], check=True, capture_output=True).stdout
