"""Signatures of thinking blocks: stateless, like the service's. `model.prefix.tokens.previous.tag`."""

import hashlib
import hmac
from dataclasses import dataclass

from bot.emulators.anthropic.wire import Draft, Json, canonical, content_blocks, system_blocks, unmarked

FIRST = "-"


@dataclass(frozen=True, slots=True)
class Seal:
    """What a signature says."""

    model: str
    prefix: str
    tokens: int
    previous: str
    tag: str


def secret_of(key: str) -> bytes:
    """Each account signs with a secret of its own, so a foreign block never verifies."""
    return hashlib.sha256(f"stand-in {key}".encode()).digest()


def parse(signature: str) -> Seal | None:
    """None for anything that this scheme did not write."""
    parts = signature.split(".")
    if len(parts) != 5 or not parts[2].isdigit():
        return None
    return Seal(parts[0], parts[1], int(parts[2]), parts[3], parts[4])


def sealed_tokens(signature: str) -> int | None:
    """Tokens of the thinking behind a signature, so that omitted thinking still costs input when replayed."""
    seal = parse(signature)
    return seal.tokens if seal is not None else None


def genuine(seal: Seal, secret: bytes, thinking: str) -> bool:
    """Whether the tag covers these fields and this text."""
    return hmac.compare_digest(_tag(secret, seal, thinking), seal.tag)


def _tag(secret: bytes, seal: Seal, thinking: str) -> str:
    text = f"{seal.model}.{seal.prefix}.{seal.tokens}.{seal.previous}\0{thinking}"
    return hmac.new(secret, text.encode(), "sha256").hexdigest()[:24]


class Prefix:
    """The running hash of what a thinking block is bound to: tools, system, and everything before but thinking."""

    def __init__(self, draft: Draft) -> None:
        tools = [unmarked(t) for t in draft.tools if not t.get("defer_loading")]
        system = [unmarked(b) for b in system_blocks(draft.body)]
        self._digest = hashlib.sha256(canonical([tools, system]).encode())

    def add(self, role: str, block: Json) -> None:
        """Block keys are sorted, their values are not: the service's key order is not the client's."""
        bare = {k: block[k] for k in sorted(block) if k != "cache_control"}
        if bare["type"] == "tool_result" and isinstance(bare.get("content"), str):
            bare["content"] = content_blocks(bare["content"])
        self._digest.update(f"{role}\0{canonical(bare)}\0".encode())

    @property
    def value(self) -> str:
        """The hash so far."""
        return self._digest.hexdigest()[:24]


@dataclass(slots=True)
class Sealer:
    """Signs the thinking blocks of one answer, in order."""

    secret: bytes
    model: str
    prefix: Prefix
    previous: str

    def seal(self, thinking: str, tokens: int) -> str:
        """The signature of the next thinking block."""
        blank = Seal(self.model, self.prefix.value, tokens, self.previous, "")
        tag = _tag(self.secret, blank, thinking)
        self.previous = tag
        return f"{blank.model}.{blank.prefix}.{blank.tokens}.{blank.previous}.{tag}"
