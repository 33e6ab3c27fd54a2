"""What few ask of an agent: paths, watching, terminals' sizes, numbers. Read when the first does, because compiling it costs a start.

Every operation takes the function that places a path, the message and the descriptors that came with it, and gives the answer.
"""

# ruff: noqa: PTH103, PTH104, PTH107, PTH110, PTH112, PTH114, PTH116, PTH118, PTH119, PTH120, PTH123, PTH208
from __future__ import annotations

import os
import resource
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Place = Callable[[str], str]

_LISTING_CAP = 50_000
_WATCHES_CAP = 8_192
_WATCHED = 0x2 | 0x4 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400
"""Modify, attrib, moved from, moved to, create, delete, delete self: what fsnotify asks for, by which envd watches."""

_INOTIFY_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISREG(mode):
        return "file"
    return "symlink" if stat.S_ISLNK(mode) else "other"


def _entry(path: str) -> dict[str, Any]:
    """What E2B tells about one path: the link itself, but the type of what it leads to."""
    status = os.lstat(path)
    target, kind = None, _kind(status.st_mode)
    if kind == "symlink":
        target = os.path.realpath(path)
        if os.path.exists(target):
            kind = _kind(os.stat(target).st_mode)
    return {
        "name": os.path.basename(path),
        "path": path,
        "type": kind,
        "size": status.st_size,
        "mode": stat.S_IMODE(status.st_mode),
        "permissions": stat.filemode(status.st_mode),
        "uid": status.st_uid,
        "gid": status.st_gid,
        "mtime": status.st_mtime,
        "target": target,
    }


def _walk(top: str, depth: int) -> Iterator[dict[str, Any]]:
    pending = [(top, 1)]
    while pending:
        folder, level = pending.pop()
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            if level == 1:
                raise
            continue  # one that is gone again, or may not be read, does not hide all others
        for name in names:
            path = os.path.join(folder, name)
            try:
                entry = _entry(path)
            except FileNotFoundError:
                continue
            yield entry
            if level < depth and entry["type"] == "directory" and entry["target"] is None:
                pending.append((path, level + 1))


def describe(place: Place, message: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
    return {"entry": _entry(place(message["path"]))}


def listing(place: Place, message: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
    path = place(message["path"])
    if not os.path.isdir(path):
        os.stat(path)
        raise NotADirectoryError(f"path is not a directory: {path}")
    entries = []
    for entry in _walk(path, message["depth"]):
        entries.append(entry)
        if len(entries) > _LISTING_CAP:
            raise ValueError(f"more than {_LISTING_CAP} entries under {path}")
    return {"entries": entries}


def make_dir(place: Place, message: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
    path = place(message["path"])
    if os.path.isdir(path):
        raise FileExistsError(f"directory already exists: {path}")
    if os.path.lexists(path):
        raise NotADirectoryError(f"path is a file: {path}")
    os.makedirs(path)
    return {"entry": _entry(path)}


def move(place: Place, message: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
    source, destination = place(message["source"]), place(message["destination"])
    device = os.lstat(source).st_dev
    os.makedirs(os.path.dirname(destination), exist_ok=True)
    if device == os.stat(os.path.dirname(destination)).st_dev:
        os.rename(source, destination)
    else:
        _carry(source, destination)
    return {"entry": _entry(destination)}


def _carry(source: str, destination: str) -> None:
    """As a rename, between two file systems: /tmp and the home are two here, and one at E2B."""
    import shutil  # noqa: PLC0415 - few move anything

    parent = os.path.dirname(source)
    if not os.access(parent, os.W_OK):
        raise PermissionError(f"cannot be moved away: {source}")
    part = f"{destination}.moved-{os.getpid()}-{os.urandom(8).hex()}"
    try:
        if os.path.isdir(source) and not os.path.islink(source):
            shutil.copytree(source, part, symlinks=True)
        else:
            shutil.copy2(source, part, follow_symlinks=False)
        os.rename(part, destination)
    except OSError as fault:
        remove(lambda path: path, {"path": part}, [])
        raise OSError(fault.errno, fault.strerror or str(fault), destination) from None
    remove(lambda path: path, {"path": source}, [])


def remove(place: Place, message: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
    """Remove a file or a whole tree; what is missing is removed already."""
    from shutil import rmtree  # noqa: PLC0415 - few remove anything

    path = place(message["path"])
    if os.path.isdir(path) and not os.path.islink(path):
        rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)
    return {}


def watch(place: Place, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    """Notice what happens in a directory: an inotify descriptor, and for each watch the directory relative to the first.

    With a descriptor that was made so before, add the directory to it.
    """
    import ctypes  # noqa: PLC0415 - see above

    top = place(message["path"])
    if not os.path.isdir(top):
        os.stat(top)
        raise NotADirectoryError(f"path is not a directory: {top}")
    libc = ctypes.CDLL(None, use_errno=True)
    fd = fds[0] if fds else libc.inotify_init1(_INOTIFY_FLAGS)
    watches: list[list[Any]] = []
    folders = [""]
    while fd >= 0 and folders and len(watches) < _WATCHES_CAP:
        inner = folders.pop()
        path = os.path.join(top, inner)
        number = libc.inotify_add_watch(fd, os.fsencode(path), _WATCHED)
        if number >= 0:
            watches.append([number, inner])
        if message["recursive"]:
            folders += [os.path.join(inner, name) for name in _folders(path)]
    if not watches and not fds:
        fault = OSError(ctypes.get_errno(), "cannot watch", top)
        if fd >= 0:
            os.close(fd)
        raise fault
    return {"watches": watches} if fds else {"watches": watches, "fd": fd}


def _folders(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def numbers(_place: Place, _message: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
    """Processor time of everything that ever ran here, memory of what does, and how full the disk is."""
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    gone = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, resident = gone.ru_utime + gone.ru_stime, 0
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            with open(f"/proc/{name}/statm", "rb") as file:
                resident += int(file.read().split()[1]) * page
        except (OSError, IndexError):
            continue
        seconds += sum(map(int, fields[11:13] if name == "1" else fields[11:15])) / ticks
    disk = os.statvfs(os.environ["HOME"])
    total = disk.f_blocks * disk.f_frsize
    return {"cpu": seconds, "memory": resident, "disk": total - disk.f_bfree * disk.f_frsize, "disk_total": total}
