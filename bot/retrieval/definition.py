"""The unit that outlines list and contexts show whole."""

from __future__ import annotations

from typing import NamedTuple


class Definition(NamedTuple):
    """One definition; lines are 1-based and inclusive. `inside` names what it is nested in, dotted. A file has hundreds."""

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
