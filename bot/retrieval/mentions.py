"""What a task names outright: paths, dotted names, identifiers, stack frames. Pure reading of the task's text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.retrieval.languages import LANGUAGE_OF

_ENDINGS = "|".join(sorted((re.escape(ending) for ending in LANGUAGE_OF), key=len, reverse=True))
_PATH = re.compile(rf"(?<![\w.])((?:[\w.@~+-]*[\\/])*[\w.@+-]+\.(?:{_ENDINGS}))\b(?![\w(])", re.IGNORECASE)
_FOLDERED = re.compile(r"(?<![\w.:/])((?:[\w.-]+/)+[\w-]+)(?![\w/])")
_PY_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)(?:, in ([\w<>]+))?')
_JS_FRAME = re.compile(
    r"\bat (?:async )?(?:([\w.$<>\[\] ]{1,120}) )?\(?((?:file://)?[^\s():]{1,400}\.[cm]?[jt]sx?):(\d+)"
)
_JAVA_FRAME = re.compile(r"\bat ([\w.$]{1,300})\.([\w$<>]{1,100})\((\w+\.(?:java|kt|scala)):(\d+)\)")
_LINE = re.compile(rf"((?:[\w.@~+-]*/)*[\w.@+-]+\.(?:{_ENDINGS})):(\d+)")
_DOTTED = re.compile(r"(?<![\w./@])([A-Za-z_]\w*(?:(?:\.|::|#)[A-Za-z_]\w*)+)")
_TICKED = re.compile(r"`{1,2}([^`\n]{2,160})`{1,2}")
_CALL = re.compile(r"\b([A-Za-z_]\w{2,})\(")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{2,}")
_CODE_LIKE = re.compile(r"\w_\w|[a-z0-9][A-Z]|^[A-Z]{2,}[a-z]|^_+\w")
_LINK = re.compile(r"\bhttps?://[^\s<>()\"'`\]]+")
_LINKED_FILE = re.compile(r"/(?:blob|blame|raw|tree)/[^/]+/([^?#]+)")
_MOST = 400
_DATA = re.compile(r"[\w.@~+/\\-]{300,}")
"""Runs of a task that no person wrote: patterns that may begin anywhere in one would take quadratic time."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a stack trace, outermost first as given; `line` is 0 when unknown."""

    path: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class Mentions:
    """Everything in order of first appearance, without repetition."""

    title: str
    paths: tuple[str, ...]
    foldered: tuple[str, ...]
    dotted: tuple[str, ...]
    identifiers: tuple[str, ...]
    """Look like code: snake_case, camelCase, called, in back-ticks, or part of a dotted name."""
    frames: tuple[Frame, ...]


def without_links(text: str) -> str:
    """Of a link to a repository's file its path stays; the words of other addresses say nothing of the code."""
    return _LINK.sub(lambda link: f" {found[1]} " if (found := _LINKED_FILE.search(link[0])) else " ", text)


def read(text: str) -> Mentions:
    """The mentions of a task; at most 400 of a kind."""
    text = _DATA.sub(" ", text)
    title, _, _ = text.strip().partition("\n")
    frames = _frames(text)
    paths = [found.replace("\\", "/") for found in _PATH.findall(text)]
    dotted = [re.sub(r"::|#", ".", found) for found in _DOTTED.findall(text)]
    return Mentions(
        title=title[:300],
        paths=_distinct(paths + [frame.path for frame in frames]),
        foldered=_distinct(_FOLDERED.findall(text)),
        dotted=_distinct(dotted),
        identifiers=_distinct(_identifiers(text, dotted)),
        frames=tuple(frames[:_MOST]),
    )


def _identifiers(text: str, dotted: list[str]) -> list[str]:
    found = [name for ticked in _TICKED.findall(text) for name in _IDENTIFIER.findall(ticked)]
    found += [name for name in _IDENTIFIER.findall(text) if _CODE_LIKE.search(name)]
    found += _CALL.findall(text)
    found += [part for name in dotted for part in name.split(".") if len(part) > 2]
    return found


def _frames(text: str) -> list[Frame]:
    found = [(match.start(), Frame(match[1], int(match[2]), match[3] or "")) for match in _PY_FRAME.finditer(text)]
    found += [(match.start(), Frame(match[2], int(match[3]), match[1] or "")) for match in _JS_FRAME.finditer(text)]
    found += [
        (
            match.start(),
            Frame(f"{match[1].rpartition('.')[0].replace('.', '/')}/{match[3]}".lstrip("/"), int(match[4]), match[2]),
        )
        for match in _JAVA_FRAME.finditer(text)
    ]
    found += [(match.start(), Frame(match[1], int(match[2]), "")) for match in _LINE.finditer(text)]
    ordered: dict[tuple[str, int], Frame] = {}
    for _, frame in sorted(found, key=lambda item: item[0]):
        path = frame.path.replace("\\", "/").removeprefix("file://")
        ordered.setdefault((path, frame.line), Frame(path, frame.line, frame.function))
    return list(ordered.values())


def _distinct(items: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))[:_MOST]
