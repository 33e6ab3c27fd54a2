"""The little of git's wire format that a server needs to read a push and to refuse it."""

from __future__ import annotations

import re
from dataclasses import dataclass

ZERO = "0" * 40
_LENGTH = re.compile(rb"[0-9a-f]{4}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Command:
    old: str
    new: str
    ref: str


@dataclass(frozen=True, slots=True)
class PushRequest:
    commands: tuple[Command, ...]
    capabilities: frozenset[str]
    pack_offset: int


def read_push(body: bytes) -> PushRequest | None:
    """Commands and capabilities before the pack; None when there are none (git's probe) or it is no push at all."""
    commands: list[Command] = []
    capabilities: frozenset[str] = frozenset()
    position = 0
    while position + 4 <= len(body):
        length = body[position : position + 4]
        size = int(length, 16) if _LENGTH.fullmatch(length) else 1
        if size == 0:
            position += 4
            break
        if size < 4:
            return None
        line = body[position + 4 : position + size]
        position += size
        text, _, extra = line.partition(b"\0")
        if extra:
            capabilities = frozenset(extra.decode("utf-8", "replace").split())
        parts = text.decode("utf-8", "surrogateescape").rstrip("\n").split(" ", 2)
        if len(parts) == 3 and len(parts[0]) == 40:
            commands.append(Command(*parts))
    if not commands:
        return None
    return PushRequest(tuple(commands), capabilities, position)


def packet(payload: bytes) -> bytes:
    return f"{len(payload) + 4:04x}".encode() + payload


def refusal(push: PushRequest, reasons: dict[str, str], told: str) -> bytes:
    """A report that refuses the named refs, and all the others with them; `told` is printed as `remote:` lines."""
    lines = [b"unpack ok\n"]
    for command in push.commands:
        reason = reasons.get(command.ref, "atomic push failed")
        lines.append(f"ng {command.ref} {reason}\n".encode("utf-8", "surrogateescape"))
    report = b"".join(packet(line) for line in lines) + b"0000"
    if "side-band-64k" not in push.capabilities:
        return report
    banner = b"".join(packet(b"\x02" + f"{line}\n".encode()) for line in told.splitlines())
    return banner + packet(b"\x01" + report) + b"0000"
