"""Puts the application together."""

from starlette.applications import Starlette

from bookshop import books, customers, health, orders
from bookshop.config import DEFAULT, Config
from bookshop.errors import ApiError, handle_api_error
from bookshop.store import Store, sample


def create_app(config: Config = DEFAULT, store: Store | None = None) -> Starlette:
    """The web application for one shop."""
    app = Starlette(
        routes=[*health.routes, *books.routes, *customers.routes, *orders.routes],
        exception_handlers={ApiError: handle_api_error},
    )
    app.state.config = config
    app.state.store = store if store is not None else sample()
    return app
