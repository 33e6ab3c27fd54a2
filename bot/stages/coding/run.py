"""Works one step of a plan: asks the model, executes its tools in the sandbox, checks what it calls finished."""

from __future__ import annotations

import asyncio
import posixpath
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from bot.custody.faults import ForbiddenPath, OverLimit
from bot.custody.raw import quoted
from bot.custody.workbench import Workbench
from bot.domain.change import Change
from bot.domain.ids import TreeId
from bot.domain.task import Ending
from bot.domain.verdict import Failure
from bot.prompting import render
from bot.providers.journal.port import Journal
from bot.providers.llm.keepalive import kept_warm
from bot.providers.llm.port import (
    Conversation,
    LanguageModel,
    Message,
    ModelRequest,
    ModelTurn,
    ModelUnavailable,
    OverBudget,
    ToolCall,
)
from bot.providers.sandbox.port import WORK, Sandbox
from bot.retrieval.browse import Browser, Page
from bot.retrieval.extract import decoded
from bot.stages.coding import edits, observe, texts
from bot.stages.coding.log import ToolAnswer, tool_answers, user_text
from bot.stages.coding.loop import (
    GiveUp,
    Limits,
    Nudge,
    Progress,
    Resume,
    UseTools,
    Widen,
    after_check,
    grouped,
    next_move,
)
from bot.stages.coding.tools import FAMILIES, READ_ONLY, Edit, Finish, Read, Run, Search, ToolInput, parse

Check = Callable[[Sandbox, Change], Awaitable[tuple[Failure, ...]]]
"""Runs the step's tests and scan in the sandbox on a change; handed in by the workflow (it lives in stages/verifying)."""

OUTPUT_DIRECTORY = "/home/user/.pullwright/out"


@dataclass(frozen=True, slots=True)
class StepWork:
    """One step to work: `key` prefixes its checkpoints; `start` is the tree it begins from; `needs_change` per its files."""

    key: str
    conversation: Conversation
    brief: Message
    start: TreeId
    needs_change: bool
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class StepResult:
    """How the step ended. `ending` None means done; otherwise the tree holds the work as far as it got."""

    tree: TreeId
    summary: str
    attempts: int
    calls: int
    ending: Ending | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """Record of one model call: a turn, or why the task ends."""

    turn: ModelTurn | None
    ending: Ending | None = None


@dataclass(frozen=True, slots=True)
class Used:
    """Record of one group of tool calls: what the model is told, and the tree afterwards."""

    answers: tuple[ToolAnswer, ...]
    tree: TreeId


@dataclass(frozen=True, slots=True)
class Checked:
    """Record of one check; `tree` is what was checked."""

    tree: TreeId
    failures: tuple[Failure, ...]


ALARMING = frozenset({"dot_git", "hidden_character"})
"""Rules that nobody breaks by accident: the task ends. For others the model is told, and works on from before the command."""


@dataclass(frozen=True, slots=True)
class Collaborators:
    """What a step works with. `browser` answers reads and searches of files of the tree; what it cannot, the sandbox does."""

    journal: Journal
    model: LanguageModel
    bench: Workbench
    check: Check
    browser: Browser


async def run(work: StepWork, using: Collaborators) -> StepResult:
    """Work the step to its end. Every model call, tool group and check is one checkpoint of the journal."""
    return await _Worker(work, using).run()


