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


def write_amplification(prompts: list[tuple[str, list[tuple[str, int]]]], written: int) -> float:
    """Tokens written to the cache over tokens that had to be written once.

    `prompts` lists each request as (model, [(identity of the prefix up to a block, tokens of that block)]).
    """
    distinct: dict[tuple[str, str], int] = {}
    for model, blocks in prompts:
        for prefix, tokens in blocks:
            distinct[model, prefix] = tokens
    needed = sum(distinct.values())
    return round(written / needed, 4) if needed else 0.0
