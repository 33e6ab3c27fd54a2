"""Endpoints for customers."""

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bookshop.errors import ApiError


async def create_customer(request: Request) -> JSONResponse:
    body = await request.json()
    if not body.get("name"):
        raise ApiError(422, "invalid", "a customer needs a name")
    return JSONResponse(request.app.state.store.add_customer(body["name"]), status_code=201)


async def get_customer(request: Request) -> JSONResponse:
    customer = request.app.state.store.customers.get(request.path_params["id"])
    if customer is None:
        raise ApiError(404, "unknown_customer", "no such customer")
    return JSONResponse(customer)


routes = [
    Route("/customers", create_customer, methods=["POST"]),
    Route("/customers/{id:int}", get_customer),
]