class _Worker:
    def __init__(self, work: StepWork, using: Collaborators) -> None:
        self.work = work
        self.using = using
        self.log: list[Message] = [work.brief]
        self.tree = work.start
        self.progress = Progress()
        self.previous: str | None = None
        self.wider: int | None = None
        self.sent: ModelRequest | None = None

    async def run(self) -> StepResult:
        while True:
            asked = await self._ask()
            if asked.turn is None:
                return self._end("", asked.ending)
            turn = asked.turn
            move = next_move(turn, self.progress, self.work.limits)
            self.progress = replace(self.progress, calls=self.progress.calls + 1)
            if isinstance(move, Widen):
                self.wider = self.work.conversation.max_tokens * 2
                self.progress = replace(self.progress, capped=self.progress.capped + 1)
                continue
            self.log.extend(turn.said)
            self.previous, self.wider = turn.message_id, None
            match move:
                case GiveUp():
                    return self._end(turn.text, texts.stuck(move.reason))
                case Nudge():
                    self.progress = replace(self.progress, silent=self.progress.silent + 1)
                    self.log.append(user_text(move.text))
                case Resume():
                    pass
                case UseTools():
                    result = await self._use(move.calls)
                    if result is not None:
                        return result

    async def _ask(self) -> Asked:
        number = self.progress.calls + 1
        request = ModelRequest(
            key=f"{self.work.key}:call:{number}",
            conversation=self.work.conversation,
            messages=tuple(self.log),
            previous_message_id=self.previous,
            max_tokens=self.wider,
        )

        async def act() -> Asked:
            self.using.bench.begin(self.tree)  # it is made while the model thinks
            try:
                return Asked(await self.using.model.send(request))
            except OverBudget as stop:
                return Asked(None, texts.over_budget(str(stop)))
            except ModelUnavailable as stop:
                return Asked(None, texts.model_unavailable(str(stop)))

        self.sent = request
        return await self.using.journal.step(request.key, act, Asked)

    @asynccontextmanager
    async def _warm(self) -> AsyncIterator[None]:
        """Keep the conversation's cache entries alive while something long runs in the sandbox."""
        if self.sent is None:
            yield
            return
        async with kept_warm(self.using.model, self.sent):
            yield

    async def _use(self, calls: tuple[ToolCall, ...]) -> StepResult | None:
        """Execute a turn's calls; `finish` is answered last, by the check. Returns the result when the step is over."""
        finish = next((call for call in calls if call.name == "finish"), None)
        others = tuple(call for call in calls if call.name != "finish")
        more = (call.id for call in calls if call.name == "finish" and call is not finish)
        answers = {name: ToolAnswer(name, texts.ONE_FINISH, is_error=True) for name in more}
        for index, group in enumerate(grouped(others, FAMILIES)):
            used = await self._execute(index, group)
            self.tree = used.tree
            answers.update({answer.call_id: answer for answer in used.answers})
        if finish is None:
            self.log.append(tool_answers(tuple(answers[call.id] for call in others)))
            return None
        return await self._finish(finish, calls, answers)

    async def _execute(self, index: int, group: tuple[ToolCall, ...]) -> Used:
        before = self.tree
        number = self.progress.calls

        async def act() -> Used:
            made = [(call, parse(call.name, call.arguments)) for call in group]
            name = f"{number}-{index}"
            looking = all(isinstance(what, (str, *READ_ONLY)) for _, what in made)
            known = await asyncio.gather(*(self._look(before, call, what) for call, what in made)) if looking else ()
            if looking and all(answer is not None for answer in known):
                return Used(tuple(answer for answer in known if answer is not None), before)

            async def work(sandbox: Sandbox) -> Used:
                if looking:
                    pairs = zip(made, known, strict=True)
                    asked = [
                        _known(answer) if answer else _answer(sandbox, call, what, name)
                        for (call, what), answer in pairs
                    ]
                    return Used(tuple(await asyncio.gather(*asked)), before)
                self.using.bench.disturbed()
                answers = [await _answer(sandbox, call, what, name) for call, what in made]
                try:
                    change = await self.using.bench.capture()
                except (ForbiddenPath, OverLimit) as fault:
                    if fault.rule in ALARMING:
                        raise
                    told = texts.not_kept(fault.meaning)
                    return Used(tuple(ToolAnswer(call.id, told, is_error=True) for call in group), before)
                return Used(tuple(answers), change.tree)

            async with self._warm():
                return await self.using.bench.act(before, work)

        return await self.using.journal.step(f"{self.work.key}:tool:{number}:{index}", act, Used)

    async def _look(self, tree: TreeId, call: ToolCall, made: ToolInput | str) -> ToolAnswer | None:
        """The answer from the index and the tree's own files; None when the sandbox has to look."""
        match made:
            case str():
                return ToolAnswer(call.id, made, is_error=True)
            case Search():
                try:
                    found = await self.using.browser.search(tree, made.pattern, _within(made.path))
                except ValueError as error:
                    return ToolAnswer(call.id, observe.cut(f"The search failed: {error}", 100), is_error=True)
                return None if found is None else ToolAnswer(call.id, observe.ranked(made.pattern, found, made.tokens))
            case Read():
                page = await self.using.browser.read(tree, _within(made.path))
                return None if page is None else ToolAnswer(call.id, _page(made, page))
            case _:
                return None

    async def _finish(
        self, finish: ToolCall, calls: tuple[ToolCall, ...], answers: dict[str, ToolAnswer]
    ) -> StepResult | None:
        made = parse(finish.name, finish.arguments)
        if not isinstance(made, Finish):
            answers[finish.id] = ToolAnswer(finish.id, str(made), is_error=True)
            self.log.append(tool_answers(tuple(answers[call.id] for call in calls if call.id in answers)))
            return None
        checked = await self._check()
        if not checked.failures:
            self.progress = replace(self.progress, attempts=self.progress.attempts + 1)
            return self._end(made.summary, None)
        stop = after_check(checked.failures, self.progress, self.work.limits)
        self.progress = replace(
            self.progress,
            attempts=self.progress.attempts + 1,
            signatures=(*self.progress.signatures, frozenset(failure.signature for failure in checked.failures)),
        )
        if stop is not None:
            return self._end(made.summary, texts.stuck(stop.reason, checked.failures))
        told = render(
            "bot.stages.coding",
            "failed.md.j2",
            attempt=self.progress.attempts,
            attempts=self.work.limits.attempts,
            failures=checked.failures,
        )
        answers[finish.id] = ToolAnswer(finish.id, observe.cut(told, 1200), is_error=True)
        self.log.append(tool_answers(tuple(answers[call.id] for call in calls if call.id in answers)))
        return None

    async def _check(self) -> Checked:
        before = self.tree

        async def act() -> Checked:
            async def work(sandbox: Sandbox) -> Checked:
                change = await self.using.bench.capture()
                if change.tree == self.work.start and self.work.needs_change:
                    return Checked(change.tree, (texts.NOTHING_CHANGED,))
                failures = await self.using.check(sandbox, change)
                return Checked(change.tree, failures)

            async with self._warm():
                checked = await self.using.bench.act(before, work)
            self.using.bench.disturbed()
            return checked

        checked = await self.using.journal.step(f"{self.work.key}:check:{self.progress.calls}", act, Checked)
        self.tree = checked.tree
        return checked

    def _end(self, summary: str, ending: Ending | None) -> StepResult:
        return StepResult(self.tree, summary, self.progress.attempts, self.progress.calls, ending)


