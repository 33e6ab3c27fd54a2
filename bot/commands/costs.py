"""What tasks cost, from the ledger; with `--vendors`, what the same tokens would cost on other vendors' terms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from bot.commands.naming import find, unknown
from bot.domain.money import MicroUsd, dollars, show
from bot.domain.spending import Usage
from bot.providers.llm.pricing import PriceBook, cost
from bot.providers.store.ledger import LedgerRow
from bot.providers.store.sql import open_store
from bot.providers.store.summaries import Account
from bot.settings import Settings


@dataclass(frozen=True, slots=True)
class CallCost:
    """One attempt: what it was for, its tokens, its price. `settled` False: its fate is unknown and it is charged in full."""

    task: str
    call: str
    model: str
    effort: str
    outcome: str
    usage: Usage
    micro_usd: MicroUsd
    settled: bool
    cache_miss: str


async def costs(settings: Settings, task: str | None, limit: int) -> tuple[CallCost, ...]:
    """Every attempt of one task (as `naming.find` takes its name), or of the newest tasks. Raises UserError for one that is not there."""
    if settings.untouched():
        if task is not None:
            raise unknown(task, ())
        return ()
    found = await _rows(settings, task, limit)
    return tuple(of_row(name, row) for name, rows in found for row in rows)


async def of_summaries(settings: Settings) -> tuple[Account, ...]:
    """What summaries of files have cost, by repository."""
    if settings.untouched():
        return ()
    store = open_store(settings.database())
    try:
        return await store.summary_accounts()
    finally:
        store.close()


async def _rows(settings: Settings, task: str | None, limit: int) -> list[tuple[str, tuple[LedgerRow, ...]]]:
    store = open_store(settings.database())
    try:
        if task is not None:
            names = [(await find(store, task))[0]]
        else:
            names = [record.spec.id for record in await store.tasks.listing(limit)]
        return [(name, await store.ledger.rows(name)) for name in names]
    finally:
        store.close()


def of_row(task: str, row: LedgerRow) -> CallCost:
    """A row of the ledger as reports show it."""
    attempt, settled = row.attempt, row.settled
    return CallCost(
        task=task,
        call=attempt.key,
        model=attempt.model,
        effort=attempt.effort,
        outcome=settled.outcome if settled is not None else "unknown fate",
        usage=settled.usage if settled is not None else Usage(),
        micro_usd=settled.cost if settled is not None else attempt.reserved,
        settled=settled is not None,
        cache_miss=settled.cache_miss if settled is not None else "",
    )


def repriced(calls: Sequence[CallCost], book: PriceBook) -> Mapping[str, MicroUsd]:
    """The same tokens on each other vendor's terms, by model; a ceiling, as their caches match differently."""
    vendors = {row.model for row in book.rows if row.vendor != "anthropic"}
    return {
        model: MicroUsd(sum(cost(call.usage, book.of(model)) for call in calls if call.settled))
        for model in sorted(vendors)
    }


def render(calls: Sequence[CallCost], *, as_json: bool, vendors: bool, summaries: Sequence[Account] = ()) -> str:
    """The report: a line a task, then the total, then summaries of files; or all of it as one JSON object."""
    book = PriceBook.load()
    others = repriced(calls, book) if vendors else {}
    total = MicroUsd(sum(call.micro_usd for call in calls))
    if as_json:
        document = {
            "calls": [{**asdict(call), "cost_usd": dollars(call.micro_usd)} for call in calls],
            "cost_usd": dollars(total),
            "summaries": [{**asdict(one), "cost_usd": dollars(one.spent)} for one in summaries],
            "vendors": {model: dollars(amount) for model, amount in others.items()},
        }
        return json.dumps(document)
    lines = [] if calls else ["Nothing was spent yet."]
    for task in dict.fromkeys(call.task for call in calls):
        mine = [call for call in calls if call.task == task]
        prompt = sum(call.usage.prompt for call in mine)
        read = sum(call.usage.read for call in mine)
        hit = f"{read / prompt:.0%}" if prompt else "–"
        spent = MicroUsd(sum(call.micro_usd for call in mine))
        lines.append(f"{task}  {show(spent)}  {len(mine)} attempts  {prompt:,} tokens in ({hit} from cache)")
    if calls:
        lines.append(f"total  {show(total)}")
    lines += [f"on {model}'s terms  {show(amount)}" for model, amount in others.items()]
    lines += [_summary_line(one) for one in summaries]
    return "\n".join(lines)


def _summary_line(one: Account) -> str:
    waiting = f", {one.under_way} batches under way" if one.under_way else ""
    return f"summaries of repository {one.repository}  {show(one.spent)}  {one.summaries:,} files, {one.embedded:,} embedded{waiting}"
