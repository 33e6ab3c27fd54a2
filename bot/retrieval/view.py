"""The files of one commit or folder joined with what the store knows of their blobs: what a query is answered from."""

from __future__ import annotations

import math
import posixpath
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bot.retrieval import words
from bot.retrieval.chunks import Chunks
from bot.retrieval.files import File
from bot.retrieval.kinds import Kind, kind_of
from bot.retrieval.languages import language_of
from bot.retrieval.segment import Outline
from bot.retrieval.store import Document, Postings, Store

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Weights = Mapping[str, float]
"""How much each term of the query counts."""

K1 = 1.2
B = 0.75


@dataclass(frozen=True, slots=True)
class Item:
    """One file of the view."""

    path: str
    oid: str
    kind: Kind
    document: Document

    @property
    def language(self) -> str:
        return language_of(self.path)


class View:
    """Items in path order; every array has one number for each. Statistics are those of code files, when there are any."""

    def __init__(self, store: Store, files: Sequence[File]) -> None:
        self.store = store
        known = store.documents(file.oid for file in files)
        joined = [(file, known.get((file.oid, file.language))) for file in files]
        self.items = tuple(
            Item(file.path, file.oid, kind_of(file.path, generated=document.generated), document)
            for file, document in joined
            if document is not None
        )
        self.ids = np.array([item.document.id for item in self.items], np.int64)
        code = np.array([item.kind is Kind.CODE for item in self.items], np.bool_)
        self.counted = code if code.any() else np.ones(len(self.items), np.bool_)
        self.apart = ~self.counted
        self.number = {item.path: index for index, item in enumerate(self.items)}
        self._size = int(self.ids.max(initial=0)) + 1
        self._live = np.bincount(self.ids[self.counted], minlength=self._size)
        self.files = max(int(self.counted.sum()), 1)
        self.by_name: dict[str, list[int]] = {}
        self.by_stem: dict[str, list[int]] = {}
        self._modules = [f"/{module_of(item.path)}" for item in self.items]
        for index, item in enumerate(self.items):
            name = item.path.rsplit("/", 1)[-1]
            self.by_name.setdefault(name.lower(), []).append(index)
            self.by_stem.setdefault(self._modules[index].rsplit("/", 1)[-1], []).append(index)
        self._paths = _PathTerms(self.items)
        self._norms = {"total": self._norm("total"), "symbols": self._norm("symbols")}

    def _norm(self, length: str) -> Floats:
        lengths = np.zeros(self._size)
        lengths[self.ids] = [getattr(item.document, length) for item in self.items]
        mean = float(lengths[self.ids][self.counted].mean()) if len(self.items) else 0.0
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
        return self._paths.scores(weights, self.counted)

    def having(self, documents: Ints) -> Ints:
        """Items whose document is among these."""
        mask = np.zeros(self._size, np.bool_)
        mask[documents[documents < self._size]] = True
        return np.flatnonzero(mask[self.ids])

    def outlines(self, items: Iterable[int]) -> dict[int, Outline]:
        """Outlines of these items."""
        wanted = list(items)
        held = self.store.outlines({int(self.ids[item]) for item in wanted})
        return {item: held[int(self.ids[item])] for item in wanted}

    def passages(self, items: Iterable[int]) -> dict[int, Chunks]:
        """Passages of these items."""
        wanted = list(items)
        held = self.store.passages({int(self.ids[item]) for item in wanted})
        return {item: held[int(self.ids[item])] for item in wanted}

    def modules(self, module: str) -> list[int]:
        """Items that a module path `a/b/c` may mean: those whose own module path ends with it."""
        ending = f"/{module}"
        items = self.by_stem.get(module.rsplit("/", 1)[-1], [])
        return [item for item in items if self._modules[item].endswith(ending)]


def idf(files: int, having: int) -> float:
    """As Lucene has it: never below zero."""
    return math.log(1 + (files - having + 0.5) / (having + 0.5))


def module_of(path: str) -> str:
    """The module a path stands for: `a/b` for a/b.py, a/b/__init__.py and a/b/index.js."""
    stem = posixpath.splitext(path)[0]
    for name in ("/__init__", "/index", "/mod"):
        stem = stem.removesuffix(name)
    return stem


class _PathTerms:
    def __init__(self, items: Sequence[Item]) -> None:
        self._postings: dict[str, dict[int, int]] = {}
        self._length = np.zeros(len(items))
        parts: dict[str, tuple[str, ...]] = {}
        for index, item in enumerate(items):
            for part in posixpath.splitext(item.path)[0].split("/"):
                terms = parts.get(part)
                if terms is None:
                    terms = parts[part] = tuple(Counter(words.terms_of(part)).elements())
                self._length[index] += len(terms)
                for term in terms:
                    held = self._postings.setdefault(term, {})
                    held[index] = held.get(index, 0) + 1

    def scores(self, weights: Weights, counted: npt.NDArray[np.bool_]) -> Floats:
        found = np.zeros(len(self._length))
        mean = float(self._length[counted].mean()) if len(self._length) else 0.0
        norm = 1 - B + B * self._length / max(mean, 1e-9)
        for term in sorted(weights):
            held = self._postings.get(term)
            if held:
                at = np.fromiter(held.keys(), np.int64, len(held))
                frequency = np.fromiter(held.values(), np.float64, len(held))
                weight = weights[term] * idf(max(int(counted.sum()), 1), int(counted[at].sum()))
                found[at] += weight * frequency * (K1 + 1) / (frequency + K1 * norm[at])
        return found
