"""GitHub's log of what it tried to deliver to the App's webhook, and the request to deliver again (specs/github.md §4)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

import httpx

from bot.domain.event import FailedDelivery
from bot.domain.ids import DeliveryId
from bot.providers.forge.connection import Ask, Connection, Wait
from bot.providers.forge.failures import Unauthorised
from bot.providers.forge.githubkit import PUBLIC_API, AppCredentials
from bot.providers.forge.port import ForgeGone

_LOG = "/app/hook/deliveries"
_PAGE = 100
_LAST_PAGE = 20


class GithubHookLog:
    """The `HookLog` port. Belongs to one event loop; `close` when done."""

    def __init__(
        self,
        credentials: AppCredentials,
        *,
        base_url: str = PUBLIC_API,
        proxy: str | None = None,
        wait: Wait = asyncio.sleep,
        pool: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._connection = Connection(base_url, wait=wait, proxy=proxy, pool=pool)
        self._app = self._connection.as_app(credentials.issuer, credentials.key)

    async def close(self) -> None:
        await self._connection.close()

    async def failed(self) -> Sequence[FailedDelivery]:
        """Every attempt in GitHub's window that failed, newest first; at most 2,000."""
        found: list[FailedDelivery] = []
        params: dict[str, str | int] = {"per_page": _PAGE, "status": "failure"}
        for _ in range(_LAST_PAGE):
            try:
                page, further = await self._connection.page(self._app, Ask("GET", _LOG, params=params))
            except Unauthorised as error:
                raise ForgeGone(f"GitHub does not accept the App's key: {error}") from None
            found += [
                FailedDelivery(
                    int(told["id"]),
                    DeliveryId(str(told["guid"])),
                    str(told["event"]),
                    int(told["status_code"]),
                    datetime.fromisoformat(told["delivered_at"]),
                )
                for told in page
            ]
            if not further:
                break
            params = dict(further)
        return found

    async def redeliver(self, attempt: int) -> None:
        """Ask for one more attempt with the same id and bytes."""
        await self._connection.send(self._app, Ask("POST", f"{_LOG}/{attempt}/attempts"))
