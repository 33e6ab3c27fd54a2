"""The commands that tell what was done and what it cost, or what models would do. As in `cli.py`, imports of what a command needs stand inside it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
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


def evaluate(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A clone; the history of what is checked out is used.")
    ],
    commits: Annotated[int, typer.Option(help="How many tasks to cut.", min=1, max=1000)] = 5,
    models: Annotated[
        str, typer.Option(metavar="A,B", help="Coder models; default the configured coder's and planner's.")
    ] = "",
    budget_usd: Annotated[
        float | None, typer.Option(help="Dollars for everything, with what --keep holds.", min=0, max=1_000_000)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before spending.")] = False,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep each pair there; the next run goes on with what is missing."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare models on your own history: tasks cut from commits with tests, worked from the parent, judged by the commit's tests.
    Exit 1 when a pair was not judged."""
    from bot.commands import evaluate as command
    from bot.domain.errors import UserError
    from bot.domain.money import from_dollars
    from bot.settings import load

    def agreed(offer: str) -> bool:
        typer.echo(offer, err=True)
        try:
            return yes or typer.confirm("Go on?", err=True)
        except typer.Abort:
            raise UserError("Nobody said whether to go on; nothing was spent.", "`--yes` does not ask.") from None

    request = command.Request(
        directory,
        lambda line: print(line, flush=True),
        agreed,
        commits,
        tuple(dict.fromkeys(name.strip() for name in models.split(",") if name.strip())),
        from_dollars(budget_usd) if budget_usd is not None else None,
        keep,
        as_json,
    )
    sys.exit(command.run(load(), request))


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
