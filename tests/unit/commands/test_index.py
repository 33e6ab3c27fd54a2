"""`pullwright search` and `context` on places that are no ordinary repository, and with tasks that are no ordinary text."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bot.commands import index
from bot.domain.errors import UserError
from bot.settings import Settings
from tests.unit.retrieval.test_index import PROJECT, put
from tests.unit.retrieval.test_service import git

TASK = "RateLimiter forgets keys"


def asked(tmp_path: Path, directory: Path, query: str = TASK) -> list[str]:
    """Paths found, best first; the context is asked for, too."""
    settings = Settings(home=tmp_path / "home", VOYAGE_API_KEY="")
    assert index.context(directory, query, 1000, settings) == index.context(directory, query, 1000, settings)
    return [one.path for one in index.search(directory, query, settings)]


def repository(root: Path) -> Path:
    put(root, PROJECT)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    return root


def test_the_home_may_be_named_from_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    settings = Settings(home=Path("home"), VOYAGE_API_KEY="")
    assert index.search(repository(tmp_path / "clone"), TASK, settings)[0].path == "app/limits.py"


def test_a_clone_a_bare_repository_and_a_folder_of_the_same_files_answer_alike(tmp_path: Path):
    clone = repository(tmp_path / "clone")
    subprocess.run(["git", "clone", "-q", "--bare", str(clone), str(tmp_path / "bare")], check=True)
    folder = put(tmp_path / "folder", PROJECT)
    found = [asked(tmp_path, place) for place in (clone, tmp_path / "bare", folder)]
    assert found[0][0] == "app/limits.py"
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("objects", "advice"), [("sha1", "at least one commit"), ("sha256", "copy of its files without")]
)
def test_a_repository_that_cannot_be_read_is_told_what_helps(tmp_path: Path, objects: str, advice: str):
    root = tmp_path / "odd"
    put(root, PROJECT)
    git(root, "init", "-q", f"--object-format={objects}")
    git(root, "add", ".")
    if objects != "sha1":
        git(root, "commit", "-qm", "one")
    with pytest.raises(UserError, match="Cannot read the HEAD") as refused:
        asked(tmp_path, root)
    assert advice in refused.value.hint


def test_an_empty_folder_and_an_empty_commit_have_nothing_to_find(tmp_path: Path):
    (tmp_path / "none").mkdir()
    assert asked(tmp_path, tmp_path / "none") == []
    git(tmp_path / "none", "init", "-q")
    git(tmp_path / "none", "commit", "-qm", "nothing", "--allow-empty")
    assert asked(tmp_path, tmp_path / "none") == []


@pytest.mark.parametrize("name", ["gone", "file.py"])
def test_what_is_no_directory_is_said_to_be_none(tmp_path: Path, name: str):
    (tmp_path / "file.py").write_text("x = 1\n")
    with pytest.raises(UserError, match="is no directory"):
        asked(tmp_path, tmp_path / name)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("the and of", None),
        ("退款", "pay/zh.py"),
        ("why does 退款 fail 😀", "pay/zh.py"),
        ("😀", None),
        ("\0\ud800 RateLimiter", "app/limits.py"),
        (f"RateLimiter {'x' * 1_000_000}", "app/limits.py"),
        (f"RateLimiter {' '.join(str(n) for n in range(100_000))}", "app/limits.py"),
    ],
)
def test_a_task_may_be_any_text(tmp_path: Path, query: str, first: str | None):
    root = put(tmp_path / "tree", {**PROJECT, "pay/zh.py": "def 退款():\n    pass\n"})
    assert next(iter(asked(tmp_path, root, query)), None) == first


@pytest.mark.parametrize("given", ["", " \n\t"])
def test_an_empty_task_is_refused(given: str):
    with pytest.raises(UserError, match="The query is empty"):
        index.query_of(given)


def test_a_task_of_standard_input_is_cut_and_need_not_be_utf8():
    program = "from bot.commands.index import query_of; found = query_of('-'); print(ascii(found[:6]), len(found))"
    given = b"\xff rate" + b"x" * 2_000_000
    told = subprocess.run([sys.executable, "-c", program], input=given, capture_output=True, check=True).stdout
    assert told.decode() == f"{chr(0xFFFD) + ' rate'!a} {index.LONGEST_QUERY}\n"


ODD = ("two\nlines.py", "red\x1b[31m.py", 'quo"te.py', "back\\slash.py", "\u202etxt.py", os.fsdecode(b"caf\xe9.py"))


def test_a_name_is_one_line_of_what_is_shown_and_comes_whole_with_nul(tmp_path: Path):
    names = (*ODD, "plain é.py")
    root = put(tmp_path / "tree", dict.fromkeys(names, "def limiter():\n    return '\x1b[2J'\n"))
    settings = Settings(home=tmp_path / "home", VOYAGE_API_KEY="")
    found = index.search(root, "limiter", settings)
    shown = index.told_ranking(found, as_json=False, paths=True).splitlines()
    assert sorted(shown) == sorted(
        [
            '"two\\nlines.py"',
            '"red\\033[31m.py"',
            '"quo\\"te.py"',
            '"back\\\\slash.py"',
            '"\\342\\200\\256txt.py"',
            '"caf\\351.py"',
            "plain é.py",
        ]
    )
    assert {os.fsdecode(name) for name in index.bare_paths(found).split(b"\0")[:-1]} == set(names)
    context = index.context(root, "limiter", 2000, settings)
    assert {line for line in context.text.splitlines() if line.endswith("(3 lines)") and line.startswith("###")} == {
        f"### {line} (3 lines)" for line in shown
    }
    assert "\x1b[2J" in index.told_context(context, as_json=False, terminal=False)
    steering = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
    assert not steering.search(index.told_context(context, as_json=False, terminal=True))


def test_where_nothing_is_found_no_path_is_printed():
    assert index.told_ranking((), as_json=False, paths=True) == ""
    assert index.told_ranking((), as_json=False, paths=False) == "Nothing found.\n"
