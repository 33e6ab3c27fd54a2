"""Everything the shop knows, in memory."""

from dataclasses import dataclass, field
from itertools import count

from bookshop.errors import ApiError


@dataclass
class Book:
    isbn: str
    title: str
    author: str
    price_cents: int
    stock: int


@dataclass
class Store:
    """Books, customers and orders by their ids."""

    books: dict[str, Book] = field(default_factory=dict)
    customers: dict[int, dict[str, object]] = field(default_factory=dict)
    orders: dict[int, dict[str, object]] = field(default_factory=dict)
    _ids: "count[int]" = field(default_factory=lambda: count(1))

    def add_customer(self, name: str) -> dict[str, object]:
        customer: dict[str, object] = {"id": next(self._ids), "name": name}
        self.customers[int(str(customer["id"]))] = customer
        return customer

    def place_order(self, customer_id: int, lines: list[dict[str, int | str]]) -> dict[str, object]:
        if customer_id not in self.customers:
            raise ApiError(404, "unknown_customer", f"no customer {customer_id}")
        total = 0
        for line in lines:
            book = self.books.get(str(line["isbn"]))
            if book is None:
                raise ApiError(404, "unknown_book", f"no book {line['isbn']}")
            if book.stock < int(line["quantity"]):
                raise ApiError(409, "out_of_stock", f"only {book.stock} left of {book.isbn}")
            total += book.price_cents * int(line["quantity"])
        for line in lines:
            self.books[str(line["isbn"])].stock -= int(line["quantity"])
        order: dict[str, object] = {"id": next(self._ids), "customer": customer_id, "total_cents": total}
        self.orders[int(str(order["id"]))] = order
        return order


def sample() -> Store:
    """A shop with three books."""
    books = [
        Book("978-0", "Dune", "Herbert", 1299, 5),
        Book("978-1", "Emma", "Austen", 899, 2),
        Book("978-2", "Persuasion", "Austen", 799, 0),
    ]
    return Store(books={book.isbn: book for book in books})
