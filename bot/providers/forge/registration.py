"""The end of an App's registration by manifest: GitHub tells the App's key for a code that works once, within an hour."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from urllib.parse import quote

from bot.providers.forge.addresses import pages_of
from bot.providers.forge.connection import Ask, Connection
from bot.providers.forge.failures import Failure

_ADDRESS = re.compile(r"https?://[!-~]+")


@dataclass(frozen=True, slots=True)
class NewApp:
    """An App that was just made. Its secrets are told here and never again; they are not printed."""

    id: int
    slug: str
    name: str
    owner: str
    html_url: str
    private_key: str = field(repr=False)
    webhook_secret: str = field(repr=False)

    @property
    def install_url(self) -> str:
        """Where its owner installs it on repositories."""
        return f"{self.html_url}/installations/new"


class Unconverted(Enum):
    """Why a code brought no App."""

    UNREACHED = "GitHub did not answer, or asks us to wait; the code is as good as before"
    REFUSED = "GitHub does not do this for us here"
    UNKNOWN = "GitHub does not know the code: it was used, or is older than an hour"
    LOST = "GitHub may have told the key, and the answer did not arrive or made no sense"


class Registrar:
    """Turns codes into Apps. Belongs to one event loop; `close` when done."""

    def __init__(self, base_url: str, proxy: str | None = None) -> None:
        self._connection = Connection(base_url, wait=asyncio.sleep, proxy=proxy)
        self._pages = pages_of(base_url)

    async def close(self) -> None:
        await self._connection.close()

    async def convert(self, code: str) -> NewApp | Unconverted:
        """One attempt, never repeated by itself: the answer to the first is the only one that has the key."""
        ask = Ask("POST", f"/app-manifests/{quote(code, safe='')}/conversions")
        answer = await self._connection.once(self._connection.as_nobody(), ask)
        if isinstance(answer, Failure):
            return why(answer)
        try:
            return new_app(answer.json(), self._pages)
        except ValueError:
            return Unconverted.LOST


def why(failure: Failure) -> Unconverted:
    """What a failed conversion means for the code."""
    if failure.limited or not failure.seen:
        return Unconverted.UNREACHED
    if failure.status in {404, 410, 422}:
        return Unconverted.UNKNOWN
    if failure.status is None or failure.status >= 500 or failure.status == 408:
        return Unconverted.LOST
    return Unconverted.REFUSED


def new_app(told: Any, pages: str) -> NewApp:
    """The App that GitHub's answer is about. Only what the product works with has to be there: a key that was told is not thrown away
    because a name is missing. Raises ValueError without an id or a key."""
    if (
        not isinstance(told, Mapping)
        or not isinstance(told.get("id"), int)
        or "PRIVATE KEY" not in str(told.get("pem"))
    ):
        raise ValueError("no App")
    owner = told.get("owner")
    address, slug = str(told.get("html_url")), str(told.get("slug") or "")
    known = _ADDRESS.fullmatch(address) is not None
    if not slug and known:
        slug = address.rstrip("/").rpartition("/")[2]
    return NewApp(
        id=told["id"],
        slug=_shown(slug),
        name=_shown(str(told.get("name") or slug)),
        owner=_shown(str(owner.get("login") or owner.get("slug") or "")) if isinstance(owner, Mapping) else "",
        html_url=address.rstrip("/") if known else f"{pages}/apps/{quote(slug, safe='')}",
        private_key=str(told["pem"]),
        webhook_secret=str(told.get("webhook_secret") or ""),
    )


def _shown(text: str) -> str:
    """Without what a terminal would obey."""
    return "".join(letter for letter in text if letter.isprintable())
