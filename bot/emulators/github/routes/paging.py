"""Pages of a list, with the Link header that clients follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from bot.emulators.github.call import Call, Reply, natural


def _page_numbers(call: Call) -> tuple[int, int]:
    return natural(call.query.get("page", "")) or 1, page_size(call)


def page_size(call: Call) -> int:
    """`per_page`, 30 when it is missing or makes no sense, never more than 100."""
    return min(natural(call.query.get("per_page", "")) or 30, 100)


def cut(call: Call, items: Sequence[Any]) -> tuple[Sequence[Any], dict[str, str]]:
    """The asked page and the headers that go with it."""
    page, size = _page_numbers(call)
    last = max(1, -(-len(items) // size))
    links = []
    for relation, number in (("prev", page - 1), ("next", page + 1), ("last", last), ("first", 1)):
        if relation in {"prev", "first"} and page == 1:
            continue
        if relation in {"next", "last"} and page >= last:
            continue
        query = urlencode({**call.query, "page": number})
        links.append(f'<{call.urls.api(call.path.lstrip("/"))}?{query}>; rel="{relation}"')
    return items[(page - 1) * size : page * size], {"Link": ", ".join(links)} if links else {}


def paged(call: Call, items: Sequence[Any]) -> Reply:
    part, headers = cut(call, items)
    return Reply(list(part), headers=headers)


def counted(call: Call, name: str, items: Sequence[Any], **extra: Any) -> Reply:
    """The `{total_count, name: […]}` form."""
    part, headers = cut(call, items)
    return Reply({"total_count": len(items), **extra, name: list(part)}, headers=headers)
