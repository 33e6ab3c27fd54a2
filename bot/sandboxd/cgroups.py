"""Control groups below the server's own, one per sandbox and hierarchy, for v2 and for v1, where we may make them.

A group is named after the server that made it, so that the next server in this place removes what a killed one left.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bot.sandboxd.limits import Limits

CONTROLLERS = ("memory", "pids", "cpu")
_PERIOD = 100_000
_EMPTY_SECONDS = 3.0
_NAME = re.compile(r"pullwright-(\d+)-(\d+)-\d+")
_NUMBERS = itertools.count(1)
"""Of this process, which may run more than one server."""

_JOIN = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 >"$1" || exit 125; shift; n=$((n - 1)); done; exec "$@"'


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A directory under which groups can be made, and what they can limit."""

    parent: Path
    controllers: tuple[str, ...]
    unified: bool

    @property
    def door(self) -> str:
        """The file by which a process of one thread joins; in v1 "tasks", which takes no lock that all processes share."""
        return "cgroup.procs" if self.unified else "tasks"

    def settings(self, limits: Limits) -> Iterator[tuple[str, int | str, bool]]:
        """File, value and whether it must be there."""
        quota = int(limits.cpus * _PERIOD)
        if "memory" in self.controllers:
            name, swap = (
                ("memory.max", "memory.swap.max")
                if self.unified
                else ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
            )
            yield name, limits.memory_bytes, True
            yield swap, 0 if self.unified else limits.memory_bytes, False
        if "pids" in self.controllers:
            yield "pids.max", limits.processes, True
        if "cpu" in self.controllers and self.unified:
            yield "cpu.max", f"{quota} {_PERIOD}", True
        elif "cpu" in self.controllers:
            yield "cpu.cfs_period_us", _PERIOD, True
            yield "cpu.cfs_quota_us", quota, True


@dataclass(frozen=True, slots=True)
class Group:
    """The groups of one sandbox; none where the machine allows none."""

    directories: tuple[Path, ...] = ()
    doors: tuple[Path, ...] = ()

    def joining(self) -> list[str]:
        """What to put before a command so that it, and all it starts, is in the groups before it gives up any right."""
        if not self.directories:
            return []
        return ["/bin/sh", "-c", _JOIN, "sh", str(len(self.doors)), *map(str, self.doors)]

    def end(self) -> None:
        """Remove the groups; blocking until they are empty, which they soon are when the sandbox has been killed."""
        deadline = time.monotonic() + _EMPTY_SECONDS
        for directory in self.directories:
            while not _removed(directory) and time.monotonic() < deadline:
                time.sleep(0.005)


class Cgroups:
    """Makes the groups of one server."""

    def __init__(self, hierarchies: tuple[Hierarchy, ...], limits: Limits) -> None:
        self._hierarchies = hierarchies
        self._limits = limits
        self._owner = f"{os.getpid()}-{_start_of(os.getpid())}"

    @property
    def controllers(self) -> frozenset[str]:
        """What is bounded by a control group."""
        return frozenset(controller for hierarchy in self._hierarchies for controller in hierarchy.controllers)

    @property
    def shortfall(self) -> str:
        """One sentence when something is bounded by less than a control group; otherwise empty."""
        missing = [controller for controller in CONTROLLERS if controller not in self.controllers]
        if not missing:
            return ""
        return (
            f"Limits on {', '.join(missing)} are not enforced by a control group, only by resource limits per process: run the "
            "server as root or in a delegated cgroup (systemd: Delegate=yes with DelegateSubgroup=server)."
        )

    def make(self) -> Group:
        """The groups of a new sandbox, limits set."""
        name = f"pullwright-{self._owner}-{next(_NUMBERS)}"
        directories = tuple(hierarchy.parent / name for hierarchy in self._hierarchies)
        doors = tuple(directory / h.door for h, directory in zip(self._hierarchies, directories, strict=True))
        group = Group(directories, doors)
        try:
            for hierarchy, directory in zip(self._hierarchies, group.directories, strict=True):
                _make(hierarchy, directory, self._limits)
        except OSError:
            for directory in group.directories:
                _removed(directory)
            raise
        return group


