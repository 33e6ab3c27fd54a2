"""Lists in pages, by cursor: `limit`, `after_id`, `before_id`."""

from collections.abc import Mapping, Sequence

from bot.emulators.anthropic.refusals import Refusal
from bot.emulators.anthropic.wire import Json

_MOST = 1000


def page(items: Sequence[Json], query: Mapping[str, str]) -> Json:
    """The part of the list that the query names, as the API wraps it; raises the refusal of a bad limit or cursor."""
    limit = query.get("limit", "20")
    if not limit.isdecimal() or not 1 <= int(limit) <= _MOST:
        raise Refusal(f"limit: Input should be between 1 and {_MOST}")
    places = {item["id"]: i for i, item in enumerate(items)}
    for name in ("after_id", "before_id"):
        if name in query and query[name] not in places:
            raise Refusal(f"{name}: not found in this list")
    if "before_id" in query:
        end = places[query["before_id"]]
        start = max(0, end - int(limit))
        more = start > 0
    else:
        start = places[query["after_id"]] + 1 if "after_id" in query else 0
        end = start + int(limit)
        more = end < len(items)
    shown = items[start:end]
    ends = (shown[0]["id"], shown[-1]["id"]) if shown else (None, None)
    return {"data": list(shown), "has_more": more, "first_id": ends[0], "last_id": ends[1]}
