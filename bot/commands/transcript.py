"""A trace as people read it: a time line of stages, and under each what was done there. Pure; 80 columns unless there are more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.cells import cell_len, chop_cells, set_cell_size

from bot.commands.trace import Call, Mask, Stay, Trace, stages
from bot.domain.money import MICROS_PER_DOLLAR, MicroUsd, show
from bot.domain.spending import Usage
from bot.domain.task import ENDINGS, Stage
from bot.prompting import mask_secrets
from bot.prompting.invisible import strip_invisible
from bot.providers.store.port import TaskRecord
from bot.workflow.history import Act, History, Segment
from bot.workflow.outcomes import Kind, Said

WIDTH = 80
_INDENT, _LABEL, _TIME = 10, 11, 11
_READ = 4_000
"""Of a longer text so much is looked at; secrets are masked before it is cut further."""
_WAITED = 2_000
"""Milliseconds; who waited less for a free place did not wait. SQLite's engine tells these times in whole seconds."""
_ROWS = 4
"""So many lines at most of what one thing came to."""
_WELL = frozenset({Stage.LANDED, Stage.READY})


@dataclass(frozen=True, slots=True)
class Line:
    """One line and how a terminal shows it (a style of rich; empty for plain)."""

    text: str
    style: str = ""


def cleaner(secrets: tuple[str, ...]) -> Mask:
    """Makes any stored text fit for a terminal: nothing that one would obey or not show, one line, secrets masked."""

    def clean(text: str) -> str:
        seen, _ = strip_invisible(text[:_READ])
        flat = " ".join(mask_secrets(seen, secrets).split())
        return flat if flat.isprintable() else "".join(letter if letter.isprintable() else "�" for letter in flat)

    return clean


def listed(found: Sequence[tuple[TaskRecord, MicroUsd]], clean: Mask, width: int = WIDTH) -> tuple[Line, ...]:
    """The newest tasks, one line each."""
    if not found:
        return (Line("No task yet. Put the label on an issue."),)
    ids = max(cell_len(record.spec.id) for record, _ in found)
    subjects = [clean(_subject(record)) for record, _ in found]
    names = max(cell_len(subject) for subject in subjects)
    lines = []
    for (record, spent), subject in zip(found, subjects, strict=True):
        row = f"{record.spec.id:{ids}}  {set_cell_size(subject, names)}  {_word(record.stage):13}  {show(spent):>8}  {clean(record.spec.title)}"
        lines.append(Line(_cut(row, width), _mood(record.stage)))
    return tuple(lines)


def transcript(one: Trace, clean: Mask, width: int = WIDTH) -> tuple[Line, ...]:
    """The whole task: what it is, what happened when, how it ended and why."""
    page = _Page(clean, max(width, WIDTH))
    parts = (page.head(one), page.body(one), page.tail(one))
    return tuple(line for part in parts for line in (*part, Line("")))[:-1]