def _page(made: Read, page: Page) -> str:
    outline = ""
    if made.first is None and made.last is None:
        outline = observe.outlined(made.path, page.text, page.definitions)
    return outline or observe.numbered(made.path, page.text, made.first or 1, made.last)


async def _known(answer: ToolAnswer) -> ToolAnswer:
    return answer


async def _answer(sandbox: Sandbox, call: ToolCall, made: ToolInput | str, name: str) -> ToolAnswer:
    if isinstance(made, str):
        return ToolAnswer(call.id, made, is_error=True)
    text, is_error = await _perform(sandbox, made, name)
    return ToolAnswer(call.id, text, is_error)


async def _perform(sandbox: Sandbox, made: ToolInput, name: str) -> tuple[str, bool]:
    match made:
        case Search():
            command = (
                f"grep -rnIE --exclude-dir=.git -e {shlex.quote(made.pattern)} -- {shlex.quote(_inside(made.path))}"
            )
            result = await sandbox.run(command, timeout_seconds=60, output_bytes=400_000)
            return observe.matches(made.pattern, result.stdout or result.stderr, result.exit_code), result.exit_code > 1
        case Read():
            try:
                data = await sandbox.read(_absolute(made.path), limit=20_000_000)
            except (FileNotFoundError, ValueError) as error:
                return f"Cannot read {made.path}: {error}", True
            text = decoded(data)
            if text is None:
                return f"{quoted(made.path)} is no text; it has {len(data):,} bytes.", True
            return observe.numbered(made.path, text, made.first or 1, made.last), False
        case Edit():
            return await _edit(sandbox, made)
        case Run():
            return await _run(sandbox, made, name)
        case Finish():
            return "", False


async def _edit(sandbox: Sandbox, made: Edit) -> tuple[str, bool]:
    path = _absolute(made.path)
    try:
        data = await sandbox.read(path, limit=edits.LARGEST)
        current: str | None = data.decode("utf-8")
    except FileNotFoundError:
        current = None
    except UnicodeDecodeError:
        return f"{made.path} is not UTF-8 text; change it with run.", True
    except ValueError as error:
        return f"Cannot edit {made.path}: {error}", True
    outcome = edits.apply(made.path, current, made.old, made.new)
    if isinstance(outcome, edits.NotEdited):
        return outcome.answer, True
    await sandbox.write(path, outcome.text.encode("utf-8"))
    return outcome.answer, False


async def _run(sandbox: Sandbox, made: Run, name: str) -> tuple[str, bool]:
    kept = f"{OUTPUT_DIRECTORY}/{name}.txt"
    command = f"mkdir -p {OUTPUT_DIRECTORY}; {{ {made.command}\n}} 2>&1 | tee {kept}; exit ${{PIPESTATUS[0]}}"
    result = await sandbox.run(command, timeout_seconds=made.seconds, output_bytes=400_000)
    text = observe.plain(result.stdout or result.stderr).strip("\n")
    shown = observe.cut(text)
    lines = [f"exit {result.exit_code}" if not result.timed_out else f"stopped after {made.seconds} s"]
    if shown != text:
        lines.append(f"(cut; all of it is in {kept})")
    return "\n".join([*lines, shown]).strip(), result.timed_out


def _inside(path: str) -> str:
    return path.removeprefix(f"{WORK}/") or "."


def _within(path: str) -> str:
    """The path as the tree has it: `src/a.py` for ./src/a.py and for its absolute form; "" is the whole tree."""
    inside = posixpath.normpath(_inside(path))
    return "" if inside == "." else inside


def _absolute(path: str) -> str:
    return path if path.startswith("/") else f"{WORK}/{path}"
