"""Runs of plain text as Markdown source that says the same and does nothing: no mention, reference, link, command, trailer."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Limits:
    """What a published text may hold: characters, links, hosts that links may lead to, and values that must never appear."""

    length: int = 60_000
    links: int = 10
    hosts: frozenset[str] = frozenset({"github.com"})
    secrets: tuple[str, ...] = field(default=(), repr=False)


class Fate(StrEnum):
    """What becomes of a destination."""

    FOLLOW = "follow"
    SHOW = "show"
    DROP = "drop"


_SPOT = re.compile(
    r"""
      (?<![A-Za-z0-9])@[A-Za-z0-9]            # a mention
    | \#[0-9]                                 # an issue, bare or of another repository
    | \bGH-[0-9]
    | (?:https?|ftp)://
    | \bwww\.
    """,
    re.VERBOSE | re.IGNORECASE,
)
_WORD = re.compile(r"(?P<before>[(\[{\"'«]*)(?P<core>.*?)(?P<after>[.,;:!?)\]}\"'»]*)", re.DOTALL)
_REFERENCE = re.compile(r"/(?:issues|pull|pulls|discussions)/", re.IGNORECASE)
_ADDRESS = re.compile(r"https://[\x21\x23-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7e]+", re.IGNORECASE)
_ACTIVE_SCHEMES = frozenset({"data", "javascript", "vbscript", "file", "blob"})

_OTHER_BOTS = frozenset({"bors", "homu", "jenkins", "recheck", "retest", "r?", "r+", "r-", "try"})
_PHRASES = re.compile(r"(?:ok to test|(?:re)?test this please|add to (?:whitelist|allowlist)|r=)", re.IGNORECASE)
_COMMAND = re.compile(r"[/!~.][A-Za-z]|[@\\]")

_BOT_MENTION = re.compile(
    r"@(?:bors|claude|codex|coderabbitai|copilot|cursor|dependabot|devin|gemini|homu|mergify|renovate|rustbot|sweep)\b",
    re.IGNORECASE,
)

_SPECIAL = re.compile(r"\\(?=[!-/:-@\[-`{-~]|\Z)|[`*\[\]~$]|<(?=[A-Za-z/!?]|\Z)|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_ENTITY = re.compile(r"&(?=(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);)")
_BLOCK_START = re.compile(r"(?:\#{1,6}|[-+])(?=\s|$)|>|=+\s*$|[-|:][-|:\s]*$")
_ORDERED_START = re.compile(r"(\d{1,9})([.)])(?=\s|$)")

TRAILER = re.compile(r"\s*[A-Za-z][\w-]*-(?:by|id|to)\s*:", re.IGNORECASE)
"""A line that git would read as a trailer saying who did, signed or reviewed something."""

_MARKER = re.compile(r"<(!-+)(?=\s*pullwright)", re.IGNORECASE)


def fate(href: str, limits: Limits) -> Fate:
    """Links lead to places within the repository or to listed hosts, plainly; other addresses are shown as code."""
    try:
        parts = urlsplit(href)
        port = parts.port
    except ValueError:
        return Fate.SHOW
    if parts.scheme.lower() in _ACTIVE_SCHEMES:
        return Fate.DROP
    if "\\" in href or parts.query or _REFERENCE.search(href):
        return Fate.SHOW
    if not parts.scheme and not parts.netloc:
        return Fate.SHOW if href.startswith("//") or "@" in href else Fate.FOLLOW
    plain = parts.scheme == "https" and port is None and "@" not in parts.netloc
    return Fate.FOLLOW if plain and parts.hostname in limits.hosts else Fate.SHOW


def code(text: str, *, in_table: bool = False) -> str:
    """The text as a code span; nothing in it is active."""
    flat = " ".join(text.split()) or " "
    longest = max((len(run) for run in re.findall("`+", flat)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat.replace('|', chr(92) + '|') if in_table else flat}{pad}{fence}"


def inert(text: str, limits: Limits, *, at_line_start: bool, in_table: bool = False) -> str:
    """One line of plain text as Markdown source. Words with something active in them become code."""
    words = re.split(r"\s+", text)
    first = next((number for number, word in enumerate(words) if word), -1) if at_line_start else -1
    made = (_word(word, limits, first=number == first, in_table=in_table) for number, word in enumerate(words))
    return " ".join(made)


def _word(word: str, limits: Limits, *, first: bool, in_table: bool) -> str:
    if first and is_command(word):
        return code(word, in_table=in_table)
    if _SPOT.search(word) is None:
        return escape(word, in_table=in_table)
    match = _WORD.fullmatch(word)
    before, core, after = match.group("before", "core", "after") if match else ("", word, "")
    if _ADDRESS.fullmatch(core) and fate(core, limits) is Fate.FOLLOW:
        return f"{escape(before, in_table=in_table)}<{core}>{escape(after, in_table=in_table)}"
    return f"{escape(before, in_table=in_table)}{code(core, in_table=in_table)}{escape(after, in_table=in_table)}"


def is_command(word: str) -> bool:
    """True for a first word that a bot might obey."""
    return _COMMAND.match(word) is not None or word.lower().strip(".,:;!") in _OTHER_BOTS


def escape(text: str, *, in_table: bool = False) -> str:
    """Plain text as Markdown source that reads back as the same text."""
    text = text.replace("|", "\\|") if in_table else text
    return _ENTITY.sub("&amp;", _SPECIAL.sub(lambda match: "\\" + match.group(), text))


def guard_line(line: str) -> str:
    """A rendered line of a paragraph that cannot begin another kind of block, and no phrase that starts other bots."""
    if _PHRASES.match(line):
        return code(line) if "`" not in line else f"· {line}"
    if _BLOCK_START.match(line):
        return "\\" + line
    return _ORDERED_START.sub(r"\1\\\2", line, count=1) if _ORDERED_START.match(line) else line


def guard_code(line: str) -> str:
    """A line of a code block: programs that read raw text find no command, trailer or marker of ours at its start."""
    word = line.split(maxsplit=1)[0] if line.strip() else ""
    if TRAILER.match(line) or _PHRASES.match(line.strip()):
        return f"· {line}"
    if word.startswith("@"):
        return f"· {line}" if _BOT_MENTION.match(word) else line
    if word and is_command(word):
        return f" {line}" if "/" in word[1:] or word.startswith((".", "~", "\\")) else f"· {line}"
    return line


def without_marker(text: str) -> str:
    """The text, as long as before, in which nothing can pass for one of our own hidden markers."""
    return _MARKER.sub("(\\1", text)
