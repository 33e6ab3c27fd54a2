"""Installation tokens, each narrowed to one repository and one phase of work."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from bot.domain.ids import InstallationId, RepositoryId

_SPARE = timedelta(minutes=5)
_RANKS = {"read": 1, "write": 2, "admin": 3}


class Phase(Enum):
    """What a token is for, as the permissions it asks."""

    FETCH = (("contents", "read"),)
    READ = (("checks", "read"), ("contents", "read"), ("issues", "read"), ("pull_requests", "read"))
    COMMENT = (("issues", "write"), ("pull_requests", "write"))
    CHECK = (("checks", "write"),)
    PUBLISH = (("contents", "write"),)
    PROPOSE = (("contents", "read"), ("pull_requests", "write"))
    MEMBERS = (("members", "read"),)
    LAND = (("contents", "write"), ("pull_requests", "write"))

    @property
    def permissions(self) -> Mapping[str, str]:
        return dict(self.value)


@dataclass(frozen=True, slots=True)
class TokenKey:
    installation: InstallationId
    repository: RepositoryId
    phase: Phase


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    expires_at: datetime

    def lasts(self, now: datetime) -> bool:
        """Whether enough of its hour is left for a clone."""
        return self.expires_at - now > _SPARE


def beyond(key: TokenKey, permissions: Mapping[str, str], repositories: Iterable[Mapping[str, Any]]) -> list[str]:
    """What a minted token holds, as GitHub tells it, that the key does not ask for. `metadata: read` always comes along."""
    asked = {"metadata": "read", **key.phase.permissions}
    ranks = {name: _RANKS[level] for name, level in asked.items()}
    wider = [f"{name}:{level}" for name, level in permissions.items() if _RANKS.get(level, 9) > ranks.get(name, -1)]
    return wider + [str(one.get("full_name")) for one in repositories if one.get("id") != key.repository]


class TokenBook:
    """One token per key: asked for once however many wait, kept until nearly expired, dropped when refused."""

    def __init__(self, mint: Callable[[TokenKey], Awaitable[Token]]) -> None:
        self._mint = mint
        self._tokens: dict[TokenKey, Token] = {}
        self._locks: defaultdict[TokenKey, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def get(self, key: TokenKey) -> str:
        async with self._locks[key]:
            known = self._tokens.get(key)
            if known is None or not known.lasts(datetime.now(UTC)):
                known = self._tokens[key] = await self._mint(key)
            return known.text

    def drop(self, key: TokenKey, text: str) -> None:
        """Forget the token if it is still the one that was refused."""
        known = self._tokens.get(key)
        if known is not None and known.text == text:
            del self._tokens[key]