class _Page:
    def __init__(self, clean: Mask, width: int) -> None:
        self._clean = clean
        self._width = width
        self._day = ""

    def head(self, one: Trace) -> Iterator[Line]:
        record, spent = one.record, f"{_dollars(one.spent)} in {_counted(len(one.calls), 'attempt')}"
        if record is None:
            yield Line(f"{one.task}  a local clone", "bold")
            yield Line(spent)
            return
        spec = record.spec
        yield Line(
            f"{spec.id}  {self._clean(_subject(record))}  {_word(record.stage)}", f"bold {_mood(record.stage)}".strip()
        )
        yield from self._wrapped(spec.title)
        pull = f" · pull request #{record.pull_number}" if record.pull_number is not None else ""
        asked = f"asked for by {self._clean(spec.requester.login)}"
        yield Line(f"{asked} · {spent}, of {show(spec.budget)}{pull}")
        if one.earlier:
            yield from self._wrapped(f"earlier here: {', '.join(one.earlier)}")

    def body(self, one: Trace) -> Iterator[Line]:
        """Stages in order of time. Calls of which no step tells (under way, or the engine's part is missing) come where they began."""
        for delivery in one.deliveries[:1]:
            at = datetime.fromisoformat(delivery.received_at).astimezone(UTC)
            yield from self._timed(at, f"delivery {delivery.event} {delivery.id}")
        history = one.history
        if history is None:
            for call in one.calls:
                name = call.cost.call.partition(":alive:")[0]
                yield from self._call(call, name, None, "", alone=True)
            return
        line = stages(history, over=one.record is not None and one.record.ending is not None)
        edges = [stay.began for stay in line]
        for stay, last in zip(line, [*edges[1:], None], strict=True):
            yield from self._stay(stay, history, last)
            yield from self._during(one, history, stay.began, last)

    def _during(self, one: Trace, history: History, first: int, last: int | None) -> Iterator[Line]:
        def here(at: int) -> bool:
            return first <= at and (last is None or at < last)

        calls = _by_step(one.calls)
        told = {act.name for act in history.acts}
        happened: list[tuple[int, int, tuple[Line, ...]]] = [
            (at, 0, (self._queued(segment),)) for segment, at in _waits(history) if here(at)
        ]
        happened += [
            (act.began, 1, tuple(self._told(act, calls.get(act.name, ()))))
            for act in history.acts
            if here(act.began) and act.stage is None
        ]
        for name, mine in calls.items():
            at = next((call.at * 1000 + 999 for call in mine if call.at is not None), first)  # known to the second
            if name not in told and here(at):
                made = (line for call in mine for line in self._call(call, name, None, "", alone=True))
                happened.append((at, 2, tuple(made)))
        for _, _, lines in sorted(happened, key=lambda each: each[:2]):
            yield from lines

    def tail(self, one: Trace) -> Iterator[Line]:
        for approval in one.approvals:
            allowed = f", names {', '.join(approval.flags)}" if approval.flags else ""
            said = f"approved by {approval.reviewer.login} ({approval.permission.value}), digest {approval.digest[:12]}{allowed}"
            yield from self._wrapped(said)
        ending = one.record.ending if one.record is not None else None
        if ending is not None:
            yield from self._wrapped(f"{_word(ending.stage)}: {ending.reason}", _mood(ending.stage))
            if ending.next_step:
                yield from self._wrapped(ending.next_step)
        elif one.record is not None:
            note = f": {one.record.note}" if one.record.note else "."
            yield from self._wrapped(f"It has not ended; it is {_word(one.record.stage)}{note}")
        if one.missing:
            yield from self._wrapped(one.missing)

    # parts of the body

    def _stay(self, stay: Stay, history: History, last: int | None) -> Iterator[Line]:
        """A stage, and which step of the plan is worked in it."""
        acts = (act for act in history.acts if stay.began <= act.began and (last is None or act.began < last))
        steps = dict.fromkeys(act.segment for act in acts if act.segment.startswith("step:"))
        text = " · ".join([stay.stage.replace("_", " "), *steps])
        ended = "…" if stay.seconds is None else _lasted(stay.seconds)
        yield from self._timed(datetime.fromtimestamp(stay.began / 1000, UTC), text, ended, "bold")

    def _timed(self, at: datetime, text: str, lasted: str = "", style: str = "") -> Iterator[Line]:
        """A line with its time; the day stands before the first one of each."""
        day = f"{at:%Y-%m-%d} (UTC)"
        if day != self._day:
            self._day = day
            yield Line(day, "dim")
        yield Line(self._row(f"{at:%H:%M:%S}  ", text, lasted), style)

    def _told(self, act: Act, calls: Sequence[Call]) -> Iterator[Line]:
        label, lasted = _label(act), act.ended - act.began
        if act.kind is Kind.MODEL and calls:
            (said, *_) = act.said
            answered = [call for call in calls if not _pings(call)][-1:]
            for call in calls:
                yield from self._call(call, label, lasted if call in answered else None, said.outcome)
            if not said.ok:
                yield from self._act("", said.outcome, None, style="red")
            return
        for number, said in enumerate(act.said):
            first, style = number == 0, "" if said.ok else "red"
            is_tool = act.kind is Kind.TOOL
            what = (
                self._side_by_side(said) if is_tool else " → ".join(part for part in (said.what, said.outcome) if part)
            )
            rows = 1 if is_tool else _ROWS
            yield from self._act(label if first else "", what, lasted if first else None, style=style, rows=rows)

    def _side_by_side(self, said: Said) -> str:
        """What was done and what came of it on one line, with room for either."""
        what, outcome = self._clean(said.what), self._clean(said.outcome)
        room = self._width - _INDENT - _LABEL - _TIME - 3
        return f"{_cut(what, max(room // 2, room - cell_len(outcome)))} → {outcome}"

    def _queued(self, segment: Segment) -> Line:
        if segment.began is None:
            return next(self._act("queue", f"{segment.key} waits for a free place", None))
        return next(self._act("queue", "waited for a free place", segment.began - segment.queued))

    def _call(self, call: Call, label: str, lasted: int | None, came_of: str, *, alone: bool = False) -> Iterator[Line]:
        """An attempt; `alone`: no step of the time line says what it was for."""
        cost = call.cost
        part, _, number = label.rpartition(":call:")
        outcome = came_of.replace("_", " ") if cost.outcome == "ok" else cost.outcome
        if _pings(call):
            outcome = "keeps the cache" if cost.outcome == "ok" else f"keeps the cache: {cost.outcome}"
        attempt = f", attempt {call.number}" if call.number > 1 else ""
        text = f"{cost.model} {cost.effort}{attempt} {_dollars(cost.micro_usd)} {outcome}".rstrip()
        if alone:
            label, text = f"call:{number}", f"{part} · {text}"
        yield from self._act(label, text, lasted, style="" if cost.outcome == "ok" or not cost.settled else "red")
        facts = ", ".join([*_tokens(cost.usage), *([f"cache missed: {cost.cache_miss}"] if cost.cache_miss else [])])
        for row in _rows(self._clean(facts), self._width - _INDENT - _LABEL):
            yield Line(" " * (_INDENT + _LABEL) + row, "dim")

    def _act(self, label: str, text: str, lasted: int | None, *, style: str = "", rows: int = _ROWS) -> Iterator[Line]:
        """A line with the label and how long it took, and as many more as the text needs and may have."""
        start = " " * _INDENT + set_cell_size(self._clean(label), _LABEL)
        told, room = self._clean(text), self._width - _INDENT - _LABEL - _TIME
        for number, row in enumerate((_rows(told, room, rows) if rows > 1 else [told]) or [""]):
            first = number == 0
            ended = "" if lasted is None or not first else _lasted(lasted / 1000)
            yield Line(self._row(start if first else " " * (_INDENT + _LABEL), row, ended), style)

    def _row(self, start: str, text: str, lasted: str) -> str:
        room = self._width - cell_len(start) - (_TIME if lasted else 0)
        row = start + _cut(self._clean(text), room)
        return (set_cell_size(row, self._width - _TIME) + lasted.rjust(_TIME)) if lasted else row.rstrip()

    def _wrapped(self, text: str, style: str = "") -> Iterator[Line]:
        for row in _rows(self._clean(text), self._width):
            yield Line(row, style)


