"""Reads the name a TLS client asks for from its first record. Pure; whatever is odd is refused."""

from __future__ import annotations

HEAD_BYTES = 5
_RECORD_CAP = 16_384
_HANDSHAKE, _CLIENT_HELLO = 22, 1
_SERVER_NAME, _ENCRYPTED_HELLO = 0, 0xFE0D


class BadHello(ValueError):  # noqa: N818 - it names what it is
    """Not a ClientHello whose name can be read; the message says why."""


def record_length(head: bytes) -> int:
    """How many bytes follow the five of a record's head."""
    length = int.from_bytes(head[3:5], "big")
    if len(head) != HEAD_BYTES or head[0] != _HANDSHAKE or head[1] != 3 or not 4 < length <= _RECORD_CAP:
        raise BadHello("not TLS")
    return length


def server_name(record: bytes) -> str:
    """The one host name of the ClientHello that this record wholly holds."""
    reader = _Reader(record)
    if reader.number(1) != _CLIENT_HELLO or reader.number(3) != len(record) - 4:
        raise BadHello("the ClientHello is not in one record")
    reader.take(2 + 32)
    for width in (1, 2, 1):  # session, cipher suites, compressions
        reader.take(reader.number(width))
    extensions = _Reader(reader.take(reader.number(2)))
    names: list[str] = []
    while not extensions.done:
        kind, body = extensions.number(2), extensions.take(extensions.number(2))
        if kind == _ENCRYPTED_HELLO:
            raise BadHello("the ClientHello is encrypted (ECH)")
        if kind == _SERVER_NAME:
            names += _names(body)
    if len(names) != 1 or not reader.done:
        raise BadHello("it does not name one host (SNI)")
    return names[0]


def _names(body: bytes) -> list[str]:
    reader = _Reader(body)
    listed = _Reader(reader.take(reader.number(2)))
    names = []
    while not listed.done:
        kind, name = listed.number(1), listed.take(listed.number(2))
        if kind != 0 or not name.isascii():
            raise BadHello("it names something else than a host")
        names.append(name.decode("ascii"))
    return names


class _Reader:
    """Exact lengths from bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def done(self) -> bool:
        return self._at == len(self._data)

    def take(self, length: int) -> bytes:
        part = self._data[self._at : self._at + length]
        if len(part) != length:
            raise BadHello("the ClientHello is cut short")
        self._at += length
        return part

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")
