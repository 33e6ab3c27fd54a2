"""The figures of a story, every one read from what happened: the product's store, GitHub's objects, the model's bill."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Trees:
    """The four tree ids that have to be one."""

    tested: str
    published: str
    approved: str
    merged: str

    @property
    def equal(self) -> bool:
        return len({self.tested, self.published, self.approved, self.merged}) == 1 and bool(self.merged)


@dataclass(frozen=True, slots=True)
class Figures:
    """What `pullwright demo --json` prints."""

    task: str
    pull: dict[str, object]
    digest: str
    trees: Trees
    cost_usd: float
    cache: dict[str, float]
    calls: int
    seconds: float

    def document(self) -> dict[str, object]:
        """As JSON-able values."""
        return asdict(self)
