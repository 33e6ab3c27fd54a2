"""Finds the `/agent` command of a comment, read as Markdown: what is quoted, shown as code or hidden commands nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it.token import Token

from bot.domain.action import Command, Verb
from bot.prompting.blocks import LONGEST_INLINE, Document, read_blocks
from bot.prompting.invisible import hides_something, strip_invisible

PREFIX = "/agent"
LONGEST_ARGUMENT = 2_000
MOST_FLAGS = 20

_HASH = re.compile(r"[0-9a-f]{12,64}")
_FLAG = re.compile(r"allow:([a-z][a-z0-9_-]{0,39})")
_EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"
_EMOJI_PARTS = re.compile(f"(?<=[{_EMOJI}\ufe0f])[\ufe0f\u200d](?=[{_EMOJI}]|\\s|$)|(?<=[{_EMOJI}])\ufe0f\u200d?")


@dataclass(frozen=True, slots=True)
class CommandFault:
    """Why a command does not count: `topic` names a text of `texts.py`, `detail` what was wrong, in the writer's words."""

    topic: str
    detail: str = ""


def find_command(body: str) -> Command | CommandFault | None:
    """The one command in a comment; None when there is none. Two that differ are a fault: nothing of them runs.

    Only a line of a top-level paragraph that begins with `/agent`, in exactly this spelling, is a command. For verbs that take free
    text, the argument is the rest of the line followed by the rest of the comment.
    """
    lines = body.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    candidates = [number for number, line in enumerate(lines) if _looks_like_one(line)]
    if not candidates:
        return None
    found = _commanding(lines, candidates)
    if isinstance(found, CommandFault):
        return found
    if not found:
        return None
    if any(hides_something(_EMOJI_PARTS.sub("", lines[number])) for number in found):
        return CommandFault("invisible")
    texts = {" ".join(_after_prefix(lines[number]).split()) for number in found}
    if len(texts) > 1:
        return CommandFault("several")
    others = [line for number, line in enumerate(lines) if number not in found]
    return _parse(_after_prefix(lines[found[0]]), "\n".join(others).strip())


def _looks_like_one(line: str) -> bool:
    visible, _ = strip_invisible(line)
    return visible == PREFIX or visible.startswith(f"{PREFIX} ")


def _after_prefix(line: str) -> str:
    return strip_invisible(line)[0][len(PREFIX) :].strip()


def _commanding(lines: Sequence[str], candidates: Sequence[int]) -> list[int] | CommandFault:
    """The candidates that stand at the start of a line of a top-level paragraph, as plain text."""
    document = read_blocks("\n".join(lines))
    found: list[int] = []
    for first, last in _paragraphs(document):
        inside = [number for number in candidates if first <= number < last]
        if not inside:
            continue
        if sum(len(line) + 1 for line in lines[first:last]) > LONGEST_INLINE:
            return CommandFault("too_long")
        found += _at_line_starts(document, lines[first:last], [number - first for number in inside], first)
    return found


def _paragraphs(document: Document) -> Iterator[tuple[int, int]]:
    for opening in document.tokens:
        if opening.type == "paragraph_open" and opening.level == 0 and opening.map is not None:
            yield opening.map[0], opening.map[1]


def _at_line_starts(document: Document, lines: Sequence[str], inside: Sequence[int], offset: int) -> Iterator[int]:
    """Puts a word of its own in the place of each prefix and looks where the parser finds it as text at a line's start."""
    word = "command"
    while any(word in line for line in lines):
        word += "x"
    marked = [
        f"{word}{number}. {_after_prefix(line)}" if number in inside else line for number, line in enumerate(lines)
    ]
    block = Token("inline", "", 0, content="\n".join(line.strip() for line in marked))
    at_start = True
    for token in document.inside(block):
        if (
            at_start
            and token.type == "text"
            and token.level == 0
            and (match := re.match(rf"{word}(\d+)\.", token.content))
        ):
            yield offset + int(match.group(1))
        at_start = token.type in {"softbreak", "hardbreak"} or (at_start and token.type == "text" and not token.content)


def _parse(line: str, others: str) -> Command | CommandFault:
    words = line.split()
    if not words:
        return Command(Verb.HELP)
    if words[0] not in {verb.value for verb in Verb}:
        return CommandFault("unknown", words[0][:40])
    verb = Verb(words[0])
    if len(line) > LONGEST_ARGUMENT:
        return CommandFault("too_long", verb.value)
    match verb:
        case Verb.APPROVE | Verb.MERGE:
            return _with_hash(verb, words[1:])
        case Verb.STOP | Verb.STATUS | Verb.HELP:
            return CommandFault("extra_words", verb.value) if words[1:] else Command(verb)
        case Verb.RUN | Verb.FIX | Verb.PLAN | Verb.RETRY:
            said = line[len(words[0]) :].strip()
            return Command(verb, "\n\n".join(text for text in (said, others) if text))


def _with_hash(verb: Verb, words: Sequence[str]) -> Command | CommandFault:
    """Exactly one hash in lower-case hex, and any number of named flags; nothing else may stand there."""
    hashes = [word for word in words if _HASH.fullmatch(word)]
    flags = [match.group(1) for word in words if (match := _FLAG.fullmatch(word))]
    if len(hashes) != 1 or len(hashes) + len(flags) != len(words) or len(flags) > MOST_FLAGS:
        return CommandFault("needs_hash", verb.value)
    return Command(verb, hashes[0], tuple(dict.fromkeys(flags)))
