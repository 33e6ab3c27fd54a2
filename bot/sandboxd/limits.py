"""What one sandbox, and one server, may use."""

from __future__ import annotations

from dataclasses import dataclass

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """`memory_bytes` and `cpus` need a control group; all others hold without. A tmpfs counts as memory, and its inodes do too."""

    sandboxes: int = 64
    memory_bytes: int = 5120 * _MIB
    cpus: float = 2.0
    processes: int = 512
    open_files: int = 4096
    file_bytes: int = 2048 * _MIB
    home_bytes: int = 2048 * _MIB
    tmp_bytes: int = 1024 * _MIB
    shared_memory_bytes: int = 64 * _MIB
    lifetime_seconds: int = 24 * 3600
    snapshots: int = 50
    snapshot_bytes: int = 10 << 30

    def rlimits(self, *, grouped: frozenset[str]) -> dict[str, int]:
        """By their names in `resource`; the agent sets them on itself, so all it starts inherits them.

        `grouped` is what a control group bounds. Without one for memory each process is bounded for itself: its data, because
        the address space of a runtime that only reserves may be far larger.
        """
        alone = {} if "memory" in grouped else {"RLIMIT_DATA": self.memory_bytes}
        return {
            **alone,
            "RLIMIT_CORE": 0,
            "RLIMIT_NPROC": self.processes,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_FSIZE": self.file_bytes,
            "RLIMIT_MEMLOCK": 64 << 10,
            "RLIMIT_MSGQUEUE": 0,
        }
