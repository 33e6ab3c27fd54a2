"""Builds result streams as a hostile sandbox would: everything well-formed but what the test forges."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bot.custody.inside.disk import object_id, tree_id
from bot.custody.inside.tell import MAGIC
from bot.domain.ids import TreeId

NONCE = "n" * 32


@dataclass(frozen=True)
class Forged:
    """One file of the result."""

    path: str | bytes
    data: bytes = b"content\n"
    mode: str = "100644"
    blob: str | None = None

    def octets(self) -> bytes:
        return self.path if isinstance(self.path, bytes) else self.path.encode("utf-8", "surrogatepass")

    def record(self) -> bytes:
        path = self.octets()
        mode = self.mode.encode()
        blob = (self.blob or object_id(b"blob", self.data)).encode()
        return b"P" + struct.pack(">HIQ", len(mode), len(path), len(self.data)) + mode + blob + path + self.data


@dataclass(frozen=True)
class Stream:
    """A whole result. `base` is what the base tree holds: path → (mode, id)."""

    base_tree: TreeId
    base: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    nonce: str = NONCE

    def body(self, puts: Sequence[Forged] = (), removed: Sequence[str] = (), tree: str | None = None) -> bytes:
        parts = [MAGIC, f"{self.nonce}\n{self.base_tree}\n".encode()]
        parts += [put.record() for put in puts]
        parts += [b"D" + struct.pack(">I", len(path.encode())) + path.encode() for path in removed]
        parts += [b"E", struct.pack(">II", len(puts), len(removed)), (tree or self._tree(puts, removed)).encode()]
        return b"".join(parts)

    def _tree(self, puts: Sequence[Forged], removed: Sequence[str]) -> str:
        leaves = {path.encode(): (mode.encode(), blob) for path, (mode, blob) in self.base.items()}
        for path in removed:
            leaves.pop(path.encode(), None)
        for put in puts:
            leaves[put.octets()] = (put.mode.encode(), object_id(b"blob", put.data))
        try:
            return tree_id(leaves)
        except (AttributeError, TypeError):  # such paths make no tree at all
            return "0" * 40

    def of(self, *puts: Forged, removed: Sequence[str] = (), tree: str | None = None) -> bytes:
        return sealed(self.body(puts, removed, tree))


def sealed(body: bytes) -> bytes:
    """The stream with the checksum that fits it."""
    return body + hashlib.sha256(body).digest()
