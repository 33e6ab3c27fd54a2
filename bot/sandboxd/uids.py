"""One unprivileged uid per live sandbox, so that no sandbox can signal another's launcher or use up its limits."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

_FIRST, _COUNT = 61_200, 2_000


@dataclass(frozen=True, slots=True)
class UidLease:
    """A uid that no other sandbox on this machine holds; it is free again once closed, or when this process dies."""

    uid: int
    _claim: socket.socket | None

    def close(self) -> None:
        if self._claim is not None:
            self._claim.close()


def lease_uid() -> UidLease:
    """From the dedicated range when this is root (an abstract socket is the machine-wide claim), else our own uid."""
    if os.geteuid() != 0:
        return UidLease(os.getuid(), None)
    start = secrets.randbelow(_COUNT)
    for step in range(_COUNT):
        uid = _FIRST + (start + step) % _COUNT
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with suppress(OSError), _closing_on_error(claim):
            claim.bind(f"\0pullwright-sandbox-uid-{uid}")
            return UidLease(uid, claim)
    raise OSError("every uid of the sandbox range is taken")


@contextmanager
def _closing_on_error(claim: socket.socket) -> Iterator[None]:
    try:
        yield
    except OSError:
        claim.close()
        raise
