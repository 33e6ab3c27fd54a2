"""The start-up probe: one real sandbox tries to get out, and the server serves only if nothing got through.

Each check has its control outside: the file is readable here, the listener answers here. Otherwise it proves nothing.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.sandboxd.errors import IsolationUnavailable
from bot.sandboxd.launch import Launcher
from bot.sandboxd.processes import Command, Kind
from bot.sandboxd.sandbox import Sandbox
from bot.sandboxd.templates import Template, interpreter_program

_SECONDS = 20

INSIDE = """
import ctypes, fcntl, json, os, pty, socket, sys
secret, port, marker = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
def text(path):
    try: return open(path, "rb").read()
    except OSError: return b""
def dials(family, address):
    try: socket.create_connection(address, 2).close(); return True
    except OSError: return False
libc = ctypes.CDLL(None, use_errno=True)
def namespaces():
    return any(libc.unshare(flag) == 0 for flag in (0x10000000, 0x00020000, 0x40000000))
def opens(family, kind):
    try: socket.socket(family, kind).close(); return True
    except OSError: return False
def types():
    try: return fcntl.ioctl(pty.openpty()[1], 0x5412, b"x") is not None
    except OSError: return False
def writes(path):
    try: os.close(os.open(path, os.O_WRONLY)); return True
    except OSError: return False
pids = [name for name in os.listdir("/proc") if name.isdigit()]
print(json.dumps({
    "reads a file of the machine": bool(text(secret) or text("/proc/1/root" + secret) or text("/etc/shadow")),
    "reaches a listener of the machine": dials(socket.AF_INET, ("127.0.0.1", port)),
    "has a network interface": [row.split(b":")[0].strip() for row in text("/proc/net/dev").splitlines()[2:]] != [b"lo"],
    "runs without a system call filter": status["Seccomp"].strip() != "2",
    "reaches the kernel by strange sockets": any(opens(*kind) for kind in ((16, 3), (17, 3), (38, 5), (40, 1), (2, 3))),
    "types into a terminal": types(),
    "may gain privileges": status["NoNewPrivs"].strip() != "1",
    "has capabilities": any(int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")),
    "makes namespaces": namespaces(),
    "sees the server's environment": any(marker in text(f"/proc/{pid}/environ") for pid in pids),
    "writes the memory of its process 1": writes("/proc/1/mem"),
    "sees processes of the machine": len(pids) > 3 or "agent.py" not in text("/proc/1/cmdline").decode(),
    "runs as root": os.getuid() != 1000,
    "writes to the root file system": any(os.access(path, os.W_OK) for path in ("/", "/usr", "/etc", "/run", "/dev")),
    "writes kernel settings": writes("/proc/sys/kernel/core_pattern") or writes("/proc/sysrq-trigger"),
}))
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the probe got through to; empty means isolated."""

    escapes: tuple[str, ...]


HARDENING = frozenset(
    {
        "runs without a system call filter",
        "reaches the kernel by strange sockets",
        "types into a terminal",
        "makes namespaces",
        "writes the memory of its process 1",
    }
)
"""By itself no way out, but more of the kernel, or of the server, to try. `weaker` lets these get through."""


async def prove_isolation(launcher: Launcher, template: Template, *, weaker: bool = False) -> str:
    """Raises IsolationUnavailable unless a real sandbox held every attempt. A sentence about what `weaker` let through, or ""."""
    finding = await examine(launcher, template)
    serious = [what for what in finding.escapes if not weaker or what not in HARDENING]
    said = ", ".join(serious or finding.escapes)
    if serious:
        more = " (PULLWRIGHT_WEAKER_ISOLATION=true serves all the same)" if HARDENING.issuperset(serious) else ""
        raise IsolationUnavailable(
            f"Isolation does not hold on this machine (a sandbox {said}): do not run untrusted code here{more}."
        )
    return f"Isolation is weaker than usual, as PULLWRIGHT_WEAKER_ISOLATION allows: a sandbox {said}." if said else ""


async def examine(launcher: Launcher, template: Template) -> Finding:
    """Run the attempts inside one throwaway sandbox of `template`."""
    sandbox = Sandbox(template, launcher.launch(template))
    try:
        await _started(sandbox)
        with _bait() as (secret, port):
            marker = next((f"{name}={value}" for name, value in os.environ.items() if value), "PATH=")
            output = await _run(sandbox, (secret, str(port), marker))
        return Finding((*_escapes(output), *_outside(sandbox.host_pid)))
    finally:
        await sandbox.kill()


async def _started(sandbox: Sandbox) -> None:
    try:
        await sandbox.started()
    except IsolationUnavailable as refused:
        raise IsolationUnavailable(
            f"This machine does not let an unprivileged user make namespaces, or bubblewrap is too old ({refused}): "
            "allow user namespaces (in a container: a seccomp and AppArmor profile that permits them) and start again.",
        ) from None


@contextmanager
def _bait() -> Iterator[tuple[str, int]]:
    """A file that anybody may read and a port that anybody may dial, both proven to be so from here."""
    with (
        tempfile.TemporaryDirectory(prefix="pullwright-probe-") as directory,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        secret = Path(directory, "secret")
        secret.write_text(secrets.token_hex(8), encoding="ascii")
        Path(directory).chmod(0o755)
        secret.chmod(0o644)
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), 2):
            secret.read_text(encoding="ascii")
        yield str(secret), port


async def _run(sandbox: Sandbox, arguments: tuple[str, ...]) -> bytes:
    command = Command(str(interpreter_program()), ("-I", "-c", INSIDE, *arguments), {}, None, stdin=False)
    process, subscriber = await sandbox.spawn(command)
    sandbox.expire(process, _SECONDS)
    output = complaint = b""
    while (event := await subscriber.get(_SECONDS)) is not None and event.kind not in {Kind.END, Kind.GONE}:
        output += event.data if event.kind is Kind.STDOUT else b""
        complaint += event.data if event.kind is Kind.STDERR else b""
    if not output:
        raise IsolationUnavailable(
            f"The isolation probe did not run ({complaint.decode(errors='replace')[-300:].strip()})."
        )
    return output


def _escapes(output: bytes) -> tuple[str, ...]:
    attempts: Mapping[str, object] = json.loads(output)
    return tuple(what for what, got_through in attempts.items() if got_through is not False)


def _outside(pid: int) -> tuple[str, ...]:
    """What only the machine can see: which user the launcher really is."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    uids = next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1:]
    return ("is root on the machine",) if "0" in uids else ()