def find_cgroups(limits: Limits, *, own: str | None = None, mounts: str | None = None) -> Cgroups:
    """What this process may use. The texts are those of /proc/self/cgroup and mountinfo. Sweeps up after dead servers."""
    own = own if own is not None else _text("/proc/self/cgroup")
    mounts = mounts if mounts is not None else _text("/proc/self/mountinfo")
    usable: list[Hierarchy] = []
    for hierarchy in _candidates(own, mounts):
        had = {controller for earlier in usable for controller in earlier.controllers}
        wanted = tuple(controller for controller in hierarchy.controllers if controller not in had)
        reduced = Hierarchy(hierarchy.parent, wanted, hierarchy.unified)
        if wanted and _works(reduced, limits):
            usable.append(reduced)
    for hierarchy in usable:
        sweep(hierarchy.parent)
    return Cgroups(tuple(usable), limits)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _candidates(own: str, mounts: str) -> Iterator[Hierarchy]:
    """Below our own group in each hierarchy; in v2, where a group with processes has no children, also beside it."""
    rows = [line.split(":", 2) for line in own.splitlines() if line.count(":") >= 2]
    for root, point, kind, options in _mounts(mounts):
        for _, names, path in rows:
            inside = os.path.relpath(path, root)
            place = Path(os.path.normpath(point / inside)) if not inside.startswith("..") else point
            if kind == "cgroup2" and not names:
                controllers = tuple(c for c in CONTROLLERS if c in _text(str(place / "cgroup.controllers")).split())
                beside = [place.parent] if place != point else []
                yield from (Hierarchy(parent, controllers, unified=True) for parent in (place, *beside))
            elif kind == "cgroup" and set(names.split(",")) <= set(options.split(",")):
                controllers = tuple(c for c in CONTROLLERS if c in names.split(","))
                yield Hierarchy(place, controllers, unified=False)


def _mounts(mounts: str) -> Iterator[tuple[str, Path, str, str]]:
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields, described = left.split(), right.split()
        if len(fields) >= 5 and len(described) >= 3 and described[0] in {"cgroup", "cgroup2"}:
            yield fields[3], Path(fields[4]), described[0], described[2]


def _works(hierarchy: Hierarchy, limits: Limits) -> bool:
    """Can a group be made here, with its limits, and be joined? Tried, because no permission bit tells it."""
    trial = hierarchy.parent / f"pullwright-{os.getpid()}-{_start_of(os.getpid())}-0"
    try:
        if hierarchy.unified:
            wanted = " ".join(f"+{controller}" for controller in hierarchy.controllers)
            (hierarchy.parent / "cgroup.subtree_control").write_text(wanted, encoding="ascii")
        _make(hierarchy, trial, limits)
        writable = os.access(trial / "cgroup.procs", os.W_OK) and os.access(hierarchy.parent / "cgroup.procs", os.W_OK)
    except OSError:
        writable = False
    _removed(trial)
    return writable


def _make(hierarchy: Hierarchy, directory: Path, limits: Limits) -> None:
    directory.mkdir()
    for name, value, needed in hierarchy.settings(limits):
        with suppress(*(() if needed else (OSError,))):
            fd = os.open(directory / name, os.O_WRONLY)
            try:
                os.write(fd, str(value).encode())
            finally:
                os.close(fd)


def _removed(directory: Path) -> bool:
    try:
        directory.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def sweep(parent: Path) -> None:
    """Remove the groups of dead servers. Their last processes may still be dying, so each gets a moment to be empty."""
    for entry in parent.iterdir():
        made_by = _NAME.fullmatch(entry.name)
        if made_by and _start_of(int(made_by[1])) != made_by[2]:
            Group((entry,)).end()


def _start_of(pid: int) -> str:
    """When that process began, in the kernel's ticks; empty when there is none."""
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


def usage(group: Group) -> Mapping[str, int]:
    """Bytes of memory and microseconds of processor time used, as far as a group counts them."""
    found: dict[str, int] = {}
    for directory in group.directories:
        for name in ("memory.current", "memory.usage_in_bytes"):
            if (text := _text(str(directory / name)).strip()).isdigit():
                found["memory"] = int(text)
        for line in _text(str(directory / "cpu.stat")).splitlines():
            key, _, value = line.partition(" ")
            if key == "usage_usec" and value.isdigit():
                found["cpu"] = int(value)
    return found
