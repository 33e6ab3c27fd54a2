"""Keeps the beginning and the end of an output in bounded memory."""

from __future__ import annotations


class Clip:
    """Collects text up to `limit` bytes; beyond that the middle is left out, and where it was says how much."""

    def __init__(self, limit: int) -> None:
        self._head_limit = limit // 2
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        # Trimmed only at twice the limit, so that many small pieces do not each move the whole tail.
        if len(self._tail) > 2 * self._tail_limit:
            self._trim()

    def text(self) -> str:
        """What was kept."""
        self._trim()
        head, tail = self._head.decode("utf-8", "replace"), self._tail.decode("utf-8", "replace")
        return f"{head}\n[{self._left_out} bytes left out]\n{tail}" if self._left_out else head + tail

    def _trim(self) -> None:
        excess = len(self._tail) - self._tail_limit
        if excess > 0:
            del self._tail[:excess]
            self._left_out += excess
