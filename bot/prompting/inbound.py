"""What strangers wrote, made fit for the model to read: nothing hidden, clearly fenced. Useful, never a boundary."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from bot.prompting.blocks import read_blocks
from bot.prompting.invisible import strip_invisible

_ENTITY = re.compile(r"&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});")
_HIDDEN = (
    (re.compile("<!--+>"), ""),
    (re.compile("<!--"), "-->"),
    (re.compile("<[?]"), "?>"),
    (re.compile("<!\\[CDATA\\["), "]]>"),
    (re.compile("<![A-Za-z]"), ">"),
)
"""How markup that shows nothing begins and ends."""
_NONCE = re.compile(r"[A-Za-z0-9]{8,64}")
_ROUNDS = 8
_LONGEST = 100_000
"""Text beyond this is cut: GitHub's own bodies end at 65,536 characters, tool output is cut long before."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The text as a person sees it on the page, and the kinds of what was taken out."""

    text: str
    removed: tuple[str, ...]


def clean_untrusted(text: str) -> Cleaned:
    """Take out what a person reading the page would not see; NFC. Code blocks keep their text, without invisible characters."""
    text, removed = strip_invisible(unicodedata.normalize("NFC", text[:_LONGEST]))
    text, again = strip_invisible(_outside_code(text, _decode, _decode))
    found = [*removed, *again]
    for _ in range(_ROUNDS):
        shorter = _outside_code(text, _drop_closed, _drop_all)
        if shorter == text:
            break
        found.append("hidden markup")
        text = shorter
    else:
        text = text.replace("<!", "< !").replace("<?", "< ?")
    visible = _without_unused_definitions(text)
    if visible != text:
        found.append("unused link definitions")
    return Cleaned(unicodedata.normalize("NFC", visible), tuple(dict.fromkeys(found)))


def fence_untrusted(label: str, text: str, nonce: str) -> str:
    """The text between two markers that it cannot forge: `nonce` is random and new for each message (8–64 letters and digits)."""
    if _NONCE.fullmatch(nonce) is None:
        raise ValueError("a nonce is 8 to 64 letters and digits")
    source = re.sub(r"[^\w .,:/#-]", "", label)[:80]
    inside = re.sub(re.escape(nonce), "[marker]", text, flags=re.IGNORECASE)
    return f'<untrusted-{nonce} source="{source}">\n{inside}\n</untrusted-{nonce}>'


_Change = Callable[[str, str], str]


def _outside_code(text: str, prose: _Change, markup: _Change) -> str:
    """`prose(part, code)` or, for HTML blocks, `markup`, applied to what is not a code block; `code` is shown as inline code."""
    lines, document = text.split("\n"), read_blocks(text)
    pieces, position = [], 0
    for token in document.tokens:
        if token.map is None or token.type not in {"inline", "html_block"} or token.map[0] < position:
            continue
        pieces += lines[position : token.map[0]]
        inside = document.inside(token) if token.type == "inline" and "`" in token.content else ()
        code = " ".join(child.content for child in inside if child.type == "code_inline")
        position = token.map[1]
        change = prose if token.type == "inline" else markup
        pieces += change("\n".join(lines[token.map[0] : position]), code).split("\n")
    return "\n".join([*pieces, *lines[position:]])


def _decode(part: str, code: str) -> str:
    """Character references as the characters they show, unless the part shows them as code."""

    def character(match: re.Match[str]) -> str:
        return match.group() if match.group() in code else html.unescape(match.group())

    return _ENTITY.sub(character, part)


def _drop_closed(part: str, code: str) -> str:
    """Comments and the like, unless the part shows the very same text as code."""
    pieces, position = [], 0
    for begin, end in _hidden(part):
        if begin >= position and end is not None and part[begin:end] not in code:
            pieces.append(part[position:begin])
            position = end
    return "".join([*pieces, part[position:]])


def _drop_all(part: str, _code: str) -> str:
    """In an HTML block an unclosed comment hides all that follows."""
    dropped = _drop_closed(part, "")
    unclosed = next((begin for begin, end in _hidden(dropped) if end is None), len(dropped))
    return dropped[:unclosed]


def _hidden(part: str) -> Iterator[tuple[int, int | None]]:
    """Where markup that shows nothing begins, and where it ends; None when it does not."""
    unclosed: set[str] = set()
    begin = part.find("<")
    while begin >= 0:
        for opening, closing in _HIDDEN:
            match = opening.match(part, begin)
            if match is None:
                continue
            found = -1 if closing in unclosed else part.find(closing, match.end())
            if found < 0:
                unclosed.add(closing)
            yield begin, found + len(closing) if found >= 0 else None
            break
        begin = part.find("<", begin + 1)


def _without_unused_definitions(text: str) -> str:
    """`[//]: # (a note)` shows nothing on the page: a definition that no link uses goes."""
    document = read_blocks(text)
    if not document.env:
        return text
    used = {
        (child.attrs.get("href", child.attrs.get("src")), child.attrs.get("title", ""))
        for token in document.tokens
        if token.type == "inline" and "[" in token.content
        for child in document.inside(token)
        if child.type in {"link_open", "image"}
    }
    covered = {
        line for token in document.tokens if token.map is not None and token.nesting == 0 for line in range(*token.map)
    }
    kept: list[str] = []
    run: list[str] = []
    for number, line in enumerate(text.split("\n")):
        if number not in covered and line.strip():
            run.append(line)
            continue
        kept += [*_used_definitions(run, used), line]
        run = []
    return "\n".join([*kept, *_used_definitions(run, used)])


def _used_definitions(run: list[str], used: AbstractSet[tuple[object, object]]) -> list[str]:
    """The lines of a run of definitions that links use; a run that is not one definition a line stays or goes whole."""
    if len(run) > 1 and all(len(_definitions([line])) == 1 for line in run):
        return [line for line in run if _definitions([line]) <= used]
    return run if _definitions(run) <= used else []


def _definitions(run: list[str]) -> set[tuple[object, object]]:
    env = read_blocks("\n".join(line.lstrip(" >") for line in run)).env
    return {(each["href"], each["title"]) for each in env.get("references", {}).values()}
