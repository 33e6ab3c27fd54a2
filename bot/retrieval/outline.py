"""Definitions of a file, one line each: what a reader needs to decide whether to open it."""

from __future__ import annotations

import re

_PATTERNS = {
    ".py": re.compile(r"^\s*(?:async\s+def|def|class)\s+\w+[^\n:]*", re.MULTILINE),
    ".js": re.compile(
        r"^\s*(?:export\s+)?(?:default\s+)?(?:async\s+)?(?:function\*?|class)\s+\w+[^\n{]*", re.MULTILINE
    ),
    ".go": re.compile(r"^(?:func|type)\s+[^\n{]+", re.MULTILINE),
    ".rs": re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:fn|struct|enum|trait|impl|mod)\s+[^\n{;]+", re.MULTILINE),
    ".java": re.compile(
        r"^\s*(?:public|protected|private|static|final|abstract|\s)*(?:class|interface|enum|record)\s+\w+[^\n{]*",
        re.MULTILINE,
    ),
    ".rb": re.compile(r"^\s*(?:def|class|module)\s+[^\n;]+", re.MULTILINE),
    ".md": re.compile(r"^#{1,3} [^\n]+", re.MULTILINE),
}
_SAME = {".pyi": ".py", ".jsx": ".js", ".ts": ".js", ".tsx": ".js", ".mjs": ".js", ".kt": ".java", ".cs": ".java"}
MOST_LINES = 60


def outline(path: str, text: str) -> tuple[str, ...]:
    """At most 60 lines "number: definition"; empty for languages without a pattern here."""
    ending = "." + path.rsplit(".", 1)[-1] if "." in path else ""
    pattern = _PATTERNS.get(_SAME.get(ending, ending))
    if pattern is None:
        return ()
    lines = []
    for found in pattern.finditer(text):
        definition = found.group().strip("\n")
        start = found.start() + len(found.group()) - len(found.group().lstrip("\n"))
        lines.append(f"{text.count(chr(10), 0, start) + 1}: {definition.rstrip()[:120]}")
        if len(lines) == MOST_LINES:
            break
    return tuple(lines)
