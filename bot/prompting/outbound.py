"""What the model wrote, made fit to be posted. Every text that leaves goes through one of these two functions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain

from bot.prompting.blocks import read_blocks
from bot.prompting.inert import TRAILER, Limits, code, is_command, without_marker
from bot.prompting.inert import inert as _inert
from bot.prompting.invisible import strip_invisible
from bot.prompting.markdown import Writer, visible
from bot.prompting.secrets import mask_secrets

__all__ = ["Limits", "publishable", "publishable_line"]

CUT = "… (cut)"
_MOST_LINES = 3_000
_LONGEST_SECRET = 12_000
"""A text is cut only after its secrets are masked, so that no half of one is left at the end."""
_SKIP = re.compile(r"\[(\s*(?:skip|no|ci)[ -]\w+\s*)\]|\bskip-checks\s*:", re.IGNORECASE)


def publishable(text: str, limits: Limits | None = None) -> str:
    """Markdown that says the same and does nothing: no mention, closing keyword, command, image, foreign link, raw HTML,
    trailer, hidden marker or invisible character; secrets masked; at most `limits.length` characters."""
    limits = limits or Limits()
    most = limits.length * 5 // 4
    seen, _ = strip_invisible(text[: most + _LONGEST_SECRET])
    lines = mask_secrets(seen, limits.secrets)[:most].expandtabs(4).split("\n")
    blocks = Writer(read_blocks("\n".join(lines[:_MOST_LINES])), limits).blocks()
    is_part = len(text) > most or len(lines) > _MOST_LINES
    return without_marker(_cut(chain(blocks, [CUT]) if is_part else blocks, limits.length))


def publishable_line(text: str, length: int = 200, secrets: tuple[str, ...] = ()) -> str:
    """One line for a title or the first line of a commit message, as inert as `publishable` makes it."""
    seen, _ = strip_invisible(text[: 8 * length])
    shown = re.sub(r"<!--.*?(?:-->|\Z)", "", seen, flags=re.DOTALL)
    flat = " ".join(" ".join(line for line in shown.split("\n") if not TRAILER.match(line)).split())
    flat = _SKIP.sub(lambda match: f"({match.group(1).strip()})" if match.group(1) else "skip checks,", flat)
    return without_marker(_within(_atoms(_masked(flat, secrets)), length))


def _within(atoms: list[str], length: int) -> str:
    line = " ".join(atoms)
    if len(line) <= length:
        return line
    kept: list[str] = []
    for atom in atoms:
        if len(" ".join([*kept, atom])) > length - len(CUT) - 1:
            break
        kept.append(atom)
    return " ".join([*kept, CUT])


def _atoms(line: str) -> list[str]:
    """The words of a title, inert, each code span whole. Titles are no Markdown: only active words change, and become code."""
    atoms: list[str] = []
    for number, part in enumerate(re.split(r"(`[^`]+`)", line)):
        if number % 2:
            atoms.append(part)
            continue
        for word in part.replace("`", "'").split():
            made = _inert(word, Limits(hosts=frozenset()), at_line_start=False)
            if not atoms and is_command(word):
                made = code(word)
            atoms.append(made if "`" in made else word)
    return atoms


def _masked(line: str, secrets: tuple[str, ...]) -> str:
    """The line without secrets; one that is whole only to the eye costs the line its markup."""
    line = mask_secrets(line, secrets)
    document = read_blocks(line)
    seen = " ".join(visible(document.inside(token)) for token in document.tokens if token.type == "inline")
    masked = mask_secrets(seen, secrets)
    return line if masked == seen else masked


def _cut(blocks: Iterable[str], length: int) -> str:
    """Whole blocks while there is room; the first one that does not fit is cut after a line."""
    kept: list[str] = []
    used = 0
    for block in blocks:
        before = used
        used += len(block) + (2 if kept else 0)
        if used > length:
            return _with_mark(kept, block, before, length)
        kept.append(block)
    return "\n\n".join(kept)


def _with_mark(kept: list[str], block: str, used: int, length: int) -> str:
    """What fits together with the mark that something is missing."""
    while kept and used + len(CUT) + 2 > length:
        block = kept.pop()
        used -= len(block) + (2 if kept else 0)
    room = length - used - len(CUT) - 4
    return "\n\n".join([*kept, *_beginning(block, room), CUT])


def _beginning(block: str, room: int) -> list[str]:
    """As many whole lines of a block as fit; a code block is closed again."""
    fence = re.match("`{3,}", block)
    closing = f"\n{fence.group()}" if fence else ""
    lines: list[str] = []
    left = room - len(closing)
    for line in block.split("\n"):
        if len(line) + 1 > left:
            break
        lines.append(line)
        left -= len(line) + 1
    return ["\n".join(lines) + closing] if lines else []
