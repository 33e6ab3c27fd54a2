"""What stands on disk, as git would name it."""

# Paths are bytes here, as git has them; pathlib has no bytes.
# ruff: noqa: PTH105, PTH113, PTH115, PTH123

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Node = dict[bytes, Any]
    Leaves = dict[bytes, tuple[bytes, str]]

RACY_NS = 50_000_000
LINK, POINTER = b"120000", b"160000"
GIT_ENV = {
    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_OPTIONAL_LOCKS": "0",
}
FAST = (
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.compression=0",
    "-c",
    "core.fsync=none",
    "-c",
    "core.hooksPath=/dev/null",
)


class Order:
    """What is asked: the tree, how many parts of contents were uploaded, the mark of the answer, the most that may cross."""

    def __init__(self, tree: str, parts: str = "0", nonce: str = "", max_bytes: str = "67108864") -> None:
        self.tree = tree
        self.parts = int(parts)
        self.nonce = nonce
        self.max_bytes = int(max_bytes)


class Stop(Exception):  # noqa: N818 - how this script ends early
    """End with a code and a JSON line that says why."""

    def __init__(self, code: int, **said: str) -> None:
        self.code = code
        self.said = said
        super().__init__(str(said))


def object_id(kind: bytes, data: bytes) -> str:
    return hashlib.sha1(kind + b" %d\0" % len(data) + data).hexdigest()  # noqa: S324 - git's own object id


def parse_listing(listing: bytes) -> Leaves:
    """`ls-tree -r -z` as path → (mode, id)."""
    found = {}
    for line in listing.split(b"\0"):
        if line:
            meta, _, path = line.partition(b"\t")
            mode, _, identifier = meta.split(b" ")
            found[path] = (mode, identifier.decode())
    return found


def tree_id(files: Leaves) -> str:
    """The id of the tree that holds these files."""
    root: Node = {}
    directories = {b"": root}

    def directory(path: bytes) -> Node:
        if path not in directories:
            parent, _, name = path.rpartition(b"/")
            directories[path] = directory(parent)[name] = {}
        return directories[path]

    for path, leaf in files.items():
        parent, _, name = path.rpartition(b"/")
        directory(parent)[name] = leaf

    def write(node: Node) -> str:
        lines = []
        for name, leaf in node.items():
            if isinstance(leaf, dict):
                lines.append((name + b"/", b"40000 " + name + b"\0" + bytes.fromhex(write(leaf))))
            else:
                lines.append((name, leaf[0] + b" " + name + b"\0" + bytes.fromhex(leaf[1])))
        return object_id(b"tree", b"".join(line for _, line in sorted(lines)))

    return write(root)


class Place:
    """The work directory and the script's own state beside it."""

    def __init__(self, work: str, state: str) -> None:
        self.work = os.fsencode(work)
        self.state = state
        places = (f"{directory}/git" for directory in GIT_ENV["PATH"].split(":") if directory)
        self.git = next((path for path in places if os.path.isfile(path) and os.access(path, os.X_OK)), None)

    def own(self, name: str) -> str:
        return f"{self.state}/{name}"

    def at(self, path: bytes) -> bytes:
        return self.work + b"/" + path

    def read(self, name: str) -> bytes:
        with open(self.own(name), "rb") as file:
            return file.read()

    def save(self, name: str, data: bytes) -> None:
        with open(self.own(name + ".part"), "wb") as file:
            file.write(data)
        os.replace(self.own(name + ".part"), self.own(name))

    def start_git(self, *args: str, **env: str) -> subprocess.Popen[bytes] | None:
        """A git that works meanwhile; None when there is none."""
        if self.git is None:
            return None
        pipe = subprocess.PIPE
        command = [self.git, *FAST, *args]
        return subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd=self.work, env={**GIT_ENV, **env}
        )

    def run_git(self, *args: str, data: bytes = b"", **env: str) -> bytes | None:
        """What git printed; None when it cannot."""
        return finish(self.start_git(*args, **env), data)


def finish(process: subprocess.Popen[bytes] | None, data: bytes = b"") -> bytes | None:
    """What the process printed; None when it failed or takes a minute."""
    if process is None:
        return None
    try:
        out, _ = process.communicate(data, timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None
    return out if process.returncode == 0 else None


class Disk:
    """Ids of what stands on disk, below the current directory.

    A file whose stat is as when it was last hashed is not read again.
    """

    def __init__(self, cache: dict[bytes, tuple[str, bytes, str]]) -> None:
        self.cache = cache
        self.fresh: list[bytes] = []
        self.started = time.time_ns()
        self.real = {b"": True}

    def in_real_directory(self, path: bytes) -> bool:
        """Whether no parent of the path is a symlink (what lies behind one is not at this path for git)."""
        parent = path.rpartition(b"/")[0]
        if parent not in self.real:
            try:
                plain = stat.S_ISDIR(os.lstat(parent).st_mode)
            except OSError:
                plain = False
            self.real[parent] = plain and self.in_real_directory(parent)
        return self.real[parent]

    def look(self, path: bytes, cap: int | None = None) -> tuple[bytes, str] | None:
        """(mode, id) of what is at the path; None for nothing or a directory. Above `cap` bytes it is not read."""
        try:
            seen = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not self.in_real_directory(path) or stat.S_ISDIR(seen.st_mode):
            return None
        stamp = f"{seen.st_mtime_ns} {seen.st_ctime_ns} {seen.st_ino} {seen.st_size} {seen.st_mode}"
        known = self.cache.get(path)
        if known is not None and known[0] == stamp:
            found = known[1:]
        else:
            if cap is not None and seen.st_size > cap:
                raise Stop(4, rule="file_size", path=os.fsdecode(path))
            mode = mode_of(seen.st_mode)
            found = (mode, object_id(b"blob", content(path, mode)))
        if max(seen.st_mtime_ns, seen.st_ctime_ns) + RACY_NS < self.started:
            self.fresh.append(b"%s\n%s\n%s\n%s" % (path, stamp.encode(), found[0], found[1].encode()))
        return found

    def known(self, files: Leaves) -> Leaves:
        """What stands at these paths. Submodule pointers are carried through."""
        found = {}
        for path, leaf in files.items():
            now = leaf if leaf[0] == POINTER else self.look(path)
            if now is not None:
                found[path] = now
        return found


def mode_of(mode: int) -> bytes:
    """git's mode; anything it has none for comes out as it is, and is refused by the worker."""
    if stat.S_ISLNK(mode):
        return LINK
    if not stat.S_ISREG(mode) or mode & 0o7000:
        return b"%06o" % mode
    return b"100755" if mode & 0o100 else b"100644"


def content(path: bytes, mode: bytes) -> bytes:
    """The bytes git would store for what is at the path."""
    if not mode.startswith((b"10", LINK)):
        return b""
    try:
        if mode == LINK:
            return os.readlink(path)
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        try:
            return whole(handle)
        finally:
            os.close(handle)
    except OSError:
        raise Stop(4, rule="unreadable_file", path=os.fsdecode(path)) from None


def whole(handle: int) -> bytes:
    """To the end, in few calls: thousands of small files are read so."""
    data = os.read(handle, 1 << 17)
    if len(data) < 1 << 16:
        more = os.read(handle, 1 << 17)
        if not more:
            return data
        data += more
    parts = [data]
    while parts[-1]:
        parts.append(os.read(handle, 1 << 22))
    return b"".join(parts)
