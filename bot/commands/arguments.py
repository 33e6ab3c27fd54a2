"""Arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Port = Annotated[int, typer.Option(help="0 for one of its own choosing.", min=0, max=65_535)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="A git repository (its HEAD is read) or a plain folder.")
]
Query = Annotated[str, typer.Argument(metavar="QUERY", help="What is looked for; `-` reads standard input.")]
Policies = Annotated[Path | None, typer.Option("--policies", help="Directory; default the configured one.")]
Repository = Annotated[str, typer.Argument(help="An https address, or the directory of a local clone.")]
Commit = Annotated[str, typer.Argument(help="The whole id of the commit.")]
