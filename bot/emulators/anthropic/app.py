"""The routes: the API as clients see it, and the control surface beside it."""

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from bot.emulators.anthropic import batches
from bot.emulators.anthropic.control import routes
from bot.emulators.anthropic.delivery import Delivery, Lines
from bot.emulators.anthropic.door import Endpoint, Handler, Visit
from bot.emulators.anthropic.exchange import accept, count
from bot.emulators.anthropic.models import MODELS, described
from bot.emulators.anthropic.paging import page
from bot.emulators.anthropic.refusals import Refusal
from bot.emulators.anthropic.state import State
from bot.emulators.anthropic.wire import Surface

_BATCH_MEGABYTES = 256


async def _messages(visit: Visit) -> ASGIApp:
    draft = visit.draft(Surface.MESSAGES)
    path = visit.entry.path
    exchange = accept(visit.state, draft, request_id=visit.request_id, path=path, index=visit.entry.index)
    headers = visit.headers(used=exchange.account.prompt - exchange.account.read)
    return Delivery(visit.state, exchange, headers, bool(visit.body.get("stream")), visit.fault)


async def _count(visit: Visit) -> ASGIApp:
    return JSONResponse({"input_tokens": count(visit.draft(Surface.COUNT))}, headers=visit.headers())


async def _models(visit: Visit) -> ASGIApp:
    listed = [described(m) for m in MODELS.values()]
    return JSONResponse(page(listed, visit.request.query_params), headers=visit.headers())


async def _model(visit: Visit) -> ASGIApp:
    name = visit.request.path_params["name"]
    if name not in MODELS:
        raise Refusal(f"model: {name}", status=404, type="not_found_error")
    return JSONResponse(described(MODELS[name]), headers=visit.headers())


async def _create_batch(visit: Visit) -> ASGIApp:
    batch = batches.create(visit.state, visit.key, dict(visit.request.headers), visit.body)
    return JSONResponse(batch.document(visit.url), headers=visit.headers())


async def _list_batches(visit: Visit) -> ASGIApp:
    mine = [b for b in visit.state.batches.values() if b.key == visit.key]
    listed = [batches.found(visit.state, visit.key, b.id).document(visit.url) for b in reversed(mine)]
    return JSONResponse(page(listed, visit.request.query_params), headers=visit.headers())


async def _get_batch(visit: Visit) -> ASGIApp:
    batch = batches.found(visit.state, visit.key, visit.request.path_params["batch"])
    return JSONResponse(batch.document(visit.url), headers=visit.headers())


async def _delete_batch(visit: Visit) -> ASGIApp:
    batch = batches.found(visit.state, visit.key, visit.request.path_params["batch"])
    if batch.ended is None:
        raise Refusal("a batch can be deleted once it has ended")
    del visit.state.batches[batch.id]
    return JSONResponse({"id": batch.id, "type": "message_batch_deleted"}, headers=visit.headers())


async def _cancel_batch(visit: Visit) -> ASGIApp:
    batch = batches.cancel(visit.state, visit.key, visit.request.path_params["batch"])
    return JSONResponse(batch.document(visit.url), headers=visit.headers())


async def _batch_results(visit: Visit) -> ASGIApp:
    batch = batches.found(visit.state, visit.key, visit.request.path_params["batch"])
    if batch.ended is None or batch.archived is not None:
        raise Refusal(f"batch {batch.id} has no results", status=404, type="not_found_error")
    return Lines(batch.lines(), visit.headers(), visit.fault)


async def _nowhere(visit: Visit) -> ASGIApp:
    raise Refusal(f"{visit.entry.path}: Not Found", status=404, type="not_found_error")


def build(state: State) -> Starlette:
    """The application over one state."""

    def route(path: str, handler: Handler, *methods: str, megabytes: int = 32) -> Route:
        return Route(path, Endpoint(state, handler, megabytes), methods=list(methods))

    batch = "/v1/messages/batches/{batch}"
    return Starlette(
        routes=[
            Mount("/_stand-in", routes=routes(state)),
            route("/v1/messages", _messages, "POST"),
            route("/v1/messages/count_tokens", _count, "POST"),
            route("/v1/messages/batches", _create_batch, "POST", megabytes=_BATCH_MEGABYTES),
            route("/v1/messages/batches", _list_batches, "GET"),
            route(batch, _get_batch, "GET"),
            route(batch, _delete_batch, "DELETE"),
            route(batch + "/cancel", _cancel_batch, "POST"),
            route(batch + "/results", _batch_results, "GET"),
            route("/v1/models", _models, "GET"),
            route("/v1/models/{name}", _model, "GET"),
            route("/{path:path}", _nowhere, "GET", "POST", "PUT", "DELETE", "PATCH"),
        ]
    )
