"""What the model wrote, made fit to be posted. Every text that leaves goes through one of these two functions."""

from __future__ import annotations

import re

from bot.prompting.blocks import read_blocks
from bot.prompting.inert import TRAILER, Limits, code, is_command, without_marker
from bot.prompting.inert import inert as _inert
from bot.prompting.invisible import strip_invisible
from bot.prompting.markdown import Writer
from bot.prompting.secrets import mask_secrets

__all__ = ["Limits", "publishable", "publishable_line"]

CUT = "… (cut)"
_SKIP = re.compile(r"\[(\s*(?:skip|no|ci)[ -]\w+\s*)\]|\bskip-checks\s*:", re.IGNORECASE)


def publishable(text: str, limits: Limits | None = None) -> str:
    """Markdown that says the same and does nothing: no mention, closing keyword, command, image, foreign link, raw HTML,
    trailer, hidden marker or invisible character; secrets masked; at most `limits.length` characters."""
    limits = limits or Limits()
    visible, _ = strip_invisible(text[: 2 * limits.length])
    document = read_blocks(mask_secrets(visible, limits.secrets).expandtabs(4))
    return _cut(Writer(document, limits).blocks(), limits.length)


def publishable_line(text: str, length: int = 200, secrets: tuple[str, ...] = ()) -> str:
    """One line for a title or the first line of a commit message, as inert as `publishable` makes it."""
    visible, _ = strip_invisible(text[: 8 * length])
    lines = (line for line in visible.split("\n") if not TRAILER.match(line))
    flat = " ".join(re.sub(r"<!--.*?(?:-->|\Z)", "", " ".join(lines), flags=re.DOTALL).split())
    flat = _SKIP.sub(lambda match: f"({match.group(1).strip()})" if match.group(1) else "skip checks,", flat)
    words = mask_secrets(flat, secrets).split(" ")
    made = [_plain_word(word, first=number == 0) for number, word in enumerate(words)]
    line = without_marker(" ".join(made))
    if len(line) <= length:
        return line
    kept: list[str] = []
    for word in made:
        if len(" ".join([*kept, word])) > length - len(CUT) - 1:
            break
        kept.append(word)
    return " ".join([*kept, CUT])


def _plain_word(word: str, *, first: bool) -> str:
    """Titles are no Markdown: only active words change, and those become code."""
    if first and is_command(word):
        return code(word)
    nowhere = Limits(hosts=frozenset())
    made = _inert(word, nowhere, at_line_start=False)
    return made if "`" in made and "`" not in word else word


def _cut(blocks: list[str], length: int) -> str:
    """Whole blocks while there is room; the first one that does not fit is cut after a line."""
    kept: list[str] = []
    room = length - len(CUT) - 2
    for number, block in enumerate(blocks):
        need = len(block) + 2
        if need > room and not (number == len(blocks) - 1 and len(block) <= room + len(CUT) + 2):
            return "\n\n".join([*kept, *_beginning(block, room), CUT])
        kept.append(block)
        room -= need
    return "\n\n".join(kept)


def _beginning(block: str, room: int) -> list[str]:
    """As many whole lines of a block as fit; a code block is closed again."""
    fence = re.match("`{3,}", block)
    closing = f"\n{fence.group()}" if fence else ""
    lines: list[str] = []
    left = room - 2 - len(closing)
    for line in block.split("\n"):
        if len(line) + 1 > left:
            break
        lines.append(line)
        left -= len(line) + 1
    return ["\n".join(lines) + closing] if lines else []
