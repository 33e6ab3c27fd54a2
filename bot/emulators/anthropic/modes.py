"""How strict the stand-in is, as one record of switches."""

from dataclasses import dataclass
from typing import Literal

Mode = Literal["strict", "lenient"]
EffortLevel = Literal["all", "messages"]

VERSION = "2026-10-21"
OLD_VERSION = "2023-06-01"


@dataclass(frozen=True, slots=True)
class Policy:
    """The switches; `strict` picks whatever makes passing here imply passing there."""

    enforce_binding: bool
    strict_latest: bool
    effort_level: EffortLevel
    strict_minimum: bool
    tolerant: bool


def policy(mode: Mode, effort_level: EffortLevel | None = None) -> Policy:
    """`lenient` is the API as documented for an old account, open to older clients."""
    strict = mode == "strict"
    return Policy(
        enforce_binding=strict,
        strict_latest=strict,
        effort_level=effort_level or ("all" if strict else "messages"),
        strict_minimum=strict,
        tolerant=not strict,
    )
