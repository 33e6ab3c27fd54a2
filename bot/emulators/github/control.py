"""The control surface under `/_stand-in/`: what tests read and how they bring misfortune."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from starlette.requests import Request

from bot.emulators.github.call import Reply
from bot.emulators.github.clock import stamp
from bot.emulators.github.installing import change_installation
from bot.emulators.github.shapes.apps import delivery_detail
from bot.emulators.github.urls import Urls
from bot.emulators.github.webhooks.events import ping
from bot.emulators.github.world import World


class Control:
    """`GET log|deliveries|bill|faults`, `POST faults|clock|ping|installation`, `DELETE faults`."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def answer(self, request: Request, name: str) -> Reply:
        """422 with the reason for an order that makes no sense."""
        raw = await request.body()
        try:
            return self._carried_out(request, name, _order(raw, name))
        except (ValueError, TypeError, OverflowError) as error:
            return Reply({"message": str(error)}, 422)

    def _carried_out(self, request: Request, name: str, asked: Any) -> Reply:
        match request.method, name:
            case "GET", "log":
                return Reply(self._world.journal.entries(int(request.query_params.get("after", "0"))))
            case "GET", "deliveries":
                return Reply([delivery_detail(item) for item in self._world.courier.log])
            case "GET", "bill":
                return Reply(self._bill())
            case "GET", "faults":
                return Reply([asdict(fault) for fault in self._world.faults.pending()])
            case "POST", "faults":
                return self._queue(asked)
            case "DELETE", "faults":
                self._world.faults.clear()
                return Reply({"queued": 0})
            case "POST", "clock":
                self._world.clock.advance(float(asked.get("advance", 0)))
                return Reply({"now": stamp(self._world.clock.now())})
            case "POST", "ping":
                ping(self._world, _urls(request))
                return Reply({}, 202)
            case "POST", "installation":
                done = change_installation(self._world, str(asked.get("action", "created")), asked, _urls(request))
                return Reply({}, 202) if done else Reply({"message": "nothing to change"}, 422)
            case _:
                return Reply({"message": "Not Found"}, 404)

    def _queue(self, asked: Any) -> Reply:
        for one in asked if isinstance(asked, list) else [asked]:
            self._world.faults.add(one)
        return Reply({"queued": len(self._world.faults.pending())})

    def _bill(self) -> dict[str, Any]:
        sent = self._world.courier.log
        return {
            **self._world.journal.totals(),
            "deliveries": len(sent),
            "deliveries ok": sum(1 for item in sent if item.status == "OK"),
        }


def _order(raw: bytes, name: str) -> Any:
    asked = json.loads(raw) if raw else {}
    if name != "faults" and not isinstance(asked, dict):
        raise TypeError("the body is no JSON object")
    return asked


def _urls(request: Request) -> Urls:
    return Urls(f"http://{request.headers.get('host', 'localhost')}")