def _by_step(calls: Sequence[Call]) -> Mapping[str, tuple[Call, ...]]:
    """Attempts by the step that made them; a ping that keeps the cache belongs to the call it repeats."""
    found: dict[str, list[Call]] = {}
    for call in calls:
        found.setdefault(call.cost.call.partition(":alive:")[0], []).append(call)
    return {name: tuple(sorted(each, key=_pings)) for name, each in found.items()}


def _waits(history: History) -> Iterator[tuple[Segment, int]]:
    """Segments that waited, and where in the time line that stands: before the first act of each."""
    for segment in history.segments:
        if segment.began is None or segment.began - segment.queued >= _WAITED:
            acts = (act.began for act in history.acts if act.segment == segment.key)
            yield segment, next(acts, segment.began or segment.queued)


def _pings(call: Call) -> bool:
    return ":alive:" in call.cost.call


def _label(act: Act) -> str:
    """The step's name without what the time line says anyway."""
    if act.kind is Kind.HEARD:
        return "heard"
    return act.name.removeprefix(f"{act.segment}:") if act.segment else act.name.partition(":")[0]


def _tokens(usage: Usage) -> list[str]:
    kinds = (
        ("in", usage.input),
        ("written", usage.write_5m),
        ("written for 1 h", usage.write_1h),
        ("read", usage.read),
        ("out", usage.output),
        ("thinking", usage.thinking),
    )
    return [f"{name} {count:,}" for name, count in kinds if count]


def _rows(text: str, width: int, most: int | None = None) -> list[str]:
    """The text in rows of so many columns, at most so many; a letter may take two."""
    rows: list[str] = []
    for word in text.split():
        for piece in chop_cells(word, width):
            if rows and cell_len(rows[-1]) + 1 + cell_len(piece) <= width:
                rows[-1] += f" {piece}"
            else:
                rows.append(piece)
    if most is not None and len(rows) > most:
        rows[most - 1 :] = [_cut(f"{rows[most - 1]} {rows[most]}", width)]
    return rows


def _cut(text: str, room: int) -> str:
    return text if cell_len(text) <= room else set_cell_size(text, room - 1).rstrip() + "…"


def _subject(record: TaskRecord) -> str:
    return f"{record.spec.subject.repository.full_name}#{record.spec.subject.number}"


def _word(stage: Stage) -> str:
    return stage.value.replace("_", " ")


def _mood(stage: Stage) -> str:
    if stage in _WELL:
        return "green"
    return "red" if stage in ENDINGS else ""


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _dollars(amount: MicroUsd) -> str:
    """To the micro-dollar, as the ledger has it."""
    return f"${amount / MICROS_PER_DOLLAR:.6f}"


def _lasted(seconds: float) -> str:
    """Two units at most: "0.3 s", "2 min 5 s", "3 h 2 min", "2 d 4 h"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    for size, name, smaller, part in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            return f"{whole // size} {name} {whole % size // smaller} {part}"
    return f"{whole} s"
