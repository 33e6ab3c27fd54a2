"""`CODEOWNERS` as GitHub reads it: who owns a path. Pure; what it cannot read for certain is a fault, never a guess.

Unlike `.gitignore`, a pattern cannot be negated (`!`), has no character ranges (`[a-z]`) and no escaped `#`; the last match wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

PLACES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
"""Where GitHub looks, in this order; the first file counts."""
LONGEST = 3_000_000
"""GitHub does not read a longer file."""

_OWNER = re.compile(
    r"@[A-Za-z0-9][A-Za-z0-9_-]{0,99}(?:/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99})?|[^\s@/]{1,100}@[^\s@/]{1,200}"
)
_WORD = re.compile(r"(?:\\.|[^\s\\])+")


@dataclass(frozen=True, slots=True)
class Rule:
    """One line: the parts of its pattern, where it holds, and its owners; none means that nobody owns what it matches."""

    line: int
    parts: tuple[str, ...]
    below: bool
    itself: bool
    owners: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OwnersFault:
    """A line that cannot be read for certain."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class CodeOwners:
    """A whole file. With faults in it, nobody can tell who owns what."""

    rules: tuple[Rule, ...] = ()
    faults: tuple[OwnersFault, ...] = ()

    def of(self, path: str) -> tuple[str, ...]:
        """The owners of a path, as written; empty when nobody owns it."""
        parts = tuple(path.split("/"))
        return next((rule.owners for rule in reversed(self.rules) if _matches(rule, parts)), ())

    def groups(self, paths: Iterable[str]) -> dict[tuple[str, ...], tuple[str, ...]]:
        """Paths that have owners, by their owners."""
        found: dict[tuple[str, ...], list[str]] = {}
        for path in paths:
            owners = self.of(path)
            if owners:
                found.setdefault(owners, []).append(path)
        return {owners: tuple(owned) for owners, owned in found.items()}


def read_owners(text: str) -> CodeOwners:
    """The rules in this text and its faults, by line."""
    rules: list[Rule] = []
    faults: list[OwnersFault] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        words = _WORD.findall(line)
        if line.rstrip("\r").endswith("\\"):
            faults.append(OwnersFault(number, "the line ends with a `\\` that escapes nothing"))
            continue
        if not words or words[0].startswith("#"):
            continue
        made = _rule(number, words)
        if isinstance(made, Rule):
            rules.append(made)
        else:
            faults.append(made)
    return CodeOwners(tuple(rules), tuple(faults))


def _rule(number: int, words: Sequence[str]) -> Rule | OwnersFault:
    pattern = words[0]
    if pattern.startswith("!"):
        return OwnersFault(number, "a pattern cannot be negated with `!`")
    if pattern.startswith("\\#"):
        return OwnersFault(number, "a pattern cannot begin with an escaped `#`")
    if "[" in pattern or "]" in pattern:
        return OwnersFault(number, "a pattern has no character ranges")
    comment = next((at for at, word in enumerate(words) if word.startswith("#")), len(words))
    owners = tuple(words[1:comment])
    wrong = next((owner for owner in owners if not _OWNER.fullmatch(owner)), None)
    if wrong is not None:
        return OwnersFault(number, "an owner is `@user`, `@organisation/team` or an e-mail address")
    parts = tuple(part for part in pattern.split("/") if part)
    if not parts:
        return OwnersFault(number, "the pattern names nothing")
    anchored = "/" in pattern.rstrip("/") or pattern.startswith("/")
    # A last `/` means what is below a directory; a last `/*` what is right in it; anything else both itself and below.
    directory, children = pattern.endswith("/"), pattern.endswith("/*")
    return Rule(number, parts if anchored else ("**", *parts), not children, not directory, owners)


def _matches(rule: Rule, path: tuple[str, ...]) -> bool:
    """Whether the whole pattern takes a beginning of the path: all of it, or a directory above it."""
    ends = {0}
    for at, part in enumerate(rule.parts):
        if part == "**":
            last = at == len(rule.parts) - 1
            first = min(ends) + (1 if last else 0)
            ends = set(range(first, len(path) + 1))
        else:
            ends = {end + 1 for end in ends if end < len(path) and _glob(part, path[end])}
        if not ends:
            return False
    return (rule.itself and len(path) in ends) or (rule.below and any(end < len(path) for end in ends))


@lru_cache(maxsize=4096)
def _glob(pattern: str, name: str) -> bool:
    """`*` and `?` within one part of a path, `\\x` as x; never more steps than pattern times name."""
    wanted = _atoms(pattern)
    states = {0}
    for character in name:
        states = _through_stars(states, wanted)
        states = {
            state if wanted[state] == "*" else state + 1
            for state in states
            if state < len(wanted) and (wanted[state] in {"*", "?"} or wanted[state] == f"={character}")
        }
    return len(wanted) in _through_stars(states, wanted)


def _atoms(pattern: str) -> tuple[str, ...]:
    """Each wildcard by itself, each other character as `=x`."""
    return tuple(
        found[0] if found[0] in {"*", "?"} else f"={found[0][-1]}"
        for found in re.finditer(r"\\.|.", pattern, re.DOTALL)
    )


def _through_stars(states: set[int], wanted: Sequence[str]) -> set[int]:
    reached = set(states)
    for state in sorted(states):
        end = state
        while end < len(wanted) and wanted[end] == "*":
            end += 1
            reached.add(end)
    return reached
