"""The commands that tell what was done and what it cost. As in `cli.py`, imports of what a command needs stand inside it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bot.commands.arguments import Json

if TYPE_CHECKING:
    from bot.commands.transcript import Line
    from bot.settings import Settings

_TRACED = (
    "One object: task, stage, subject, cost_usd, pull, began, ended, ending, stages, segments, steps, calls, approvals, "
    "deliveries, earlier, missing; without TASK only tasks."
)

_Task = Annotated[
    str | None,
    typer.Argument(
        metavar="TASK", help="A task's id, the beginning of one, or OWNER/REPO#NUMBER; default the newest tasks."
    ),
]


def costs(
    task: _Task = None,
    limit: Annotated[int, typer.Option(help="How many tasks.", min=1, max=1000)] = 20,
    vendors: Annotated[bool, typer.Option("--vendors", help="Price the same tokens on other vendors' terms.")] = False,
    as_json: Json = False,
) -> None:
    """Show what tasks cost, call by call with --json, from the ledger, and what summaries of files cost."""
    from bot.commands import costs as command
    from bot.settings import load

    settings = load()
    calls = asyncio.run(command.costs(settings, task, limit))
    summaries = asyncio.run(command.of_summaries(settings)) if task is None else ()
    print(command.render(calls, as_json=as_json, vendors=vendors, summaries=summaries), flush=True)


def trace(
    task: _Task = None,
    limit: Annotated[int, typer.Option(help="How many tasks, without TASK.", min=1, max=1000)] = 20,
    as_json: Annotated[bool, typer.Option("--json", help=_TRACED)] = False,
) -> None:
    """Show what happened to a task: stages, model calls, tools, checks, what was done outside, how it ended and why."""
    from bot.commands import trace as command
    from bot.commands import transcript
    from bot.settings import load

    settings = load()
    clean = transcript.cleaner(_secrets(settings))
    if task is None:
        found = asyncio.run(command.newest(settings, limit))
        _show(command.listed_json(found, clean) if as_json else transcript.listed(found, clean, _width()))
    else:
        one = asyncio.run(command.trace(settings, task))
        _show(command.as_json(one, clean) if as_json else transcript.transcript(one, clean, _width()))


def _secrets(settings: Settings) -> tuple[str, ...]:
    """Every secret of the configuration: none of them may be shown, wherever it came to stand."""
    from pydantic import SecretStr

    given = (getattr(settings, name) for name in type(settings).model_fields)
    return tuple(value.get_secret_value() for value in given if isinstance(value, SecretStr))


def _width() -> int:
    """Columns of the terminal; where there is none, those everybody has."""
    from rich.console import Console

    from bot.commands.transcript import WIDTH

    console = Console()
    return console.width if console.is_terminal else WIDTH


def _show(told: str | Sequence[Line]) -> None:
    if isinstance(told, str):
        print(told, flush=True)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in told:
        console.print(Text(line.text, style=line.style), soft_wrap=True)
