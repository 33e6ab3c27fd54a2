"""What can go wrong here, by what the caller can do."""

from __future__ import annotations


class IsolationUnavailable(Exception):  # noqa: N818 - it names a state of the machine
    """This machine cannot isolate; the one sentence of the message says what to do. There is no fallback."""


class UnknownTemplateError(LookupError):
    """No template of that name."""


class TooManySandboxes(Exception):  # noqa: N818
    """The server is at its own bound."""


class SandboxGone(Exception):  # noqa: N818
    """The sandbox ended while, or before, it was asked."""

    def __init__(self, reason: str = "the sandbox ended before it answered") -> None:
        super().__init__(reason)


class NotKept(Exception):  # noqa: N818
    """A snapshot could not be made, or what was kept cannot be used; the message says why."""


class AgentRefused(Exception):  # noqa: N818
    """The agent could not do what it was asked: `kind` is the name of the Python error inside."""

    def __init__(self, kind: str, message: str, errno: int | None = None) -> None:
        self.kind = kind
        self.errno = errno
        super().__init__(message)
