"""Endpoint for the load balancer, asked every second by each of them."""

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def health(request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


routes = [Route("/health", health)]
