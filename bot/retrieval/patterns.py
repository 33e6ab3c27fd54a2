"""Definitions by pattern: headings of prose, sections of configuration, and languages whose grammar is not here."""

from __future__ import annotations

import re

from bot.retrieval.definition import Definition

_CODE = re.compile(
    r"^[ \t]*(?:(?:pub|export|public|private|protected|internal|static|async|abstract|final|open|override|cpdef|cdef)\s+)*"
    r"(?:(?P<kind>def|class|fun|func|function|fn|struct|enum|trait|interface|object|module|protocol|message|service|type)"
    r"\s+(?P<name>[A-Za-z_]\w*)[^\n{;]*|c?pdef\s[^\n(=]*?(?P<cython>\w+)\([^\n]*)",
    re.MULTILINE,
)
_MARKDOWN = re.compile(r"^(?P<kind>#{1,4}) (?P<name>[^\n]+)", re.MULTILINE)
_RST = re.compile(r"^(?P<name>\S[^\n]*)\n(?P<kind>[=\-~^\"'*#+])(?P=kind){2,}[ \t]*$", re.MULTILINE)
_CONFIG = re.compile(r"^(?:\[(?P<name>[^\]\n]+)\]|(?P<key>[A-Za-z_][\w.-]*):(?=[ \t]*$|[ \t]))", re.MULTILINE)
_PATTERNS = {"markdown": _MARKDOWN, "rst": _RST, "config": _CONFIG}
_NO_DEFINITIONS = frozenset({"", "text", "web"})
_MOST = 400


def pattern_definitions(text: str, language: str) -> tuple[Definition, ...]:
    """At most 400; each reaches to the line before the next."""
    if language in _NO_DEFINITIONS:
        return ()
    pattern = _PATTERNS.get(language, _CODE)
    starts: list[tuple[int, str, str]] = []
    line, position = 1, 0
    for found in pattern.finditer(text):
        name = next((value for key, value in found.groupdict().items() if key != "kind" and value), "").strip()
        if not name:
            continue
        begin = found.start() + len(found.group()) - len(found.group().lstrip())
        line += text.count("\n", position, begin)
        position = begin
        kind = "heading" if pattern in {_MARKDOWN, _RST} else "section" if pattern is _CONFIG else "definition"
        starts.append((line, name[:120], kind))
        if len(starts) == _MOST:
            break
    if not starts:
        return ()
    end = text.count("\n") + 1
    lasts = [following[0] - 1 for following in starts[1:]] + [end]
    lines = text.split("\n")
    return tuple(
        Definition(name, kind, first, max(first, last), lines[first - 1].strip()[:160])
        for (first, name, kind), last in zip(starts, lasts, strict=True)
    )
