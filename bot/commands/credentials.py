"""The files in which a new App's credentials are kept: taken before GitHub is asked, since it tells the key once."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bot.domain.errors import UserError
from bot.settings import APP_FILE

KEY_FILE = "app.pem"
_ROOM = 16 * 1024
"""Bytes of disk held for each file; a key of 4096 bits has 3,300."""
_PLAIN = re.compile(r"[^'\\$`\x00-\x1f\x7f]*")
_ELSEWHERE = "Set PULLWRIGHT_HOME to a directory in which you may write."


@dataclass(frozen=True, slots=True)
class _Draft:
    descriptor: int
    path: Path

    def write(self, text: str) -> None:
        content = memoryview(text.encode())
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        while content:
            content = content[os.write(self.descriptor, content) :]
        os.ftruncate(self.descriptor, len(text.encode()))
        os.fsync(self.descriptor)


class Drafts:
    """Both files under names of the moment, with the disk they need; nobody else may read them."""

    def __init__(self, home: Path, drafts: Mapping[str, _Draft]) -> None:
        self._home = home
        self._drafts = drafts
        self._written: list[Path] = []

    @property
    def written(self) -> tuple[Path, ...]:
        """What was written and did not get its name: it stays."""
        return tuple(self._written)

    def keep(self, app_id: int, private_key: str, webhook_secret: str) -> None:
        """Write both and give them their names. Raises OSError or ValueError; what was written by then stays."""
        self._write(KEY_FILE, private_key)
        self._write(APP_FILE, _environment(app_id, self._home / KEY_FILE, webhook_secret))
        for name in (KEY_FILE, APP_FILE):
            final, draft = self._home / name, self._drafts[name].path
            os.close(os.open(final, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # nobody else's is overwritten
            draft.replace(final)
            self._written.remove(draft)
        _sync(self._home)

    def _write(self, name: str, text: str) -> None:
        self._drafts[name].write(text)
        self._written.append(self._drafts[name].path)

    def close(self) -> None:
        for draft in self._drafts.values():
            os.close(draft.descriptor)
            if draft.path not in self._written:
                draft.path.unlink(missing_ok=True)


@contextmanager
def reserved(home: Path) -> Iterator[Drafts]:
    """Room for `app.pem` and `app.env` under the home, which is made when it is not there. Raises UserError when there is an App
    already, or no way to write."""
    for name in (KEY_FILE, APP_FILE):
        if os.path.lexists(home / name):
            raise UserError(
                f"There is an App already: {home / name} exists.",
                f"For another one, move {KEY_FILE} and {APP_FILE} away first, or set PULLWRIGHT_HOME to another directory.",
            )
    if not _PLAIN.fullmatch(str(home)):
        raise UserError(
            f"{home} has characters that a shell gives a meaning to.", "Set PULLWRIGHT_HOME to another place."
        )
    drafts = Drafts(home, _taken(home))
    try:
        yield drafts
    finally:
        drafts.close()


def _taken(home: Path) -> dict[str, _Draft]:
    drafts: dict[str, _Draft] = {}
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in (KEY_FILE, APP_FILE):
            descriptor, path = tempfile.mkstemp(prefix=f".{name}.", dir=home)
            drafts[name] = _Draft(descriptor, Path(path))
            os.posix_fallocate(descriptor, 0, _ROOM)
    except OSError as error:
        Drafts(home, drafts).close()
        raise UserError(f"{home} cannot be written: {error.strerror}.", _ELSEWHERE) from error
    return drafts


def _environment(app_id: int, key: Path, webhook_secret: str) -> str:
    """`app.env`, as a shell and python-dotenv read it alike. Raises ValueError for a value they would read differently."""
    values = {
        "PULLWRIGHT_APP_ID": str(app_id),
        "PULLWRIGHT_PRIVATE_KEY_FILE": str(key),
        "PULLWRIGHT_WEBHOOK_SECRET": webhook_secret,
    }
    if not all(map(_PLAIN.fullmatch, values.values())):
        raise ValueError("the webhook secret has characters that cannot be quoted")
    lines = [f"{name}='{value}'" for name, value in values.items() if value]
    return "\n".join(
        ["# The App that `pullwright setup` made. Nothing but its three variables is read from here.", *lines, ""]
    )


def _sync(directory: Path) -> None:
    with suppress(OSError):  # a file system that cannot has nothing to be synchronised
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
