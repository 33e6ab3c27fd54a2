"""Whether GitHub sent these bytes: HMAC-SHA256 over the raw body, checked before anything reads it."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field

_HEADER = re.compile(r"sha256=([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class WebhookSecrets:
    """The secret in use and, while it is being changed, the one before. An empty secret is refused: anybody could sign with it."""

    current: str = field(repr=False)
    previous: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not all(secret.strip() for secret in self.all()):
            raise ValueError("a webhook secret must not be empty")

    def all(self) -> tuple[str, ...]:
        return (self.current,) if self.previous is None else (self.current, self.previous)


def is_signed(secrets: WebhookSecrets, body: bytes, header: str | None) -> bool:
    """True when `X-Hub-Signature-256` is `sha256=` and the body's HMAC under one of the secrets. Takes equal time for each."""
    match = _HEADER.fullmatch(header or "")
    if match is None:
        return False
    given = match.group(1).encode()
    checks = [hmac.compare_digest(given, _digest(secret, body)) for secret in secrets.all()]
    return any(checks)


def signature(secret: str, body: bytes) -> str:
    """The header that GitHub would send with this body."""
    return f"sha256={_digest(secret, body).decode()}"


def _digest(secret: str, body: bytes) -> bytes:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest().encode()
