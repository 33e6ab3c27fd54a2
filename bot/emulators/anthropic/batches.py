"""Message batches: each item takes the path of a single request, at half price, when the batch's time has come."""

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bot.emulators.anthropic.brain import BrainError
from bot.emulators.anthropic.exchange import accept
from bot.emulators.anthropic.refusals import Refusal
from bot.emulators.anthropic.state import State
from bot.emulators.anthropic.wire import Draft, Json, Surface

_PATH = "/v1/messages/batches"
_MOST = 100_000
_DAY = 86_400
_KEPT = 29 * _DAY
"""Results can be read for so long."""
_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(slots=True)
class Batch:
    """Items and, once it ended, their results."""

    id: str
    key: str
    items: list[Json]
    headers: Mapping[str, str]
    created: float
    due: float
    canceled: float | None = None
    results: list[Json] = field(default_factory=list)
    ended: float | None = None
    archived: float | None = None

    def document(self, url: str) -> Json:
        """As the API shows it."""
        counts = dict.fromkeys(("canceled", "errored", "expired", "processing", "succeeded"), 0)
        for result in self.results:
            counts[result["result"]["type"]] += 1
        if self.ended is None:
            counts["processing"] = len(self.items)
            status = "in_progress" if self.canceled is None else "canceling"
        else:
            status = "ended"
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": status,
            "request_counts": counts,
            "created_at": _moment(self.created),
            "expires_at": _moment(self.created + _DAY),
            "ended_at": _moment(self.ended),
            "cancel_initiated_at": _moment(self.canceled),
            "archived_at": _moment(self.archived),
            "results_url": f"{url}{_PATH}/{self.id}/results"
            if self.ended is not None and self.archived is None
            else None,
        }

    def end(self, at: float, kind: str) -> None:
        """With no item answered: all of them canceled, or expired. Nothing is billed for them."""
        self.results = [{"custom_id": item["custom_id"], "result": {"type": kind}} for item in self.items]
        self.ended = at

    def lines(self) -> bytes:
        """Results as JSON lines, in an order that is not the one in which they were asked."""
        return b"".join(json.dumps(r, ensure_ascii=False).encode() + b"\n" for r in reversed(self.results))


def _moment(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def create(state: State, key: str, headers: Mapping[str, str], body: Json) -> Batch:
    """A new batch in progress; its items are judged one by one when they run."""
    items = body.get("requests")
    if not isinstance(items, list) or not items:
        raise Refusal("requests: List should have at least 1 item")
    if len(items) > _MOST:
        raise Refusal(f"requests: List should have at most {_MOST} items")
    seen: set[str] = set()
    for i, item in enumerate(items):
        custom = item.get("custom_id") if isinstance(item, dict) else None
        if not isinstance(custom, str) or not isinstance(item.get("params"), dict):
            raise Refusal(f"requests.{i}: custom_id and params are required")
        if not _CUSTOM_ID.fullmatch(custom) or len(item) > 2:
            raise Refusal(
                f"requests.{i}: custom_id should match '^[a-zA-Z0-9_-]{{1,64}}$', with nothing but params beside it"
            )
        if custom in seen:
            raise Refusal(f"requests.{i}.custom_id: must be unique within the batch")
        seen.add(custom)
    now = state.clock.now()
    batch = Batch(f"msgbatch_{uuid.uuid4().hex[:24]}", key, items, headers, now, now + state.config.batch_seconds)
    state.batches[batch.id] = batch
    return batch


def found(state: State, key: str, batch_id: str) -> Batch:
    """The caller's batch, brought up to the present."""
    batch = state.batches.get(batch_id)
    if batch is None or batch.key != key:
        raise Refusal(f"batch {batch_id} not found", status=404, type="not_found_error")
    _advance(state, batch)
    return batch


def cancel(state: State, key: str, batch_id: str) -> Batch:
    """Items that have not run by now never will."""
    batch = found(state, key, batch_id)
    if batch.ended is None and batch.canceled is None:
        batch.canceled = state.clock.now()
    return batch


def _advance(state: State, batch: Batch) -> None:
    now = state.clock.now()
    if now >= batch.created + _KEPT:
        batch.archived = batch.archived or batch.created + _KEPT
    if batch.ended is not None:
        return
    if batch.canceled is not None:
        batch.end(batch.canceled, "canceled")
    elif now >= batch.created + _DAY and batch.due > batch.created + _DAY:
        batch.end(batch.created + _DAY, "expired")
    elif now >= batch.due:
        batch.results = [_run(state, batch, item) for item in batch.items]
        batch.ended = now


def _run(state: State, batch: Batch, item: Json) -> Json:
    draft = Draft(
        body=item["params"],
        headers=batch.headers,
        surface=Surface.BATCH_ITEM,
        key=batch.key,
        policy=state.policy,
        ruler=state.ruler,
        remembered=state.remembered,
    )
    request_id = f"req_{uuid.uuid4().hex[:24]}"
    result: Json
    try:
        exchange = accept(state, draft, request_id=request_id, path=_PATH, index=len(state.log))
    except Refusal as refusal:
        result = {"type": "errored", "error": refusal.body(request_id, wording=state.config.wording)}
    except BrainError as error:
        result = {"type": "errored", "error": Refusal(str(error), status=500, type="api_error").body(request_id)}
    else:
        state.cache.begin(exchange.account, at=state.clock.now())
        result = {"type": "succeeded", "message": exchange.finished()}
    return {"custom_id": item["custom_id"], "result": result}
