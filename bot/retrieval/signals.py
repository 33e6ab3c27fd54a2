"""What speaks for a file, one number for each signal. Words first; then what the task names; then the graph (rank.py)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bot.retrieval import chunks, words
from bot.retrieval.catalogue import Floats
from bot.retrieval.mentions import Mentions, read, without_links
from bot.retrieval.postings import Ints
from bot.retrieval.segment import BODY, DEFINED, SYMBOLS
from bot.retrieval.view import View

TITLE_WEIGHT = 4.0
"""A word of the task's first line counts this much more than one of its body."""
PATH_TITLE_WEIGHT = 2.0
"""The same for the words of a path."""
MOST_REPEATS = 3
MOST_TERMS = 600
MOST_QUERY = 60_000
"""Characters of a task that are read."""
BEST_PASSAGES = 5
_RARE = 20


@dataclass(frozen=True, slots=True)
class Query:
    """A task as the ranker reads it."""

    mentions: Mentions
    weights: Mapping[str, float]
    path_weights: Mapping[str, float]


def query_of(text: str) -> Query:
    """Words of the title weigh more; a word repeated in the text counts up to the root of three."""
    text = without_links(text[:MOST_QUERY])
    mentions = read(text)
    counts = words.terms_of(text)
    title = set(words.terms_of(mentions.title))
    kept = sorted(counts, key=lambda term: (term not in title, -counts[term], term))[:MOST_TERMS]
    weights = {term: min(counts[term], MOST_REPEATS) ** 0.5 + TITLE_WEIGHT * (term in title) for term in kept}
    return Query(mentions, weights, {term: 1.0 + PATH_TITLE_WEIGHT * (term in title) for term in kept})


@dataclass(frozen=True, slots=True)
class Words:
    """Scores of all items by words, each 0..1, and the rarity of each term of the query."""

    body: Floats
    symbols: Floats
    path: Floats
    identifiers: Floats
    rarity: Mapping[str, float]


def by_words(view: View, query: Query) -> Words:
    """Whole text, names of definitions, path, and identifiers that the task writes as code."""
    postings = view.store.postings(BODY, query.weights)
    symbols = view.store.postings(SYMBOLS, query.weights)
    path = view.path_scores(query.path_weights)
    whole = {
        name.lower().strip("_") if len(words.terms(name)) > 1 else words.stem(name.lower())
        for name in query.mentions.identifiers
    }
    written = view.store.postings(BODY, whole)
    return Words(
        scaled(view.bm25(postings, query.weights)),
        scaled(view.bm25(symbols, query.weights, length="symbols") + path),
        scaled(path),
        scaled(view.bm25(written, dict.fromkeys(written.terms, 1.0))),
        view.rarity(postings),
    )


def by_passages(query: Query, rarity: Mapping[str, float], held: Mapping[int, chunks.Chunks]) -> dict[int, Floats]:
    """Scores of the passages of each of these items, in the order of the file."""
    asked = sorted((words.hash_of(term), query.weights[term] * rarity[term]) for term in rarity)
    hashes = np.array([pair[0] for pair in asked], np.uint32)
    weights = np.array([pair[1] for pair in asked])
    return {item: chunks.scores(found, hashes, weights) for item, found in held.items()}


def best_passages(scores: Floats) -> float:
    """The best passage whole, the next ones for less and less."""
    best = np.sort(scores)[::-1][:BEST_PASSAGES]
    return float((best / np.arange(1, len(best) + 1)).sum())


@dataclass(frozen=True, slots=True)
class Named:
    """Scores of all items by what the task names outright."""

    defines: Floats
    """Identifiers of the task that the file defines; the rarer the name, the more."""
    pairs: Floats
    """`Class.method` of the task with both defined in the file."""
    paths: Floats
    frames: Floats
    """Place in the stack trace; the innermost frame 1."""
    modules: Floats


def by_names(view: View, query: Query) -> Named:
    """Reads the task's mentions against this view."""
    mentions = query.mentions
    parts = [part for name in mentions.dotted for part in name.split(".")]
    held = view.store.postings(DEFINED, {*mentions.identifiers, *parts})
    defined = {name: view.having(held.of(name)) for name in held.terms}
    return Named(
        scaled(_defines(view, mentions, defined)),
        scaled(_pairs(view, mentions, defined)),
        scaled(_paths(view, mentions)),
        _frames(view, mentions),
        scaled(_modules(view, mentions)),
    )


def _defines(view: View, mentions: Mentions, defined: Mapping[str, Ints]) -> Floats:
    found = np.zeros(len(view.items))
    for name in mentions.identifiers:
        if len(name) > 3 and name in defined:
            items = defined[name]
            having = max(1, int(view.counted[items].sum()))
            if having <= _RARE:
                found[items] += having**-0.5
    return found


def _pairs(view: View, mentions: Mentions, defined: Mapping[str, Ints]) -> Floats:
    found = np.zeros(len(view.items))
    for name in mentions.dotted:
        parts = name.split(".")
        for one, two in itertools.pairwise(parts):
            if one in defined and two in defined:
                both = np.intersect1d(defined[one], defined[two])
                if 0 < len(both) <= 5:
                    found[both] += 1 / len(both)
    return found


def _shared_ending(one: str, two: str) -> int:
    count = 0
    for left, right in zip(reversed(one.split("/")), reversed(two.split("/")), strict=False):
        if left.lower() != right.lower():
            break
        count += 1
    return count


def _closest(view: View, path: str) -> tuple[list[int], int]:
    """Items with the most trailing parts in common with a path that is written somewhere, and how many parts."""
    items = view.catalogue.by_name(path.rsplit("/", 1)[-1].lower())
    if not items:
        return [], 0
    shared = [_shared_ending(view.items[item].path, path) for item in items]
    best = max(shared)
    return [item for item, parts in zip(items, shared, strict=True) if parts == best], best


def _paths(view: View, mentions: Mentions) -> Floats:
    found = np.zeros(len(view.items))
    for path in mentions.paths:
        items, shared = _closest(view, path)
        sure = shared >= 2 or "/" not in path
        for item in items:
            found[item] += (1.0 if sure else 0.3) / len(items)
    return found


def _frames(view: View, mentions: Mentions) -> Floats:
    places: list[int] = []
    for frame in mentions.frames:
        items, shared = _closest(view, frame.path)
        if items and (shared >= 2 or len(items) == 1):
            places.append(items[0])
    found = np.zeros(len(view.items))
    for number, item in enumerate(places):
        found[item] = max(found[item], (number + 1) / len(places))
    return found


def _modules(view: View, mentions: Mentions) -> Floats:
    found = np.zeros(len(view.items))
    for name in [*mentions.dotted, *(path.replace("/", ".") for path in mentions.foldered)]:
        parts = name.split(".")
        for length in range(len(parts), 1, -1):
            items = view.modules("/".join(parts[:length]))
            if 0 < len(items) <= 3:
                found[items] += 1 / len(items)
                break
    return found


def scaled(scores: Floats) -> Floats:
    """Divided by the best, so that signals can be added."""
    best = float(scores.max(initial=0.0))
    return scores / best if best > 0 else scores
