"""Starts one bubblewrap per sandbox: as an unprivileged uid, with an empty environment, without a network.

The order of `command` is the order of privilege: join the control groups, enter the stage, drop to the uid, isolate, filter
system calls, run the agent.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bot.sandboxd.cgroups import Group, find_cgroups
from bot.sandboxd.errors import IsolationUnavailable
from bot.sandboxd.limits import Limits
from bot.sandboxd.seccomp.filters import filter_of
from bot.sandboxd.staging import Stage, stage
from bot.sandboxd.templates import HOME, Bind, Template, interpreter_binds, interpreter_program
from bot.sandboxd.uids import UidLease, lease_uid

_AGENT_INSIDE = "/run/agent.py"
_AGENT = {
    f"/run/{name}": Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("agent.py", "agent_more.py")
}
_TMP, _SHM = "/tmp", "/dev/shm"  # noqa: S108 - inside: each sandbox has its own
_END_SECONDS = 10
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ETC = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000:user:/home/user:/bin/bash\n",
    "/etc/group": "root:x:0:\nuser:x:1000:\n",
    "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "/etc/resolv.conf": "",
}
_ETC_OF_THE_MACHINE = ("/etc/ssl/certs", "/etc/alternatives", "/etc/ld.so.cache")


@dataclass(frozen=True, slots=True)
class Launched:
    """A started bubblewrap, the socket to its agent, the uid and the groups it holds. `end()` frees them all."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    lease: UidLease
    info: int
    group: Group = field(default_factory=Group)

    def complaint(self) -> str:
        """What a launcher that failed said on standard error. Blocking."""
        self.process.kill()
        return (self.process.stderr.read() if self.process.stderr else b"").decode("utf-8", "replace").strip()[:500]

    def end(self) -> None:
        """Kill everything inside; blocking until the kernel has, because only then the uid is free."""
        inside = self._process_one()
        self.process.kill()
        self.process.wait()
        if inside is not None:
            select.select([inside], [], [], _END_SECONDS)
            os.close(inside)
        if self.process.stderr is not None:
            self.process.stderr.close()
        os.close(self.info)
        self.group.end()
        self.lease.close()

    def _process_one(self) -> int | None:
        """A pidfd of the namespace's process 1, which becomes readable when its whole namespace is dead."""
        try:
            pid = json.loads(os.read(self.info, 4096))["child-pid"]
            if f"PPid:\t{self.process.pid}\n" not in Path(f"/proc/{pid}/status").read_text(encoding="ascii"):
                return None
            return os.pidfd_open(pid)
        except (OSError, ValueError, KeyError):
            return None


