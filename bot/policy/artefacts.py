"""What a task may leave as visual proof: small images and plain text, under plain names. Judged by content, never by name alone. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bot.policy.limits import Limits

DIRECTORY = "/home/user/artefacts"
"""Where the checks leave them in the sandbox, beside the repository's files, so that they are no part of a change."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}(?:\.[A-Za-z0-9_-]{1,40}){0,2}\.(?:png|jpe?g|gif|webp|txt|log)")
_IMAGES = {
    "png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "jpg": re.compile(rb"\xff\xd8\xff"),
    "jpeg": re.compile(rb"\xff\xd8\xff"),
    "gif": re.compile(rb"GIF8[79]a"),
    "webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
_HIDDEN = re.compile("[\u200b-\u200f\u2028-\u202e\u2060-\u206f\U000e0000-\U000e0fff]")


@dataclass(frozen=True, slots=True)
class Found:
    """A file that lies there, before anything of it is read."""

    name: str
    size: int


def listed(output: str) -> tuple[Found, ...]:
    """What `find … -printf '%s %P\\0'` said. A line that is none is a file without a usable name."""
    found = []
    for line in output.split("\0"):
        size, _, name = line.partition(" ")
        if line:
            found.append(Found(name if size.isdigit() else line, int(size) if size.isdigit() else 0))
    return tuple(sorted(found, key=lambda one: one.name))


def wanted(found: Iterable[Found], limits: Limits) -> tuple[tuple[Found, ...], tuple[str, ...]]:
    """Those worth reading, by name, size and number; and a sentence for each of the others."""
    kept: list[Found] = []
    refused: list[str] = []
    for one in found:
        if not _NAME.fullmatch(one.name):
            refused.append(
                f"`{_shown(one.name)}`: a plain name that ends in png, jpg, gif, webp, txt or log is needed."
            )
        elif one.size > limits.artefact_bytes:
            refused.append(f"`{one.name}`: {one.size:,} bytes are more than {limits.artefact_bytes:,}.")
        elif len(kept) == limits.artefact_files:
            refused.append(f"`{one.name}`: more than {limits.artefact_files} files.")
        else:
            kept.append(one)
    return tuple(kept), tuple(refused)


def against(name: str, data: bytes, masked: str) -> str:
    """Why this content is not kept; empty when it may be. `masked` is its text with secrets masked."""
    kind = name.rsplit(".", 1)[1]
    if kind in _IMAGES:
        return "" if _IMAGES[kind].match(data) else f"`{name}`: this is no {kind.upper()} image."
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return f"`{name}`: this is no text."
    if "\0" in text or _HIDDEN.search(text):
        return f"`{name}`: it holds characters that nobody sees."
    return f"`{name}`: it holds what looks like a credential." if masked != text else ""


def _shown(name: str) -> str:
    return re.sub(r"[^\w .-]", "?", name)[:60]
