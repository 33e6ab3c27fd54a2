"""The same attacks of I01-I15 on what one would write first: a tar unpacked where it stands, or git's plumbing taken for a check.

Each case works there, and is refused (or, where the corpus says so, shown as what it is) by the importer.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from bot.custody.faults import LineFault
from tests.attacks.conftest import Control
from tests.attacks.test_importer import Line, line
from tests.unit.custody.forging import Forged
from tests.unit.custody.local import Clone

__all__ = ["line"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory to unpack into, with something outside that is worth reaching."""
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "inside").mkdir()
    return tmp_path / "inside"


def unpacked(place: Path, *members: tuple[tarfile.TarInfo, bytes], cut: int | None = None) -> list[str]:
    """What an archive's reader says it has unpacked, without any filter."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for member, data in members:
            tar.addfile(member, io.BytesIO(data))
    with tarfile.open(fileobj=io.BytesIO(buffer.getvalue()[:cut])) as tar:
        names = tar.getnames()
        tar.extractall(place, filter="fully_trusted")
    return names


def member(name: str, data: bytes = b"content\n", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def taken_by_git(place: Path, name: str, mode: str = "100644", kind: str = "blob") -> bool:
    """Whether the plumbing that makes trees makes one with this name."""
    clone = Clone(place / "store")
    blob = clone.git("hash-object", "-w", "--stdin", data=b"a.txt") if kind == "blob" else "1" * 40
    tree = clone.git(
        "mktree", "-z", "--missing", data=f"{mode} {kind} {blob}\t{name}\0".encode("utf-8", "surrogateescape")
    )
    return f"\t{name}\0" in clone.git("ls-tree", "-z", tree)


async def refused(line: Line, *puts: Forged, rule: str = "", removed: tuple[str, ...] = ()) -> None:
    with pytest.raises(LineFault) as caught:
        await line.receives(line.stream.of(*puts, removed=removed))
    assert not rule or caught.value.rule == rule


async def test_i01_a_path_that_leaves(line: Line, place: Path, control: Control) -> None:
    unpacked(place, member("../victim", b"overwritten"))
    control((place.parent / "victim").read_text() == "overwritten", "unpacking writes outside")
    await refused(line, Forged("../victim"))


async def test_i02_a_repository_of_its_own(line: Line, place: Path, control: Control) -> None:
    clone = Clone(place / "work")
    clone.commit({"a": "1"})
    config = f"[core]\n\tfsmonitor = touch {place}/ran; false\n".encode()
    unpacked(clone.path, member(".git/config", config))
    clone.git("status")
    control((place / "ran").exists(), "the next git command runs what the archive brought")
    control(
        all(taken_by_git(place, name) for name in (".git", ".GIT", "git~1", ".git ")), "git's plumbing takes the names"
    )
    for name in (".git/config", "deep/.GIT/config", "git~1/config", ".git /config"):
        await refused(line, Forged(name, config))


async def test_i03_a_repository_in_disguise(line: Line, place: Path, control: Control) -> None:
    for name in (".g\u200cit", ".git\u200d", "\uff0egit"):
        control(taken_by_git(place, name), "git's plumbing takes what a file system folds to .git")
        await refused(line, Forged(f"{name}/config"))


async def test_i04_names_that_mean_something_else_elsewhere(line: Line, place: Path, control: Control) -> None:
    for name in ("a\\b", "C:x", "CON", "LPT1", "x.", "x "):
        unpacked(place, member(name))
        control((place / name).is_file() and taken_by_git(place, name), f"{name!a} becomes a file here")
        await refused(line, Forged(name))


async def test_i05_names_that_do_not_show(line: Line, place: Path, control: Control) -> None:
    for name in ("x\ny", "x\ty", "x\x1b[2Jy", "x\u202ecod.exe", "x\U000e0041y", "x\udc80y"):
        unpacked(place, member(name))
        control((place / name).is_file() and taken_by_git(place, name), f"{name!a} becomes a file")
        await refused(line, Forged(name.encode("utf-8", "surrogateescape")))


async def test_i06_a_link_out_and_a_file_under_it(line: Line, place: Path, control: Control) -> None:
    unpacked(place, member("l", b"", type=tarfile.SYMTYPE, linkname=".."), member("l/victim", b"overwritten"))
    control((place.parent / "victim").read_text() == "overwritten", "unpacking writes through the link")
    await refused(line, Forged("l", b"..", "120000"))
    await refused(line, Forged("l", b"deep", "120000"), Forged("l/victim"))


async def test_i07_a_link_inside_shows_as_one(line: Line, place: Path, control: Control) -> None:
    unpacked(place, member("a", b"other\n"), member("l", b"", type=tarfile.SYMTYPE, linkname="a"))
    control((place / "l").read_text() == "other\n", "whoever reads it sees another file's content")
    change = await line.receives(line.stream.of(Forged("new-link", b"a.txt", "120000")))
    assert [path.new.mode for path in change.paths if path.new is not None] == ["120000"]


async def test_i08_what_is_neither_file_nor_link(line: Line, place: Path, control: Control) -> None:
    unpacked(
        place, member("h", b"", type=tarfile.LNKTYPE, linkname="../victim"), member("f", b"", type=tarfile.FIFOTYPE)
    )
    control((place / "h").samefile(place.parent / "victim"), "a hard link shares a file outside")
    control((place / "f").is_fifo(), "a pipe stands where a file is expected")
    for mode in ("010644", "020644", "060644", "140755"):
        await refused(line, Forged("h", mode=mode), rule="special_file")


async def test_i09_bits_that_lend_a_users_rights(line: Line, place: Path, control: Control) -> None:
    unpacked(place, member("s", mode=0o4755))
    control((place / "s").stat().st_mode & 0o4000, "unpacking sets the bit")
    await refused(line, Forged("s", mode="104755"), rule="special_file")


async def test_i10_two_of_one_name(line: Line, place: Path, control: Control) -> None:
    unpacked(place, member("x", b"shown"), member("x", b"used"))
    control((place / "x").read_bytes() == b"used", "the last one wins, whatever was looked at")
    clone = Clone(place / "store")
    blob = clone.git("hash-object", "-w", "--stdin", data=b"x")
    clone.git("update-index", "--add", "--cacheinfo", f"100644,{blob},a.txt", "--cacheinfo", f"100644,{blob},A.TXT")
    control(clone.git("ls-files").split() == ["A.TXT", "a.txt"], "git takes what one file system has as one")
    await refused(line, Forged("x", b"shown"), Forged("x", b"used"), rule="duplicate_path")
    await refused(line, Forged("A.TXT"), rule="path_collision")


async def test_i11_more_than_it_looks(line: Line, control: Control) -> None:
    bomb = gzip.compress(bytes(3 << 20))
    control(len(gzip.decompress(bomb)) > 500 * len(bomb), "a small body becomes a large one")
    change = await line.receives(line.stream.of(Forged("b.gz", bomb[:900])))
    assert await line.mirror.blob(change.paths[0].new.blob) == bomb[:900], "nothing is unpacked"  # type: ignore[union-attr]
    await refused(line, Forged("b.gz", bomb), rule="file_size")
    await refused(line, *(Forged(f"x{number}") for number in range(21)), rule="path_count")


async def test_i12_an_end_that_is_none(line: Line, place: Path, control: Control) -> None:
    three = [member(name) for name in "abc"]
    control(unpacked(place, *three, cut=1024) == ["a"], "a cut archive reads as a whole one, the rest as deleted")
    whole = line.stream.of(Forged("a"), Forged("b"), Forged("c"))
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        with pytest.raises(LineFault):
            await line.receives(whole[:length])


async def test_i13_a_header_that_overrides_another(line: Line, place: Path, control: Control) -> None:
    unpacked(place, member("harmless", b"overwritten", pax_headers={"path": "../victim"}))
    control((place.parent / "victim").read_text() == "overwritten", "the second header names another file")
    change = await line.receives(line.stream.of(Forged("harmless", b"20 path=../victim\n")))
    assert [path.path for path in change.paths] == ["harmless"]


async def test_i14_what_only_git_reads(line: Line, place: Path, control: Control) -> None:
    control(taken_by_git(place, ".gitmodules", "120000"), "git's plumbing takes a link for .gitmodules")
    control(taken_by_git(place, "sub", "160000", "commit"), "and a pointer to anybody's commit")
    await refused(line, Forged(".gitmodules", b"a.txt", "120000"), rule="link_read_by_git")
    await refused(line, Forged("sub", mode="160000"), rule="special_file")
    await refused(line, Forged("vendor/sub/x"), rule="inside_submodule")


async def test_i15_a_patch_that_names_two_files(line: Line, place: Path, control: Control) -> None:
    clone = Clone(place / "work")
    clone.commit({"a.txt": "a\n", "dir/c.txt": "c\n"})
    patch = b"diff --git a/a.txt b/a.txt\n--- a/dir/c.txt\n+++ b/dir/c.txt\n@@ -1 +1 @@\n-c\n+changed\n"
    clone.git("apply", data=patch)
    control((clone.path / "dir/c.txt").read_text() == "changed\n", "git changes another file than the first line names")
    change = await line.receives(line.stream.of(Forged("fix.patch", patch)))
    assert [path.path for path in change.paths] == ["fix.patch"]
