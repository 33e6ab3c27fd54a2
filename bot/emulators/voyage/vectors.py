"""Vectors from hashed words: the same text gives the same vector anywhere, and shared words bring texts together."""

import base64
import hashlib
import math
import re
import struct
from collections import Counter

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


def words(text: str) -> Counter[str]:
    """Lower-case words; identifiers fall apart at underscores and capitals."""
    return Counter(word.lower() for word in _WORD.findall(text))


def vector(text: str, dimension: int) -> list[float]:
    """A unit vector; each word adds to three places by its hash, more slowly the more often it stands there."""
    made = [0.0] * dimension
    for word, count in (words(text) or Counter({text or "empty": 1})).items():
        weight = 1 + math.log(count)
        digest = hashlib.blake2b(word.encode(), digest_size=12).digest()
        for place in struct.unpack("<3I", digest):
            made[(place >> 1) % dimension] += weight if place & 1 else -weight
    length = math.sqrt(sum(x * x for x in made)) or 1.0
    return [x / length for x in made]


def quantized(values: list[float]) -> list[int]:
    """The vector in signed bytes, its largest part at full range."""
    largest = max(abs(x) for x in values) or 1.0
    return [round(127 * x / largest) for x in values]


def encoded(values: list[float] | list[int], dtype: str) -> str:
    """Base64 of little-endian 32-bit floats or of signed bytes, as the client asks for by default."""
    layout = f"<{len(values)}f" if dtype == "float" else f"{len(values)}b"
    return base64.b64encode(struct.pack(layout, *values)).decode()
