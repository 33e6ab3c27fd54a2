"""The command that creates the App. As in `cli.py`, imports of what it needs stand inside it."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated

import typer

from bot.commands.arguments import Port


def setup(
    webhook_url: Annotated[
        str,
        typer.Argument(
            metavar="WEBHOOK_URL",
            help="Where GitHub reaches `pullwright serve`: https://bot.example.org/webhook; a tunnel will do.",
        ),
    ],
    organization: Annotated[
        str, typer.Option(metavar="ORG", help="The organisation that owns the App; default you yourself.")
    ] = "",
    name: Annotated[str, typer.Option(help="The App's name; it has to be free on GitHub.")] = "Pullwright",
    port: Port = 0,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Last, one object: app_id, slug, name, owner, html_url, install_url, key_file, env_file; the rest goes to standard error.",
        ),
    ] = False,
) -> None:
    """Create the GitHub App: you press one button on GitHub; its key is kept under PULLWRIGHT_HOME, where every command finds it."""
    from bot.commands import registering
    from bot.settings import load

    settings = load()
    request = registering.requested(settings, webhook_url, name, organization, port)
    try:
        made = registering.run(settings, request, partial(print, file=sys.stderr if as_json else None, flush=True))
    except KeyboardInterrupt:
        sys.stderr.write(
            "pullwright: stopped; no App was set up here. If GitHub made one meanwhile, delete it there.\n"
        )
        sys.exit(130)
    print(registering.told(made, request, as_json=as_json), flush=True)
