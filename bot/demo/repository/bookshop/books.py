"""Endpoints for books."""

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bookshop.errors import ApiError


async def list_books(request: Request) -> JSONResponse:
    author = request.query_params.get("author")
    books = request.app.state.store.books.values()
    return JSONResponse([asdict(book) for book in books if author in (None, book.author)])


async def get_book(request: Request) -> JSONResponse:
    book = request.app.state.store.books.get(request.path_params["isbn"])
    if book is None:
        raise ApiError(404, "unknown_book", "no such book")
    return JSONResponse(asdict(book))


routes = [Route("/books", list_books), Route("/books/{isbn}", get_book)]
