"""Endpoints for orders."""

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bookshop.errors import ApiError


async def create_order(request: Request) -> JSONResponse:
    body = await request.json()
    lines = body.get("lines") or []
    if not 0 < len(lines) <= request.app.state.config.max_order_lines:
        raise ApiError(422, "invalid", "an order has 1 to 20 lines")
    return JSONResponse(request.app.state.store.place_order(body["customer"], lines), status_code=201)


async def get_order(request: Request) -> JSONResponse:
    order = request.app.state.store.orders.get(request.path_params["id"])
    if order is None:
        raise ApiError(404, "unknown_order", "no such order")
    return JSONResponse(order)


routes = [Route("/orders", create_order, methods=["POST"]), Route("/orders/{id:int}", get_order)]
