"""The token ruler: bytes divided by a constant, rounded up. Deterministic, and close to today's tokenizers on code."""

import math
from dataclasses import dataclass

FRAMING = 3
IMAGE_TOKENS = 1600
CALL_TOKENS = 12


@dataclass(frozen=True, slots=True)
class Ruler:
    """3 bytes a token by default; 2.5 and 3.5 show how much the bill depends on it."""

    bytes_per_token: float = 3.0

    def tokens(self, text: str) -> int:
        """Tokens of one piece of text."""
        return math.ceil(len(text.encode()) / self.bytes_per_token)

    def fitting(self, text: str, tokens: int) -> str:
        """The longest beginning of the text that costs at most this many tokens."""
        return text.encode()[: int(tokens * self.bytes_per_token)].decode(errors="ignore")
