"""Added suppressions of the scan are findings themselves: a model must not be able to wave its own code through."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from bot.domain.verdict import Failure, FailureKind
from bot.stages.verifying.compare import signature

_NOSEM = re.compile(rb"\bnosem(?:grep)?\b", re.IGNORECASE)
IGNORE_FILES = (".semgrepignore",)


def added(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[Failure, ...]:
    """One failure per file whose text gained a suppression comment, or per ignore file that changed."""
    failures = []
    for path, data in sorted(after.items()):
        old = Counter(line.strip() for line in before.get(path, b"").split(b"\n") if _NOSEM.search(line))
        new = Counter(line.strip() for line in data.split(b"\n") if _NOSEM.search(line))
        gained = new - old
        if path.rsplit("/", 1)[-1] in IGNORE_FILES:
            failures.append(_failure(path, "This file hides code from the scan; a person has to change it."))
        elif gained:
            line = next(iter(gained)).decode("utf-8", "replace")[:200]
            failures.append(_failure(path, f"A suppression comment was added: {line}"))
    return tuple(failures)


def _failure(path: str, detail: str) -> Failure:
    return Failure(FailureKind.SUPPRESSION, path, detail, signature(FailureKind.SUPPRESSION, path))
