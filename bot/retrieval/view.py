"""The files of one commit or folder and what the store knows of their blobs: what a query is answered from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from bot.retrieval import imports
from bot.retrieval.catalogue import KINDS, STATES, Catalogue, Floats, module_of
from bot.retrieval.chunks import Chunks
from bot.retrieval.definition import Definition
from bot.retrieval.kinds import Kind
from bot.retrieval.languages import language_of
from bot.retrieval.postings import Ints
from bot.retrieval.segment import Joints
from bot.retrieval.store import Postings, Store

Weights = Mapping[str, float]
"""How much each term of the query counts."""

K1 = 1.2
B = 0.75
Held = TypeVar("Held")
_MOST_MEANT = 3
_CODE = KINDS.index(Kind.CODE)


@dataclass(frozen=True, slots=True)
class Item:
    """One file of the view; `terms` is how many its text has."""

    path: str
    oid: str
    kind: Kind
    state: str
    lines: int
    terms: int

    @property
    def language(self) -> str:
        return language_of(self.path)


class View(Sequence[Item]):
    """Items in path order; every array has one number for each. Statistics are those of code files, when there are any."""

    def __init__(self, store: Store, catalogue: Catalogue) -> None:
        self.store = store
        self.catalogue = catalogue
        self.paths = catalogue.paths
        facts = catalogue.facts
        self.ids = facts["id"].astype(np.int64)
        code = facts["kind"] == _CODE
        self.counted = code if code.any() else np.ones(len(facts), np.bool_)
        self.apart = ~self.counted
        self._size = int(self.ids.max(initial=0)) + 1
        self._live = np.bincount(self.ids[self.counted], minlength=self._size)
        self.files = max(int(self.counted.sum()), 1)
        self._norms = {"total": self._norm(facts["total"]), "symbols": self._norm(facts["symbols"])}
        self._imported: dict[tuple[str, str, str], list[int]] = {}
        self._meant: dict[str, list[int]] = {}
        self._modules: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.catalogue)

    def __getitem__(self, item: int) -> Item:  # type: ignore[override]  # no slices
        facts = self.catalogue.facts[item]
        return Item(
            self.paths[item],
            facts["oid"].decode(),
            KINDS[facts["kind"]],
            STATES[facts["state"]],
            int(facts["lines"]),
            int(facts["total"]),
        )

    @property
    def items(self) -> Sequence[Item]:
        return self

    def states(self) -> Mapping[str, int]:
        """How many items are in each state."""
        return Counter([STATES[state] for state in self.catalogue.facts["state"].tolist()])

    def _norm(self, of_items: Ints) -> Floats:
        lengths = np.zeros(self._size)
        lengths[self.ids] = of_items
        mean = float(lengths[self.ids][self.counted].mean()) if len(self) else 0.0
        return 1 - B + B * lengths / max(mean, 1e-9)

    def rarity(self, found: Postings) -> dict[str, float]:
        """Inverse document frequency of each term among the counted files."""
        return dict(zip(found.terms, self._rarity(found).tolist(), strict=True))

    def _rarity(self, found: Postings) -> Floats:
        live = self._live[np.minimum(found.documents, self._size - 1)] * (found.documents < self._size)
        having = np.diff(np.concatenate([np.zeros(1), np.cumsum(live)])[found.starts])
        rarity: Floats = np.log1p((self.files - having + 0.5) / (having + 0.5))
        return rarity

    def bm25(self, found: Postings, weights: Weights, *, length: str = "total") -> Floats:
        """Scores of all items for these terms; `length` is the field's length: total or symbols."""
        of_term = np.array([weights.get(term, 0.0) for term in found.terms]) * self._rarity(found)
        weight = np.repeat(of_term, np.diff(found.starts))
        there = found.documents < self._size
        documents, frequency = found.documents[there], found.frequencies[there].astype(np.float64)
        gained = weight[there] * frequency * (K1 + 1) / (frequency + K1 * self._norms[length][documents])
        scores: Floats = np.bincount(documents, gained, self._size).astype(np.float64)
        return scores[self.ids]

    def path_scores(self, weights: Weights) -> Floats:
        """BM25 of the paths' own words."""
        return self.catalogue.scores(weights, self.counted)

    def having(self, documents: Ints) -> Ints:
        """Items whose document is among these."""
        mask = np.zeros(self._size, np.bool_)
        mask[documents[documents < self._size]] = True
        return np.flatnonzero(mask[self.ids])

    def outlines(self, items: Iterable[int]) -> dict[int, tuple[Definition, ...]]:
        """Definitions of these items."""
        return self._held(self.store.outlines, items)

    def joints(self, items: Iterable[int]) -> dict[int, Joints]:
        """What joins these items with others."""
        return self._held(self.store.joints, items)

    def passages(self, items: Iterable[int]) -> dict[int, Chunks]:
        """Passages of these items."""
        return self._held(self.store.passages, items)

    def _held(self, read: Callable[[Iterable[int]], dict[int, Held]], items: Iterable[int]) -> dict[int, Held]:
        ids = {item: int(self.ids[item]) for item in items}
        held = read(set(ids.values()))
        return {item: held[number] for item, number in ids.items()}

    def kind(self, item: int) -> Kind:
        """The kind of an item."""
        return KINDS[int(self.catalogue.facts["kind"][item])]

    def imported(self, folder: str, written: str, language: str) -> list[int]:
        """Items that an import means which is written in this folder; nothing when it is ambiguous or from outside."""
        asked = (folder, written, language)
        if asked not in self._imported:
            meant = (self.modules(module) for module in imports.meant(*asked) if module)
            self._imported[asked] = next((items for items in meant if 0 < len(items) <= _MOST_MEANT), [])
        return self._imported[asked]

    def modules(self, module: str) -> list[int]:
        """Items that a module path `a/b/c` may mean: those whose own module path ends with it."""
        found = self._meant.get(module)
        if found is None:
            ending = f"/{module}"
            items = self.catalogue.by_stem(module.rpartition("/")[2])
            found = self._meant[module] = [item for item in items if self._module(item).endswith(ending)]
        return found

    def _module(self, item: int) -> str:
        module = self._modules.get(item)
        if module is None:
            module = self._modules[item] = f"/{module_of(self.paths[item])}"
        return module
