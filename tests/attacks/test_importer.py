"""What a malicious sandbox hands back (shared corpus I01-I15): each forged stream is well-formed but for the attack."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.custody.faults import DamagedResult, ForbiddenPath, LineFault, OverLimit, TreeMismatch
from bot.custody.importer import receive
from bot.custody.mirror import Mirror
from bot.custody.result import Limits, parse
from bot.domain.change import Change
from bot.domain.ids import CommitId, RepositoryId
from tests.unit.custody.forging import NONCE, Forged, Stream, sealed
from tests.unit.custody.local import Clone

LIMITS = Limits(file_bytes=1000, total_bytes=5000, paths=20)
BASE = {"a.txt": "a\n", "src/b.py": "b\n", "Docs/Read.md": "r\n", "caf\u00e9.txt": "c\n", "deep/er/z": "z\n"}


class Line:
    """A base commit in a mirror, and the trusted half of the line."""

    def __init__(self, mirror: Mirror, base: CommitId, stream: Stream) -> None:
        self.mirror = mirror
        self.base = base
        self.stream = stream

    async def receives(self, stream: bytes, nonce: str = NONCE) -> Change:
        return await receive(self.mirror, stream, self.base, nonce=nonce, limits=LIMITS)

    async def refuses(self, stream: bytes, fault: type[LineFault] = ForbiddenPath, rule: str = "") -> LineFault:
        before = await self.objects()
        with pytest.raises(fault) as caught:
            await self.receives(stream)
        assert not rule or caught.value.rule == rule
        if fault is not TreeMismatch:
            assert await self.objects() == before, "a refused result left something in the store"
        return caught.value

    def finds_damage(self, stream: bytes) -> None:
        """The cheap half of `refuses`: reading the stream touches no store at all."""
        with pytest.raises(DamagedResult):
            parse(stream, nonce=NONCE, base_tree=self.stream.base_tree, limits=LIMITS)

    async def objects(self) -> int:
        return sum(1 for _ in (self.mirror.git_dir / "objects").rglob("*"))


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Line:
    """One for all tests: a refused result leaves nothing behind, which `refuses` checks."""
    return asyncio.run(make_line(tmp_path_factory.mktemp("line")))


async def make_line(tmp_path: Path) -> Line:
    clone = Clone(tmp_path / "clone")
    clone.write(BASE)
    (clone.path / "link").symlink_to("deep/er")
    clone.git("add", "-A")
    clone.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendor/sub")
    clone.git("commit", "-q", "-m", "base")
    mirror = Mirror(tmp_path / "mirrors", RepositoryId(1))
    base = await mirror.from_directory(clone.path)
    tree = await mirror.tree_of(base)
    entries = {entry.path: (entry.mode.value, str(entry.blob)) for entry in await mirror.entries(tree)}
    return Line(mirror, base, Stream(tree, entries))


async def test_positive_control_an_honest_result_becomes_its_tree(line: Line) -> None:
    change = await line.receives(
        line.stream.of(Forged("src/new.py"), Forged("src/run", b"#!/bin/sh\n", "100755"), removed=["a.txt"])
    )
    assert [(path.path, path.kind) for path in change.paths] == [
        ("a.txt", "deleted"),
        ("src/new.py", "added"),
        ("src/run", "added"),
    ]
    assert await line.mirror.blob(change.paths[1].new.blob) == b"content\n"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "path",
    ["../x", "a/../../x", "/etc/x", "a//b", "./x", "x/.", "x/..", "dir/", "", "x\0y", "s/" * 45 + "x", "n" * 401],
)
async def test_i01_path_outside_the_grammar(line: Line, path: str) -> None:
    await line.refuses(line.stream.of(Forged(path)))


DISGUISES = [
    ".git",
    ".GIT",
    ".Git",
    "git~1",
    "GIT~1",
    "git~12",
    "gi7eba~1",
    ".git ",
    ".git.",
    ".git. .",
    ".git::$INDEX_ALLOCATION",
    ".git:x",
    ".g\u200cit",
    ".git\u200d",
    "\uff0e\uff47\uff49\uff54",
    ".\uff47it",
    "\u2024git",
    ".gi\u00adt",
    "a\\.git",
]


@pytest.mark.parametrize("name", DISGUISES)
@pytest.mark.parametrize("form", ["{}/config", "{}", "deep/{}/hooks/post-checkout", "deep/{}"])
async def test_i02_i03_every_disguise_of_dot_git(line: Line, name: str, form: str) -> None:
    await line.refuses(line.stream.of(Forged(form.format(name))))


@pytest.mark.parametrize(
    "path",
    [
        "a\\b",
        "C:/x",
        "c:x",
        "CON",
        "con.txt",
        "dir/AUX.c",
        "LPT1",
        "com\u00b9",
        "NUL.tar.gz",
        "CONIN$",
        "x.",
        "x ",
        "d./y",
    ],
)
async def test_i04_names_that_mean_something_else_elsewhere(line: Line, path: str) -> None:
    await line.refuses(line.stream.of(Forged(path)))


@pytest.mark.parametrize(
    "path",
    [
        "x\ny",
        "x\ty",
        "x\x1b[2Jy",
        "x\x7f",
        "x\u202ecod.exe",
        "x\u2066y",
        "x\u200by",
        "x\U000e0041y",
        "x\ufeff",
        "x\ufe0fy",
    ],
)
async def test_i05_hidden_characters_in_a_path(line: Line, path: str) -> None:
    await line.refuses(line.stream.of(Forged(path)), rule="hidden_character")


async def test_i05_a_lone_surrogate_or_other_broken_utf8_in_a_path(line: Line) -> None:
    await line.refuses(line.stream.of(Forged("x\ud800y")), rule="path_not_utf8")
    await line.refuses(line.stream.of(Forged(b"caf\xe9")), rule="path_not_utf8")


@pytest.mark.parametrize(
    "target",
    [
        b"/etc/passwd",
        b"../x",
        b"a/../../x",
        b".git/config",
        b"deep/.GIT",
        b"..\\x",
        b"C:x",
        b"",
        b"x\n",
        b"\xff",
        b"git~1/x",
    ],
)
async def test_i06_link_that_is_absolute_escapes_or_enters_dot_git(line: Line, target: bytes) -> None:
    await line.refuses(line.stream.of(Forged("new-link", target, "120000")))


async def test_i06_chain_of_two_links_that_escapes_together(line: Line) -> None:
    inner = Forged("deep/er/up", b"../..", "120000")
    outer = Forged("deep/er/out", b"up/../etc", "120000")
    await line.receives(line.stream.of(inner))
    await line.refuses(line.stream.of(inner, outer), rule="link_escapes")


async def test_i06_redirecting_a_link_makes_an_old_one_escape(line: Line) -> None:
    through = Forged("deep/through", b"../link/../../x", "120000")
    await line.receives(line.stream.of(through))
    await line.refuses(line.stream.of(through, Forged("link", b"deep", "120000")), rule="link_escapes")


async def test_i06_links_in_a_circle(line: Line) -> None:
    await line.refuses(line.stream.of(Forged("p", b"q", "120000"), Forged("q", b"p", "120000")), rule="link_escapes")


async def test_i06_file_under_a_link(line: Line) -> None:
    await line.refuses(line.stream.of(Forged("link/x")), rule="file_and_directory")
    await line.refuses(line.stream.of(Forged("l", b"deep", "120000"), Forged("l/x")), rule="file_and_directory")


async def test_i07_link_inside_the_tree_crosses_and_is_left_to_policy(line: Line) -> None:
    change = await line.receives(line.stream.of(Forged("src/again", b"../deep/er", "120000")))
    assert change.paths[0].new is not None
    assert change.paths[0].new.mode == "120000"


@pytest.mark.parametrize(
    "mode", ["010644", "020644", "060644", "140755", "040755", "160000", "100664", "000000", "", "x" * 300]
)
async def test_i08_anything_but_a_file_or_a_link(line: Line, mode: str) -> None:
    await line.refuses(line.stream.of(Forged("thing", mode=mode)), rule="special_file")


@pytest.mark.parametrize("mode", ["104755", "102755", "101777", "107777"])
async def test_i09_setuid_setgid_and_sticky_bits(line: Line, mode: str) -> None:
    await line.refuses(line.stream.of(Forged("thing", mode=mode)), rule="special_file")


async def test_i10_the_same_path_twice(line: Line) -> None:
    await line.refuses(line.stream.of(Forged("x"), Forged("x", b"other")), DamagedResult, "duplicate_path")
    await line.refuses(line.stream.of(Forged("a.txt"), removed=["a.txt"]), DamagedResult, "duplicate_path")
    await line.refuses(line.stream.of(removed=["a.txt", "a.txt"]), DamagedResult, "duplicate_path")


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("A.TXT", "path_collision"),
        ("cafe\u0301.txt", "path_collision"),
        ("CAF\u00c9.txt", "path_collision"),
        ("docs/other", "path_collision"),
        ("DOCS/READ.MD", "path_collision"),
        ("a.txt/below", "file_and_directory"),
        ("A.txt/below", "file_and_directory"),
        ("src", "file_and_directory"),
        ("SRC", "file_and_directory"),
    ],
)
async def test_i10_collisions(line: Line, path: str, rule: str) -> None:
    await line.refuses(line.stream.of(Forged(path)), rule=rule)


async def test_i10_two_new_paths_that_collide(line: Line) -> None:
    await line.refuses(line.stream.of(Forged("n/x"), Forged("N/x")), rule="path_collision")
    await line.refuses(line.stream.of(Forged("stra\u00dfe"), Forged("STRASSE")), rule="path_collision")


async def test_a_rename_in_case_only_and_a_file_turned_directory_are_honest(line: Line) -> None:
    await line.receives(line.stream.of(Forged("A.TXT"), removed=["a.txt"]))
    change = await line.receives(line.stream.of(Forged("a.txt/inner"), removed=["a.txt"]))
    assert {path.path for path in change.paths} == {"a.txt", "a.txt/inner"}


async def test_i11_too_large_and_too_many(line: Line) -> None:
    await line.refuses(line.stream.of(Forged("x", b"x" * 1001)), OverLimit, "file_size")
    await line.refuses(line.stream.of(*(Forged(f"x{i}", b"x" * 900) for i in range(6))), OverLimit, "total_size")
    await line.refuses(line.stream.of(*(Forged(f"x{i}") for i in range(21))), OverLimit, "path_count")
    await line.refuses(b"x" * (LIMITS.stream_bytes + 1), OverLimit, "stream_size")


async def test_i11_a_length_that_promises_more_than_there_is(line: Line) -> None:
    record = bytearray(Forged("x").record())
    record[7:15] = (1 << 40).to_bytes(8, "big")
    body = line.stream.body((Forged("x"),)).replace(Forged("x").record(), bytes(record))
    await line.refuses(sealed(body), OverLimit, "file_size")
    record[7:15] = (900).to_bytes(8, "big")
    body = line.stream.body((Forged("x"),)).replace(Forged("x").record(), bytes(record))
    await line.refuses(sealed(body), DamagedResult, "cut_short")


def test_i12_cut_anywhere_it_is_damage_and_never_a_deletion(line: Line) -> None:
    stream = line.stream.of(Forged("src/new.py"), Forged("x"), removed=["a.txt"])
    for length in range(len(stream)):
        line.finds_damage(stream[:length])


def test_i12_cut_and_sealed_again_it_is_still_damage(line: Line) -> None:
    body = line.stream.body((Forged("src/new.py"), Forged("x")), ["a.txt"])
    for length in range(len(body)):
        line.finds_damage(sealed(body[:length]))


def test_i12_one_bit_flipped_anywhere(line: Line) -> None:
    stream = line.stream.of(Forged("src/new.py"), removed=["a.txt"])
    for position in range(len(stream)):
        damaged = bytearray(stream)
        damaged[position] ^= 0x10
        line.finds_damage(bytes(damaged))


async def test_i12_more_after_the_end(line: Line) -> None:
    await line.refuses(line.stream.of(Forged("x")) + b"more", DamagedResult, "checksum")
    await line.refuses(sealed(line.stream.body((Forged("x"),)) + b"E"), DamagedResult, "count_mismatch")


async def test_i12_counts_that_do_not_fit(line: Line) -> None:
    body = line.stream.body((Forged("x"),), ["a.txt"])
    place = len(body) - 48
    for counts in (b"\0\0\0\2\0\0\0\1", b"\0\0\0\1\0\0\0\0"):
        await line.refuses(sealed(body[:place] + counts + body[place + 8 :]), DamagedResult, "count_mismatch")


async def test_i12_content_that_is_not_what_its_id_says(line: Line) -> None:
    await line.refuses(line.stream.of(Forged("x", blob="f" * 40)), DamagedResult, "content_mismatch")


async def test_i12_an_empty_result_and_one_that_deletes_everything(line: Line) -> None:
    await line.refuses(b"", DamagedResult, "empty")
    everything = [path for path in line.stream.base if path != "vendor/sub"]
    gone = Stream(line.stream.base_tree, line.stream.base)
    await line.refuses(gone.of(removed=everything), DamagedResult, "emptied")


async def test_i12_an_older_answer_and_one_about_another_base(line: Line) -> None:
    stream = line.stream.of(Forged("x"))
    with pytest.raises(DamagedResult, match="stale"):
        await line.receives(stream, nonce="m" * 32)
    other = Stream(line.stream.base_tree.replace("a", "b"), line.stream.base)  # type: ignore[arg-type]
    await line.refuses(other.of(Forged("x")), DamagedResult, "stale")


async def test_i12_a_tree_that_is_not_the_tree_of_these_files(line: Line) -> None:
    await line.refuses(line.stream.of(Forged("x"), tree="e" * 40), TreeMismatch, "tree_of_result")
    await line.refuses(line.stream.of(Forged("x"), tree="not a tree id" + "x" * 27), DamagedResult, "count_mismatch")


async def test_i12_deleting_what_was_never_there(line: Line) -> None:
    await line.refuses(line.stream.of(removed=["ghost"]), DamagedResult, "removes_unknown")


async def test_i13_lengths_are_explicit_so_no_header_overrides_another(line: Line) -> None:
    long = "d/" * 30 + "x" * 200
    change = await line.receives(line.stream.of(Forged(long, b"12 path=../../x\n")))
    assert [path.path for path in change.paths] == [long]


@pytest.mark.parametrize("path", ["vendor/sub", "vendor/sub/x", "vendor/sub/.gitmodules"])
async def test_i14_writing_at_or_under_a_submodule(line: Line, path: str) -> None:
    await line.refuses(line.stream.of(Forged(path)), rule="inside_submodule")


async def test_i14_submodule_pointers_are_carried_through_and_cannot_be_removed(line: Line) -> None:
    change = await line.receives(line.stream.of(Forged("x")))
    kept = {entry.path: entry for entry in await line.mirror.entries(change.tree)}
    assert kept["vendor/sub"].blob == "1" * 40
    await line.refuses(line.stream.of(removed=["vendor/sub"]), DamagedResult, "removes_unknown")


@pytest.mark.parametrize("path", [".gitmodules", ".gitattributes", "src/.GitIgnore", ".mailmap"])
async def test_i14_files_that_git_reads_as_links(line: Line, path: str) -> None:
    await line.refuses(line.stream.of(Forged(path, b"a.txt", "120000")), rule="link_read_by_git")


async def test_i15_text_of_a_patch_is_only_a_file(line: Line) -> None:
    patch = b"diff --git a/a.txt b/a.txt\n--- a/src/b.py\n+++ b/src/b.py\n@@ -1 +1 @@\n-b\n+evil\n"
    change = await line.receives(line.stream.of(Forged("fix.patch", patch)))
    assert [path.path for path in change.paths] == ["fix.patch"]


async def test_a_record_of_an_unknown_kind(line: Line) -> None:
    body = line.stream.body((Forged("x"),))
    await line.refuses(sealed(body.replace(b"P\0", b"Q\0", 1)), DamagedResult, "unknown_record")


async def test_an_unchanged_file_sent_as_changed(line: Line) -> None:
    await line.refuses(line.stream.of(Forged("a.txt", b"a\n")), DamagedResult, "not_a_change")
