"""Makes bind sources reachable for an unprivileged launcher although a parent directory shuts it out.

bubblewrap resolves its sources as the sandbox's uid, and refuses descriptors opened before. So root binds them under
one traversable directory of a private mount namespace, which lives exactly as long as the descriptor held here.
"""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bot.sandboxd.errors import IsolationUnavailable

_STAGE = "/tmp"  # noqa: S108 - covered inside the private namespace; bubblewrap itself relies on it being there
_SCRIPT = """set -e
mount -t tmpfs -o mode=755 pullwright "$1"
stage=$1 number=0; shift
for source in "$@"; do mkdir "$stage/$number"; mount --rbind "$source" "$stage/$number"; number=$((number + 1)); done
mount --rbind "$stage" /tmp
echo ready; read -r _
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where each source is found, and the namespace (a descriptor) in which it is found there; None: ours."""

    places: dict[Path, str]
    namespace: int | None = None

    def prefix(self) -> list[str]:
        """What to put before a command that shall see the stage."""
        if self.namespace is None:
            return []
        return ["nsenter", f"--mount=/proc/{os.getpid()}/fd/{self.namespace}", "--"]

    def close(self) -> None:
        if self.namespace is not None:
            os.close(self.namespace)


def traversable(path: Path) -> bool:
    """May anybody walk down to `path` and look into it?"""
    return all(part.stat().st_mode & stat.S_IXOTH for part in (path, *path.parents))


def stage(sources: Iterable[Path]) -> Stage:
    """Blocking. Only root needs, and can make, a private namespace; as an ordinary user the sources are our own."""
    resolved = {source: source.resolve() for source in sources}
    if os.geteuid() != 0 or all(traversable(path) for path in resolved.values()):
        return Stage({source: str(path) for source, path in resolved.items()})
    ordered = list(resolved)
    with tempfile.TemporaryDirectory(prefix="pullwright-stage-") as directory:
        namespace = _private_namespace(directory, [str(resolved[source]) for source in ordered])
    return Stage({source: f"{_STAGE}/{number}" for number, source in enumerate(ordered)}, namespace)


def _private_namespace(directory: str, sources: list[str]) -> int:
    command = ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", _SCRIPT, "sh", directory, *sources]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        start_new_session=True,
    ) as holder:
        if holder.stdout is None or holder.stdout.readline() != b"ready\n":
            _, complaint = holder.communicate()
            raise IsolationUnavailable(
                "Cannot mount a template's directories for the sandbox "
                f"({complaint.decode(errors='replace').strip() or 'unshare failed'}): run the server as an ordinary user, "
                "with CAP_SYS_ADMIN, or with the interpreter and tools in directories that everybody may enter.",
            )
        return os.open(f"/proc/{holder.pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
