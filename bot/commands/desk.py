"""Where codes arrive during `pullwright setup`: from a browser, or typed."""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Callable

from bot.commands.credentials import Drafts
from bot.commands.manifest import pasted
from bot.domain.errors import UserError
from bot.providers.forge.registration import NewApp, Registrar, Unconverted
from bot.web.registration import BY_HAND, CREATED, TEXTS, Arrival

Say = Callable[[str], None]
_CODE = re.compile(r"[A-Za-z0-9._~-]{1,200}")
_ARRIVALS = {
    Unconverted.UNREACHED: Arrival.UNREACHED,
    Unconverted.REFUSED: Arrival.REFUSED,
    Unconverted.UNKNOWN: Arrival.UNKNOWN,
    Unconverted.LOST: Arrival.LOST,
}


class Desk:
    """Takes codes to GitHub, one after another, and keeps what GitHub tells for one. A code that was taken is seen through."""

    def __init__(self, state: str, registrar: Registrar, drafts: Drafts, say: Say) -> None:
        self._state = state.encode()
        self._registrar = registrar
        self._drafts = drafts
        self._say = say
        self._one = asyncio.Lock()
        self._works: set[asyncio.Task[Arrival]] = set()
        self._lost: set[str] = set()
        self._ended: asyncio.Future[NewApp] = asyncio.get_running_loop().create_future()

    async def take(self, code: str, state: str) -> Arrival:
        """What comes of a code. Somebody who goes away meanwhile does not stop it."""
        if not hmac.compare_digest(state.encode(), self._state):
            return Arrival.STRANGER
        return await asyncio.shield(self._begun(code))

    def paste(self, line: str) -> None:
        """The same for a line of the terminal."""
        found = pasted(line)
        if found is None:
            if line.strip():
                self._say(f"That is no address that ends in {CREATED}?code=…&state=…; paste the whole of it.")
        elif hmac.compare_digest(found[1].encode(), self._state):
            self._begun(found[0])
        else:
            self._say(TEXTS[Arrival.STRANGER][1])

    async def app(self, patience: float) -> NewApp:
        """The App, once there is one. Raises UserError after that many seconds, or when it could not be kept."""
        try:
            await asyncio.wait({self._ended}, timeout=patience)
        except asyncio.CancelledError:
            await self._settled()
            if not self._ended.done():
                raise
        await self._settled()
        if not self._ended.done():
            raise UserError("Nobody came back from GitHub within an hour.", "Start again; nothing was kept.")
        return self._ended.result()

    async def _settled(self) -> None:
        await asyncio.gather(*self._works, return_exceptions=True)

    def _begun(self, code: str) -> asyncio.Task[Arrival]:
        work = asyncio.create_task(self._converted(code))
        self._works.add(work)
        work.add_done_callback(self._works.discard)
        return work

    async def _converted(self, code: str) -> Arrival:
        async with self._one:
            if self._ended.done():
                return Arrival.UNSAVED if self._ended.exception() else Arrival.MADE
            arrival = await self._arrival(code)
        if arrival not in {Arrival.MADE, Arrival.UNSAVED}:
            self._say(TEXTS[arrival][1])
        return arrival

    async def _arrival(self, code: str) -> Arrival:
        if not _CODE.fullmatch(code):
            return Arrival.UNKNOWN
        found = await self._registrar.convert(code)
        if isinstance(found, NewApp):
            return self._kept(found)
        if found is Unconverted.LOST:
            self._lost.add(code)
        if found is Unconverted.UNKNOWN and code in self._lost:
            return Arrival.KEYLESS
        return _ARRIVALS[found]

    def _kept(self, app: NewApp) -> Arrival:
        try:
            self._drafts.keep(app.id, app.private_key, app.webhook_secret)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            kept = " and ".join(map(str, self._drafts.written))
            self._ended.set_exception(
                UserError(
                    f"The App {app.name} ({app.id}) is made, but its credentials could not be saved: {why}.",
                    f"What could be written stays in {kept}. {BY_HAND}" if kept else BY_HAND,
                )
            )
            return Arrival.UNSAVED
        self._ended.set_result(app)
        return Arrival.MADE
