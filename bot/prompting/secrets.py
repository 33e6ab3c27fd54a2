"""Masks secrets in their usual forms, and where they stand encoded in base64 or hex, reversed, spread over white space or put together
from pieces."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from urllib.parse import quote

MASK = "[secret-removed]"
SHORTEST = 8
"""Known values shorter than this are not searched for: they would be found everywhere."""

_USUAL = re.compile(
    r"""
      -----BEGIN[ ](?:[A-Z0-9]+[ ]){0,4}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----[\s\S]{0,10000}?(?:-----END[ A-Z0-9]{0,60}-----|\Z)
    | \b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b
    | \b(?:ghp|gho|ghu|ghr)_[A-Za-z0-9]{20,255}
    | \bghs_[A-Za-z0-9._-]{20,1500}
    | \bgithub_pat_[A-Za-z0-9_]{20,255}
    | \bglpat-[A-Za-z0-9_-]{20,}
    | \bsk-(?:ant-|proj-|svcacct-)?[A-Za-z0-9_-]{20,}
    | \bpa-[A-Za-z0-9_-]{30,}
    | \be2b_[a-f0-9]{30,}
    | \bxox[abeprs]-[A-Za-z0-9-]{10,}
    | \bxapp-[A-Za-z0-9-]{20,}
    | \bAIza[A-Za-z0-9_-]{35}
    | \bya29\.[A-Za-z0-9_-]{20,}
    | \b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}
    | \bnpm_[A-Za-z0-9]{36}
    | \bpypi-[A-Za-z0-9_-]{40,}
    | \bhf_[A-Za-z0-9]{30,}
    | \bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}
    | \bdop_v1_[a-f0-9]{60,}
    | \beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*
    | (?<=://)[^\s/:@]{1,100}:[^\s/@]{3,200}(?=@)
    | (?i:\bauthorization["']?\s{0,9}[:=]\s{0,9}["']?(?:bearer|basic|token)\s{1,9})[^\s"']{8,}
    | (?i:\bbearer[ ])[A-Za-z0-9_-]{32,}
    | (?i:\bx-api-key["']?\s{0,9}[:=]\s{0,9}["']?)[^\s"']{16,}
    | (?i:\baws_secret_access_key["']?\s{0,9}[:=]\s{0,9}["']?)[A-Za-z0-9+/]{40}
    """,
    re.VERBOSE,
)

_RUN = re.compile(r"[A-Za-z0-9+/_-]{16,}(?:[ \t]*\n[ \t]*[A-Za-z0-9+/_-]{8,})*={0,2}")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2}[ :]?){8,}(?:\n[ \t]*(?:[0-9A-Fa-f]{2}[ :]?){8,})*")
_QUOTED = r"(?:\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`)"
_PIECE = re.compile(_QUOTED)
_PIECES = re.compile(rf"{_QUOTED}(?:[ \t]*(?:[+.,&|\\][ \t]*)?(?:\r?\n[ \t]*)?(?:[+.&|][ \t]*)?[a-z]?{_QUOTED})+")
_SPACE = re.compile(r"\s+")


def mask_secrets(text: str, known: tuple[str, ...] = ()) -> str:
    """The text with every secret replaced by a mask. `known` are values that must never appear, whatever they look like."""
    known = tuple(value for value in known if len(value) >= SHORTEST)
    spans = [span for find in (_plain, _encoded, _reversed, _spread, _joined) for span in find(text, known)]
    pieces, position = [], 0
    for start, end in sorted(spans):
        if end <= position:
            continue
        if start >= position:
            pieces += [text[position:start], MASK]
        position = end
    return "".join([*pieces, text[position:]])


def _plain(text: str, known: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    for match in _USUAL.finditer(text):
        yield match.span()
    for value in known:
        for form in {value, quote(value, safe="")}:
            yield from _all(text, form)


def _all(text: str, value: str) -> Iterator[tuple[int, int]]:
    at = text.find(value)
    while at >= 0:
        yield at, at + len(value)
        at = text.find(value, at + 1)


def _encoded(text: str, known: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Runs that decode to something with a secret in it: the run goes as a whole."""
    for match in _RUN.finditer(text):
        if any(_tells(decoded, known) for decoded in _base64(_SPACE.sub("", match.group()))):
            yield match.span()
    for match in _HEX.finditer(text):
        digits = re.sub(r"[\s:]", "", match.group())
        if _tells(bytes.fromhex(digits[: len(digits) // 2 * 2]), known):
            yield match.span()


def _base64(run: str) -> Iterator[bytes]:
    """The run decoded from each of the four places where a group may begin."""
    standard = run.rstrip("=").replace("-", "+").replace("_", "/")
    for skip in range(4):
        part = standard[skip:]
        part = part[: len(part) - 1] if len(part) % 4 == 1 else part
        try:
            yield base64.b64decode(part + "=" * (-len(part) % 4))
        except binascii.Error:
            continue


def _tells(decoded: bytes, known: tuple[str, ...]) -> bool:
    text = decoded.decode("utf-8", "replace")
    return _USUAL.search(text) is not None or any(value in text for value in known)


def _reversed(text: str, known: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    size = len(text)
    for start, end in _plain(text[::-1], known):
        yield size - end, size - start


def _joined(text: str, known: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Quoted pieces that a program puts together, on one line or on several."""
    for match in _PIECES.finditer(text):
        whole = "".join(piece[1:-1] for piece in _PIECE.findall(match.group()))
        if _USUAL.search(whole) or any(value in whole for value in known):
            yield match.span()


def _spread(text: str, known: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Known values with white space put in between."""
    if not known:
        return
    places = [index for index, character in enumerate(text) if not character.isspace()]
    squeezed = "".join(text[index] for index in places)
    for value in known:
        wanted = _SPACE.sub("", value)
        if len(wanted) >= SHORTEST:
            for start, end in _all(squeezed, wanted):
                yield places[start], places[end - 1] + 1