@dataclass(slots=True)
class _Descriptors:
    """Texts handed over as in-memory files."""

    numbers: list[int] = field(default_factory=list)

    def add(self, content: str | bytes) -> str:
        number = os.memfd_create("pullwright", os.MFD_CLOEXEC)
        self.numbers.append(number)
        with os.fdopen(os.dup(number), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.lseek(number, 0, os.SEEK_SET)
        return str(number)

    def close(self) -> None:
        for number in self.numbers:
            os.close(number)


def _filter(machine: str, *, weaker: bool) -> bytes | None:
    """The system call filter; where there is none for this processor, sandboxes run without only if that is wanted."""
    try:
        return filter_of(machine)
    except IsolationUnavailable:
        if not weaker:
            raise
        return None


class Launcher:
    """Knows the tools and the stage of one server; `launch` must run on a thread that lives as long as the sandbox."""

    def __init__(
        self, templates: Iterable[Template], limits: Limits, *, machine: str | None = None, weaker: bool = False
    ) -> None:
        self._limits = limits
        self._tools = {
            name: find_tool(name)
            for name in ("bwrap", *(("setpriv", "nsenter", "unshare") if os.geteuid() == 0 else ()))
        }
        self._filter = _filter(machine or os.uname().machine, weaker=weaker)
        self.cgroups = find_cgroups(limits)
        sources = {bind.source: None for template in templates for bind in self._binds(template)}
        self._stage: Stage = stage(sources)

    def launch(self, template: Template) -> Launched:
        """Start a sandbox. The thread matters: the kernel kills the sandbox when the thread that forked it ends."""
        ours, theirs = socket.socketpair()
        group = self.cgroups.make()
        lease, descriptors, (info, tell) = lease_uid(), _Descriptors(), os.pipe()
        os.set_blocking(info, False)
        descriptors.numbers.append(tell)
        try:
            command = group.joining() + self._command(template, lease.uid, (theirs.fileno(), tell), descriptors)
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={},
                cwd="/",
                pass_fds=(theirs.fileno(), *descriptors.numbers),
                start_new_session=True,
            )
        except OSError:
            ours.close()
            group.end()
            lease.close()
            os.close(info)
            raise
        finally:
            theirs.close()
            descriptors.close()
        return Launched(process, ours, lease, info, group)

    def close(self) -> None:
        self._stage.close()

    def _command(self, template: Template, uid: int, fds: tuple[int, int], descriptors: _Descriptors) -> list[str]:
        control, tell = fds
        handed = ["--info-fd", str(tell), *(("--seccomp", descriptors.add(self._filter)) if self._filter else ())]
        arguments = descriptors.add("\0".join([*self._isolation(), *handed, *self._root(template, descriptors)]) + "\0")
        drop = []
        if os.geteuid() == 0:
            ids = [f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
            drop = [self._tools["setpriv"], *ids, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]
        prefix = self._stage.prefix()
        if prefix:
            prefix[0] = self._tools["nsenter"]
        bounds = self._limits.rlimits(grouped=self.cgroups.controllers)
        limits = ",".join(f"{name}={value}" for name, value in bounds.items())
        agent = [str(interpreter_program()), "-I", "-S", _AGENT_INSIDE, str(control), limits]
        return [*prefix, *drop, self._tools["bwrap"], "--args", arguments, "--", *agent]

    def _isolation(self) -> list[str]:
        return [
            *(
                "--unshare-user",
                "--unshare-ipc",
                "--unshare-pid",
                "--unshare-net",
                "--unshare-uts",
                "--unshare-cgroup-try",
            ),
            *("--disable-userns", "--assert-userns-disabled", "--cap-drop", "ALL", "--uid", "1000", "--gid", "1000"),
            *("--die-with-parent", "--new-session", "--as-pid-1", "--hostname", "sandbox"),
            *("--clearenv", "--setenv", "HOME", HOME, "--setenv", "LANG", "C.UTF-8"),
        ]

    def _root(self, template: Template, descriptors: _Descriptors) -> list[str]:
        limits, arguments = self._limits, ["--ro-bind", "/usr", "/usr"]
        for name in ("bin", "sbin", "lib", "lib64"):
            arguments += ["--symlink", f"usr/{name}", f"/{name}"]
        for path in _ETC_OF_THE_MACHINE:
            arguments += ["--ro-bind-try", path, path]
        for path, text in {**_ETC, **_AGENT}.items():
            arguments += ["--perms", "0444", "--file", descriptors.add(text), path]
        arguments += [
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            *_tmpfs(_SHM, limits.shared_memory_bytes, "1777"),
            "--remount-ro",
            "/dev",
        ]
        arguments += [*_tmpfs(_TMP, limits.tmp_bytes, "1777"), *_tmpfs(HOME, limits.home_bytes, "0755")]
        arguments += ["--dir", "/root", "--dir", "/var", "--symlink", "../tmp", "/var/tmp"]  # noqa: S108
        for bind in self._binds(template):
            arguments += ["--ro-bind", self._stage.places[bind.source], bind.target]
        return [*arguments, "--remount-ro", "/", "--chdir", HOME]

    def _binds(self, template: Template) -> tuple[Bind, ...]:
        """Shorter targets first, so that a bind inside another one is not covered by it."""
        unique = {bind.target: bind for bind in (*interpreter_binds(), *template.binds)}
        return tuple(sorted(unique.values(), key=lambda bind: (bind.target.count("/"), bind.target)))


def _tmpfs(path: str, size: int, mode: str) -> list[str]:
    return ["--perms", mode, "--size", str(size), "--tmpfs", path]


def find_tool(name: str, *, path: str = _SYSTEM_PATH) -> str:
    """Where a program that isolation needs is; IsolationUnavailable says what to install."""
    found = shutil.which(name, path=path)
    if found is None:
        package = "bubblewrap" if name == "bwrap" else "util-linux"
        raise IsolationUnavailable(f"`{name}` is missing: install the package `{package}` and start again.")
    return found


def environment_of(template: Template, *layers: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command: the template's, the user's, then each layer over it."""
    merged = {**template.environment(), "HOME": HOME, "USER": "user", "LOGNAME": "user"}
    for layer in layers:
        merged.update(layer)
    return merged
