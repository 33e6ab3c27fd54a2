"""The coder's searches and reads are answered from a tree of the mirror."""

from pathlib import Path

import pytest

from bot.custody.mirror import Mirror
from bot.domain.ids import RepositoryId, TreeId
from bot.retrieval.browse import Browser
from tests.unit.retrieval.test_index import PROJECT, put
from tests.unit.retrieval.test_service import git


async def browser(tmp_path: Path, files: dict[str, str | bytes]) -> tuple[Browser, TreeId]:
    root = put(tmp_path / "tree", files)
    (root / "link.py").symlink_to("app/mail.py")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    mirror = Mirror(tmp_path / "mirrors", RepositoryId(7))
    return Browser(mirror), await mirror.tree_of(await mirror.from_directory(root))


async def test_the_definition_comes_before_its_uses_and_code_before_tests(tmp_path: Path):
    asked, tree = await browser(tmp_path, {**PROJECT, "aa/use.py": "from app.limits import RateLimiter\n"})
    found = await asked.search(tree, "RateLimiter")
    assert found is not None
    assert (found.hits[0].path, found.hits[0].line) == ("app/limits.py", 1)
    assert found.defining == {("app/limits.py", 1)}
    assert found.hits[-1].path == "tests/test_limits.py"


async def test_a_search_may_be_kept_to_a_folder_and_a_folder_that_is_not_there_is_not_answered(tmp_path: Path):
    asked, tree = await browser(tmp_path, PROJECT)
    found = await asked.search(tree, "RateLimiter", "tests")
    assert found is not None
    assert {hit.path for hit in found.hits} == {"tests/test_limits.py"}
    assert await asked.search(tree, "RateLimiter", "build") is None
    assert await asked.search(tree, "RateLimiter", "../app") is None


async def test_without_a_match_the_nearest_files_are_named(tmp_path: Path):
    asked, tree = await browser(tmp_path, PROJECT)
    found = await asked.search(tree, "limiter of rates")
    assert found is not None
    assert (found.hits, found.nearest[0].path) == ((), "app/limits.py")


async def test_a_broken_pattern_is_said_to_be(tmp_path: Path):
    asked, tree = await browser(tmp_path, PROJECT)
    with pytest.raises(ValueError, match=r"(?i)unmatched|parenthes"):
        await asked.search(tree, "(")


async def test_a_pattern_that_looks_like_an_option_is_a_pattern(tmp_path: Path):
    asked, tree = await browser(tmp_path, {**PROJECT, "odd.txt": "--help me\n"})
    found = await asked.search(tree, "--help")
    assert found is not None
    assert [hit.path for hit in found.hits] == ["odd.txt"]


async def test_a_file_is_read_with_its_definitions_and_a_link_is_left_to_the_sandbox(tmp_path: Path):
    asked, tree = await browser(tmp_path, {**PROJECT, "data.bin": b"a\0b"})
    page = await asked.read(tree, "app/limits.py")
    assert page is not None
    assert page.text == PROJECT["app/limits.py"]
    assert [one.name for one in page.definitions] == ["RateLimiter", "allow"]
    for path in ("link.py", "data.bin", "app", "no.py", "/etc/passwd", "../x"):
        assert await asked.read(tree, path) is None


async def test_a_file_whose_name_has_a_line_break_is_searched_too(tmp_path: Path):
    asked, tree = await browser(tmp_path, {"two\nlines.py": "first\nneedle\n", "one.py": "needle\n"})
    found = await asked.search(tree, "needle")
    assert found is not None
    assert {(hit.path, hit.line, hit.text) for hit in found.hits} == {
        ("two\nlines.py", 2, "needle"),
        ("one.py", 1, "needle"),
    }
