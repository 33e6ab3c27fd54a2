"""Virtual time: the real clock plus what a test has added."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class Clock:
    """Moves with the real clock and can be pushed forward; token expiry and record times read it."""

    def __init__(self) -> None:
        self._offset = timedelta()

    def now(self) -> datetime:
        return (datetime.now(UTC) + self._offset).replace(microsecond=0)

    def advance(self, seconds: float) -> None:
        self._offset += timedelta(seconds=seconds)


def stamp(moment: datetime) -> str:
    """GitHub's form: whole seconds and a Z. Clients refuse fractions."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def stamp_or_none(moment: datetime | None) -> str | None:
    return stamp(moment) if moment else None
