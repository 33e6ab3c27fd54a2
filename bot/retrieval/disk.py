"""Reads files of a plain folder that others may be changing: a pipe that took a file's place is not waited for, a link not followed."""

from __future__ import annotations

import os
import stat

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read(path: str, most: int) -> bytes:
    """At most so many bytes of a regular file. Raises OSError, also when it is something else by now."""
    opened = os.open(path, _FLAGS)
    try:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "no regular file", path)
        parts: list[bytes] = []
        while most > 0 and (part := os.read(opened, min(status.st_size + 1, most))):
            parts.append(part)
            most -= len(part)
        return b"".join(parts)
    finally:
        os.close(opened)
