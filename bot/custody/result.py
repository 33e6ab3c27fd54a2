"""Reads the result a sandbox hands back: a length-prefixed stream that cannot be cut or altered unseen. Pure."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from bot.custody.faults import DamagedResult, ForbiddenPath, OverLimit
from bot.custody.inside.tell import MAGIC
from bot.custody.raw import blob_id, text
from bot.domain.change import FileMode
from bot.domain.ids import BlobId, TreeId, is_full_object_id

_TRAILER = 1 + 8 + 40 + 32
_MODES = {mode.value.encode(): mode for mode in (FileMode.REGULAR, FileMode.EXECUTABLE, FileMode.SYMLINK)}


@dataclass(frozen=True, slots=True)
class Limits:
    """Hard caps on what one capture may bring."""

    file_bytes: int = 5 << 20
    total_bytes: int = 64 << 20
    paths: int = 20_000

    @property
    def stream_bytes(self) -> int:
        return self.total_bytes + self.paths * 512 + 4096


@dataclass(frozen=True, slots=True)
class Put:
    """A file that is new or differs from the base, with its bytes."""

    path: str
    mode: FileMode
    blob: BlobId
    data: bytes


@dataclass(frozen=True, slots=True)
class Result:
    """What the sandbox says: these files differ, these are gone, and the tree is then this one."""

    base_tree: TreeId
    puts: tuple[Put, ...]
    removed: tuple[str, ...]
    tree: TreeId


def parse(stream: bytes, *, nonce: str, base_tree: TreeId, limits: Limits) -> Result:
    """The result, whole and in answer to this very request; anything else raises DamagedResult, OverLimit, ForbiddenPath."""
    body = _checked(stream, limits)
    head = MAGIC + f"{nonce}\n{base_tree}\n".encode()
    if not body.startswith(head):
        raise DamagedResult("stale", detail="answers another request")
    reader = _Reader(body, len(head))
    puts: list[Put] = []
    removed: list[str] = []
    total = 0
    while (kind := reader.take(1)) != b"E":
        if len(puts) + len(removed) >= limits.paths:
            raise OverLimit("path_count", detail=f"more than {limits.paths:,} changed paths")
        if kind == b"P":
            puts.append(_put(reader, limits))
            total += len(puts[-1].data)
            if total > limits.total_bytes:
                raise OverLimit("total_size", puts[-1].path)
        elif kind == b"D":
            removed.append(text(reader.take(reader.number(">I"))))
        else:
            raise DamagedResult("unknown_record")
    counts = (reader.number(">I"), reader.number(">I"))
    tree = reader.take(40).decode("ascii", "replace")
    if not reader.done or counts != (len(puts), len(removed)) or not is_full_object_id(tree):
        raise DamagedResult("count_mismatch", detail=f"said {counts}, sent {(len(puts), len(removed))}")
    _once([put.path for put in puts] + removed)
    return Result(base_tree, tuple(puts), tuple(removed), TreeId(tree))


def _checked(stream: bytes, limits: Limits) -> bytes:
    if not stream:
        raise DamagedResult("empty")
    if len(stream) > limits.stream_bytes:
        raise OverLimit("stream_size")
    if len(stream) < len(MAGIC) + _TRAILER:
        raise DamagedResult("cut_short")
    body, checksum = stream[:-32], stream[-32:]
    if hashlib.sha256(body).digest() != checksum:
        raise DamagedResult("checksum")
    return body


def _put(reader: _Reader, limits: Limits) -> Put:
    mode_length, path_length, size = reader.number(">H"), reader.number(">I"), reader.number(">Q")
    mode, claimed, path = reader.take(mode_length), reader.take(40), text(reader.take(path_length))
    if mode == b"nested":
        raise ForbiddenPath("nested_repository", path)
    if mode not in _MODES:
        raise ForbiddenPath("special_file", path, mode.decode("ascii", "replace"))
    if size > limits.file_bytes:
        raise OverLimit("file_size", path, f"{size:,} bytes, at most {limits.file_bytes:,}")
    data = reader.take(size)
    identifier = blob_id(data)
    if identifier.encode() != claimed:
        raise DamagedResult("content_mismatch", path)
    return Put(path, _MODES[mode], identifier, data)


def _once(paths: list[str]) -> None:
    seen: set[str] = set()
    for path in paths:
        if path in seen:
            raise DamagedResult("duplicate_path", path)
        seen.add(path)


class _Reader:
    """Takes exact lengths from bytes in memory; asking beyond the end is damage."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def take(self, length: int) -> bytes:
        end = self._position + length
        if end > len(self._data):
            raise DamagedResult("cut_short")
        part = self._data[self._position : end]
        self._position = end
        return part

    def number(self, form: str) -> int:
        (value,) = struct.unpack(form, self.take(struct.calcsize(form)))
        return int(value)

    @property
    def done(self) -> bool:
        return self._position == len(self._data)
