"""The compiled filter of this machine, as bubblewrap takes it."""

from __future__ import annotations

import json
from pathlib import Path

from bot.sandboxd.errors import IsolationUnavailable

_NAMES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


def filter_of(machine: str) -> bytes:
    """The BPF program for `os.uname().machine`; there is no running without one."""
    name = _NAMES.get(machine.lower())
    if name is None:
        raise IsolationUnavailable(
            f"There is no system call filter for a processor of kind {machine}: run the sandboxes on x86-64 or ARM64, "
            "or set E2B_API_KEY to use E2B Cloud.",
        )
    data = json.loads(Path(__file__).with_name(f"{name}.json").read_text(encoding="ascii"))
    return bytes.fromhex("".join(data["instructions"]))
