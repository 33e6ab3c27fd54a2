"""Reads what git's plumbing prints. Pure: bytes in, values out."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence

from bot.custody.faults import DamagedResult
from bot.domain.change import ChangedPath, FileMode, TreeEntry
from bot.domain.ids import BlobId

_ABSENT = "000000"
_BLOB = 3
_ESCAPES = dict(zip('\a\b\t\n\v\f\r"\\', (rf"\{name}" for name in 'abtnvfr"\\'), strict=True))


def text(path: bytes) -> str:
    """A path as text without loss: bytes that are not UTF-8 become surrogates, which no rule lets into a change."""
    return path.decode("utf-8", "surrogateescape")


def octets(path: str) -> bytes:
    """The bytes of a path that `text` made."""
    return path.encode("utf-8", "surrogateescape")


def quoted(path: str) -> str:
    """A path on one line, as git prints it with `core.quotePath=false`: in quotes with escapes when it holds a quote, a backslash, a
    byte that is no UTF-8, or what nobody sees (line breaks, terminal escapes, marks of direction)."""
    if path.isprintable() and '"' not in path and "\\" not in path:
        return path
    return '"' + "".join([_shown(letter) for letter in path]) + '"'


def _shown(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    return letter if letter.isprintable() else "".join([f"\\{byte:03o}" for byte in octets(letter)])


def blob_id(data: bytes) -> BlobId:
    """The id git gives to these bytes."""
    return BlobId(hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest())


def parse_listing(listing: bytes) -> tuple[TreeEntry, ...]:
    """`ls-tree -z`, with or without `-r`; directories themselves are no entries."""
    return tuple(_entry(line) for line in listing.split(b"\0") if line and not line.startswith(b"040000 "))


def _entry(line: bytes) -> TreeEntry:
    meta, _, path = line.partition(b"\t")
    mode, _, identifier = meta.decode("ascii").split(" ")
    return TreeEntry(text(path), _mode(mode, path), BlobId(identifier))


def _mode(mode: str, path: bytes) -> FileMode:
    try:
        return FileMode(mode)
    except ValueError:
        raise DamagedResult("unknown_mode", text(path), mode) from None


def parse_raw_diff(raw: bytes) -> tuple[ChangedPath, ...]:
    """`diff-tree -r --raw -z --no-renames`, in git's order."""
    fields = raw.split(b"\0")
    pairs = zip(fields[0::2], fields[1::2], strict=False)
    return tuple(_changed(meta, path) for meta, path in pairs)


def _changed(meta: bytes, path: bytes) -> ChangedPath:
    old_mode, new_mode, old_id, new_id, _ = meta.decode("ascii").removeprefix(":").split(" ")
    name = text(path)

    def side(mode: str, identifier: str) -> TreeEntry | None:
        return None if mode == _ABSENT else TreeEntry(name, _mode(mode, path), BlobId(identifier))

    return ChangedPath(name, side(old_mode, old_id), side(new_mode, new_id))


def parse_batch(output: bytes) -> Iterator[tuple[BlobId, bytes]]:
    """`cat-file --batch` for blobs; a missing object or another type is damage."""
    position = 0
    while position < len(output):
        end = output.find(b"\n", position)
        words = output[position:end].split(b" ") if end > 0 else []
        if len(words) != 3 or words[1] != b"blob":
            raise DamagedResult("object_missing", detail=output[position : position + 80].decode("ascii", "replace"))
        size = int(words[2])
        yield BlobId(words[0].decode("ascii")), output[end + 1 : end + 1 + size]
        position = end + 1 + size + 1


def pack_of_blobs(blobs: Sequence[bytes]) -> bytes:
    """A git pack of whole blobs, so that any number of them is stored by one `unpack-objects`."""
    body = b"".join(
        [b"PACK", struct.pack(">II", 2, len(blobs)), *(part for data in blobs for part in _packed(data))],
    )
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def _packed(data: bytes) -> tuple[bytes, bytes]:
    size = len(data)
    byte = _BLOB << 4 | size & 0x0F
    size >>= 4
    head = bytearray()
    while size:
        head.append(byte | 0x80)
        byte = size & 0x7F
        size >>= 7
    head.append(byte)
    return bytes(head), zlib.compress(data, 1)


def index_lines(removed: Iterable[str], put: Iterable[TreeEntry]) -> bytes:
    """`update-index -z --index-info`: removals first, so that a file may take a directory's place."""
    gone = [b"0 " + b"0" * 40 + b"\t" + octets(path) + b"\0" for path in removed]
    lines = [f"{entry.mode.value} {entry.blob}\t".encode() + octets(entry.path) + b"\0" for entry in put]
    return b"".join(gone + lines)
