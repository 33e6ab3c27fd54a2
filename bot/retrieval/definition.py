"""The unit that outlines list and contexts show whole."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition; lines are 1-based and inclusive. `inside` names what it is nested in, dotted."""

    name: str
    kind: str
    first: int
    last: int
    signature: str
    doc: str = ""
    inside: str = ""

    @property
    def qualified(self) -> str:
        return f"{self.inside}.{self.name}" if self.inside else self.name
