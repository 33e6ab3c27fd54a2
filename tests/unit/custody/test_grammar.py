from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.custody.faults import ForbiddenPath
from bot.custody.grammar import (
    check_arrivals,
    check_base_paths,
    check_known_path,
    check_new_path,
    escapes,
    is_dot_git,
    visible,
)
from bot.custody.importer import judge
from bot.custody.result import Result
from bot.domain.change import FileMode, TreeEntry
from bot.domain.ids import BlobId, TreeId

ORDINARY = st.from_regex(r"[a-z0-9_-]{1,12}(\.[a-z]{1,4})?", fullmatch=True).filter(
    lambda name: name.split(".")[0] not in {"con", "prn", "aux", "nul"} and not name.startswith(("com", "lpt"))
)
PATHS = st.lists(ORDINARY, min_size=1, max_size=6).map("/".join)


@given(PATHS)
def test_ordinary_paths_cross(path: str) -> None:
    check_new_path(path)


@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/ci.yml",
        ".gitignore",
        ".gitattributes",
        "src/.gitkeep",
        "git",
        "digit~1x/a",
        "dir.git/config",
        "Überblick/straße.md",
        "日本語/ファイル.txt",
        "a b/c d.txt",
        "-rf",
        "@scope/[id].tsx",
        "emoji/😀.md",
        "con-text.py",
        "auxiliary.c",
    ],
)
def test_paths_that_only_look_odd_cross(path: str) -> None:
    check_new_path(path)


@given(st.text(max_size=40))
def test_a_path_that_passes_is_normal_relative_and_visible(path: str) -> None:
    try:
        check_new_path(path)
    except ForbiddenPath:
        return
    assert path
    assert not path.startswith("/")
    assert all(part not in {"", ".", ".."} and not is_dot_git(part) for part in path.split("/"))
    assert visible(path) == path


@given(st.text(alphabet=".gitGIT\u200c\u200d\u00ad \uff0e:~1", min_size=3, max_size=8))
def test_no_mix_of_these_characters_hides_dot_git(name: str) -> None:
    plain = "".join(c for c in name if c not in "\u200c\u200d\u00ad").replace("\uff0e", ".").lower()
    plain = plain.split(":")[0].rstrip(" .")
    assert is_dot_git(name) == (plain in {".git", "git~1", "git~11", "git~111"})


def test_a_path_of_the_base_may_be_unportable_but_never_dot_git() -> None:
    check_known_path("drivers/aux.c")
    with pytest.raises(ForbiddenPath, match="dot_git"):
        check_known_path("x/.GIT/config")


def test_nothing_is_changed_at_a_path_that_the_api_cannot_name() -> None:
    with pytest.raises(ForbiddenPath, match="path_not_utf8"):
        check_known_path("caf\udce9")


def test_a_base_with_dot_git_in_it_is_not_worked_on() -> None:
    check_base_paths(["a", ".github/x", "caf\udce9"])
    with pytest.raises(ForbiddenPath, match="base commit"):
        check_base_paths(["a", "sub/git~1/config"])


def test_collisions_the_base_already_has_do_not_block_other_files() -> None:
    check_arrivals(["new"], ["net/xt_MARK.h", "net/xt_mark.h"])


def test_a_link_is_followed_through_links_as_the_kernel_does() -> None:
    links = {"deep/er/up": "../..", "deep/er/out": "up/../etc", "in": "deep/er/up/deep", "self": "self", "abs": "/etc"}
    assert escapes("deep/er/out", links)
    assert not escapes("in", links)
    assert not escapes("deep/er/up", links)
    assert escapes("self", links)
    assert escapes("via", {**links, "via": "abs/passwd"})
    assert escapes("via", {"via": "d/.GIT/config"})


def test_hidden_characters_are_written_out_for_people() -> None:
    assert visible("a\u202eb\tc\n\U000e0041") == "a<U+202E>b\tc\n<U+E0041>"


def test_nothing_is_removed_at_a_path_that_the_api_cannot_name() -> None:
    tree, blob = TreeId("1" * 40), BlobId("2" * 40)
    base = [TreeEntry(path, FileMode.REGULAR, blob) for path in ("a", "caf\udce9")]
    judge(Result(tree, (), ("a",), tree), base, {})
    with pytest.raises(ForbiddenPath, match="path_not_utf8"):
        judge(Result(tree, (), ("caf\udce9",), tree), base, {})
