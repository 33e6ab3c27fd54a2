"""Errors by what the reader can do about them (design D14). Policy denial, red tests, a conflict are values, not errors."""

from __future__ import annotations


class UserError(Exception):
    """Something the person can put right; `message` says what is wrong, `hint` what to do. Becomes a comment."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message} {hint}".strip())


class Transient(Exception):  # noqa: N818 - it names a state of the outside, not a fault of ours
    """The outside cannot answer now; try again after `retry_after` seconds (None: the caller's own back-off)."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class CustodyError(Exception):
    """What came back is not what was sent, or does not keep the rules of the line. Nothing of it is used."""
