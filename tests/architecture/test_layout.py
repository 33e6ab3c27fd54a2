"""The rules of design §3 that import-linter cannot say: colours, sizes, who may start a process, what a checkout may name."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BOT = ROOT / "bot"
DATA = BOT / "demo" / "repository"


def modules() -> Iterator[Path]:
    return (path for path in sorted(BOT.rglob("*.py")) if DATA not in path.parents)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def pure(path: Path) -> bool:
    room = path.relative_to(BOT).parts
    if room[0] in {"domain", "policy"}:
        return True
    return room[0] in {"stages", "audit", "evaluation"} and path.name != "run.py"


@pytest.mark.parametrize("path", [p for p in modules() if pure(p)], ids=lambda p: str(p.relative_to(BOT)))
def test_what_decides_does_not_touch_the_world(path: Path):
    tree = parsed(path)
    forbidden = {"os", "random", "secrets", "subprocess", "asyncio", "socket", "time", "httpx", "shutil", "tempfile"}
    for node in ast.walk(tree):
        assert not isinstance(node, ast.AsyncFunctionDef | ast.Await), f"async in line {getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            assert not {alias.name.split(".")[0] for alias in node.names} & forbidden
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] not in forbidden
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "open"
        if isinstance(node, ast.Attribute):
            assert node.attr not in {"now", "utcnow", "today", "read_text", "read_bytes", "write_text", "write_bytes"}


@pytest.mark.parametrize("path", list(modules()), ids=lambda p: str(p.relative_to(BOT)))
def test_modules_and_functions_stay_small(path: Path):
    assert len(path.read_text("utf-8").splitlines()) <= 400
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or node.lineno) - node.lineno < 60, node.name


def test_only_named_modules_start_processes():
    allowed = {"custody/git.py", "sandboxd", "retrieval/parsers.py"}
    for path in modules():
        name = str(path.relative_to(BOT))
        if name in allowed or name.split("/", maxsplit=1)[0] in allowed or name.startswith("custody/inside/"):
            continue
        text = path.read_text("utf-8")
        assert not re.search(
            r"^\s*(import subprocess|from subprocess)|create_subprocess|os\.system|os\.exec|os\.spawn",
            text,
            re.MULTILINE,
        ), name
        assert "shell=True" not in text, name
        assert not re.search(r"^\s*(import|from) (git|dulwich|pygit2)\b", text, re.MULTILINE), name


def test_no_room_is_a_drawer():
    drawers = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc", "base"}
    named = [p for p in BOT.rglob("*") if DATA not in p.parents and p.stem in drawers]
    assert named == []


def test_every_room_says_what_it_is_for():
    rooms = [p for p in BOT.iterdir() if p.is_dir() and p.name != "__pycache__"]
    missing = [room.name for room in rooms if not (room / "README.md").is_file()]
    assert missing == []


def test_stages_have_one_async_file_and_texts():
    for stage in (p for p in (BOT / "stages").iterdir() if p.is_dir() and p.name != "__pycache__"):
        assert (stage / "run.py").is_file(), stage.name


def tracked() -> list[str]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    return [name for name in listing.stdout.decode().split("\0") if name]


def test_no_file_names_a_registry_or_this_machine():
    hosts = re.compile(
        r"://[\w.-]*(pypi|pythonhosted|npmjs|debian)\.(org|com)|\b(pypi|pythonhosted|npmjs)\.(org|com)\b"
    )
    found = []
    for name in tracked():
        path = ROOT / name
        if not path.is_file() or path.stat().st_size > 2_000_000 or path == Path(__file__):
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        if hosts.search(text) or f"{ROOT}/" in text:
            found.append(name)
    assert found == []


def test_tests_do_not_patch_our_own_code():
    patching = re.compile(r"monkeypatch\.setattr|mock\.patch|(?<!def )(?<![\w.])patch\(")
    found = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if path != Path(__file__) and path.name != "conftest.py" and patching.search(path.read_text("utf-8"))
    ]
    assert found == []


def test_nothing_is_skipped_silently():
    skipping = re.compile(r"^\s*(@pytest\.mark\.(skip|xfail)|pytest\.(skip|xfail|importorskip)\()", re.MULTILINE)
    found = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if path != Path(__file__) and "live" not in path.parts and skipping.search(path.read_text("utf-8"))
    ]
    assert found == []


def test_only_two_modules_catch_everything():
    """`workflow` and `web` hold the two boundaries that report what nobody foresaw (style §4)."""
    broad: dict[str, int] = {}
    for path in modules():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ExceptHandler):
                names = {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)} if node.type else {"bare"}
                if names & {"Exception", "BaseException", "bare"}:
                    broad.setdefault(str(path.relative_to(BOT)), 0)
                    broad[str(path.relative_to(BOT))] += 1
    assert {name.split("/")[0] for name in broad} <= {"workflow", "web", "sandboxd"}, broad
    assert sum(count for name, count in broad.items() if name.split("/")[0] != "sandboxd") <= 2, broad


WORKFLOW_STEPS = {"gather", "create_task", "TaskGroup"}


def test_workflow_bodies_are_one_sequential_coroutine():
    """`gather` over durable steps gave wrong results after a crash (specs/durable.md §1.i)."""
    for path in (BOT / "workflow").glob("*.py"):
        used = {node.attr for node in ast.walk(parsed(path)) if isinstance(node, ast.Attribute)} & WORKFLOW_STEPS
        assert not used, f"{path.name}: {used}"
