"""Routes of the App's webhook: configuration, delivery log, redelivery."""

from __future__ import annotations

from datetime import timedelta

import httpx

from bot.emulators.github.call import Call, Handler, Json, Reply, natural
from bot.emulators.github.errors import ApiError, custom, not_found
from bot.emulators.github.routes.paging import page_size
from bot.emulators.github.shapes import apps
from bot.emulators.github.webhooks.courier import Delivery
from bot.emulators.github.webhooks.events import ping

_KEPT = timedelta(days=3)


def _config(call: Call) -> Json:
    url = call.world.app.webhook_url
    return {"content_type": "json", "insecure_ssl": "0", "secret": "********", **({"url": url} if url else {})}


async def get_config(call: Call) -> Reply:
    return Reply(_config(call))


async def set_config(call: Call) -> Reply:
    """A new address is pinged; a new secret signs from now on."""
    app = call.world.app
    if call.body.one_of("content_type", ("json", "form"), "json") == "form":
        raise ApiError(422, "This stand-in delivers JSON only.")
    address = call.body.optional_text("url")
    if address is not None and not _deliverable(address):
        raise custom("Hook", "url is not a valid URL")
    app.webhook_secret = call.body.optional_text("secret", app.webhook_secret) or app.webhook_secret
    if address is not None and address != app.webhook_url:
        app.webhook_url = address
        ping(call.world, call.urls)
    return Reply(_config(call))


def _deliverable(address: str) -> bool:
    try:
        parsed = httpx.URL(address)
    except httpx.InvalidURL:
        return False
    return parsed.scheme in {"http", "https"} and bool(parsed.host)


def _kept(call: Call) -> list[Delivery]:
    oldest = call.world.clock.now() - _KEPT
    return [item for item in call.world.courier.log if item.delivered_at >= oldest]


async def list_deliveries(call: Call) -> Reply:
    """Newest first; `cursor` is opaque to clients, who follow the link to the next page."""
    found = [item for item in reversed(_kept(call)) if item.status != "pending"]
    wanted = call.query.get("status")
    if wanted in {"success", "failure"}:
        found = [item for item in found if (item.status == "OK") == (wanted == "success")]
    elif wanted is not None:
        raise ApiError(422, "Invalid request.\n\nstatus must be success or failure.")
    cursor = call.query.get("cursor", "")
    if cursor:
        version, _, seen = cursor.partition("_")
        before = natural(seen)
        if version != "v1" or before is None:
            raise ApiError(400, "Invalid cursor")
        found = [item for item in found if item.id < before]
    size = page_size(call)
    headers = {}
    if len(found) > size:
        status = f"&status={wanted}" if wanted else ""
        address = call.urls.api(f"app/hook/deliveries?per_page={size}{status}&cursor=v1_{found[size - 1].id}")
        headers["Link"] = f'<{address}>; rel="next"'
    return Reply([apps.delivery(item) for item in found[:size]], headers=headers)


def _delivery(call: Call) -> Delivery:
    wanted = call.number("delivery_id")
    for item in _kept(call):
        if item.id == wanted:
            return item
    raise not_found()


async def get_delivery(call: Call) -> Reply:
    return Reply(apps.delivery_detail(_delivery(call)))


async def redeliver(call: Call) -> Reply:
    call.world.courier.again(_delivery(call))
    return Reply({}, 202)


HANDLERS: dict[str, Handler] = {
    "GET /app/hook/config": get_config,
    "PATCH /app/hook/config": set_config,
    "GET /app/hook/deliveries": list_deliveries,
    "GET /app/hook/deliveries/{delivery_id}": get_delivery,
    "POST /app/hook/deliveries/{delivery_id}/attempts": redeliver,
}
