"""Puts a tree on disk, and tells which tree then stands there."""

# Paths are bytes here, as git has them; pathlib has no bytes.
# ruff: noqa: PTH103, PTH108, PTH123, PTH211

from __future__ import annotations

import hashlib
import os
import struct
import zlib

from bot.custody.inside.disk import LINK, POINTER, Disk, Order, Place, Stop, finish, parse_listing, tree_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from typing import BinaryIO

    from bot.custody.inside.disk import Leaves

JUNK = (
    "__pycache__/ *.py[co] .pytest_cache/ .mypy_cache/ .ruff_cache/ .hypothesis/ .tox/ .nox/ .venv/ venv/ .eggs/ "
    "*.egg-info/ .coverage htmlcov/ node_modules/ .gradle/ *.class *.o .DS_Store *.swp *.orig *.rej "
)
ROOT_JUNK = (b"build", b"dist", b"target")
WHO = {"NAME": "sandbox", "EMAIL": "sandbox@invalid", "DATE": "@0 +0000"}


def remove_directory(path: bytes | str, *, whole: bool = True) -> None:
    """With all that is in it, links as links; not `whole`: as far as it can be."""
    import shutil  # noqa: PLC0415 - takes longer to load than most trees to be put there

    shutil.rmtree(path, ignore_errors=not whole)


def empty(directory: bytes) -> None:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                remove_directory(entry.path)
            else:
                os.unlink(entry.path)


def put(path: bytes, mode: bytes, data: bytes) -> None:
    if mode == LINK:
        os.symlink(data, path)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(path, flags, 0o755 if mode == b"100755" else 0o644)
    try:
        while data:
            data = data[os.write(handle, data) :]
    finally:
        os.close(handle)


def batches(place: Place, parts: int) -> Iterator[tuple[str, bytes]]:
    """(id, content) from the uploaded `cat-file --batch` parts, each removed when it is read."""
    for number in range(parts):
        data = place.read(f"part-{number}")
        os.unlink(place.own(f"part-{number}"))
        position = 0
        while position < len(data):
            end = data.index(b"\n", position)
            identifier, _, size = data[position:end].split(b" ")
            position = end + 1 + int(size) + 1
            yield identifier.decode(), data[end + 1 : position - 1]


class Pack:
    """A git pack of whole blobs, written as they pass by: ten times quicker than to let git read the files again."""

    def __init__(self, place: Place, count: int, name: str = "incoming") -> None:
        self.place = place
        self.path = place.at(b".git/objects/pack/" + name.encode() + b".pack")
        self.file: BinaryIO | None = None
        self.indexing: subprocess.Popen[bytes] | None = None
        self.sum = hashlib.sha1()  # noqa: S324 - git's own trailer
        if place.run_git("init", "-q") is not None:
            try:
                self.file = open(self.path, "wb")  # noqa: SIM115 - closed by `close`
            except OSError:  # what runs here may do to its repository what it likes
                return
            self._write(struct.pack(">4sII", b"PACK", 2, count))

    def _write(self, data: bytes) -> None:
        if self.file is not None:
            self.sum.update(data)
            self.file.write(data)

    def add(self, data: bytes) -> None:
        size = len(data)
        head = bytearray([0x30 | size & 0x0F])
        size >>= 4
        while size:
            head[-1] |= 0x80
            head.append(size & 0x7F)
            size >>= 7
        self._write(bytes(head) + (stored(data) if len(data) < 1 << 16 else zlib.compress(data, 1)))

    def close(self) -> None:
        """Have git index it, which goes on until `finish`."""
        if self.file is not None:
            self.file.write(self.sum.digest())
            self.file.close()
            self.indexing = self.place.start_git("index-pack", os.fsdecode(self.path))

    def finish(self) -> None:
        finish(self.indexing)


def stored(data: bytes) -> bytes:
    """A zlib stream of one block that is not compressed; zlib itself sets up a whole compressor for each."""
    length = len(data)
    return struct.pack("<BBBHH", 0x78, 0x01, 1, length, length ^ 0xFFFF) + data + struct.pack(">I", zlib.adler32(data))


def unpack(place: Place, files: Leaves, parts: int) -> Pack:
    """Write every file; keep the same bytes as objects for git, if it is here."""
    where: dict[str, list[tuple[bytes, bytes]]] = {}
    made = {b""}
    for path, (mode, identifier) in files.items():
        folder = path if mode == POINTER else path.rpartition(b"/")[0]
        if folder not in made:
            os.makedirs(place.at(folder), exist_ok=True)
            made.add(folder)
        if mode != POINTER:
            where.setdefault(identifier, []).append((path, mode))
    pack = Pack(place, len(where))
    for identifier, data in batches(place, parts):
        for path, mode in where.pop(identifier, ()):
            put(place.at(path), mode, data)
        pack.add(data)
    pack.close()
    if where:
        raise Stop(4, rule="content_missing", path=os.fsdecode(next(iter(where.values()))[0][0]))
    return pack


def start_git(place: Place, listing: bytes, files: Leaves) -> None:
    """A fresh repository whose only commit is the tree, so that `git diff` and `git status` work inside."""
    roots = {path.split(b"/")[0] for path in files if b"/" in path}
    junk = (JUNK + "".join(f"/{name.decode()}/ " for name in ROOT_JUNK if name not in roots)).replace(" ", "\n")
    place.save("junk", junk.encode())
    if place.git is None:
        return
    place.run_git("init", "-q", GIT_DIR=place.own("git"))
    lines = b"\0".join(line.replace(b" blob ", b" ", 1).replace(b" commit ", b" ", 1) for line in listing.split(b"\0"))
    if place.run_git("update-index", "-z", "--index-info", data=lines) is None:
        return
    tree = place.run_git("write-tree")
    if tree is None:
        return
    who = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in WHO.items()}
    commit = place.run_git("commit-tree", tree.decode().strip(), data=b"The commit this task starts from\n", **who)
    if commit is None:
        return
    place.run_git("update-ref", "HEAD", commit.decode().strip())
    os.makedirs(place.at(b".git/info"), exist_ok=True)
    with open(place.at(b".git/info/exclude"), "w", encoding="ascii") as exclude:
        exclude.write(junk)
    with open(place.at(b".git/config"), "a", encoding="ascii") as config:
        config.write("[user]\n\tname = sandbox\n\temail = sandbox@invalid\n[gc]\n\tauto = 0\n")


def populate(place: Place, order: Order) -> dict[str, object]:
    os.makedirs(place.work, exist_ok=True)
    empty(place.work)
    if os.path.lexists(place.own("git")):
        remove_directory(place.own("git"), whole=False)
    listing = place.read(f"listing-{order.tree}")
    files = parse_listing(listing)
    pack = unpack(place, files, order.parts)
    os.chdir(place.work)
    disk = Disk({})
    found = disk.known(files)
    pack.finish()
    start_git(place, listing, files)
    place.save("cache", b"\0".join(disk.fresh))
    place.save("tree", order.tree.encode())
    return {"tree": tree_id(found), "files": len(found)}
