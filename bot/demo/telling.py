"""How the story looks on a terminal: chapters, progress as it happens, a table of figures at the end."""

from __future__ import annotations

import re
import time

from rich.console import Console
from rich.table import Table

from bot.demo.figures import Figures


class Teller:
    """Prints as things happen; quiet when a program reads the result."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = Console(stderr=quiet, quiet=quiet, highlight=False)
        self._began = time.monotonic()
        self._told: set[str] = set()

    def chapter(self, title: str) -> None:
        self._console.print(f"\n[bold]{title}[/bold]")

    def line(self, text: str) -> None:
        seconds = time.monotonic() - self._began
        self._console.print(f"  [dim]{seconds:5.1f} s[/dim]  ", end="")
        self._console.print(text, markup=False)

    def progress(self, comment: str) -> None:
        """What is new in the sticky comment."""
        lines = comment.splitlines()
        headline = lines[1].strip("*") if len(lines) > 1 else ""
        steps = [line for line in lines if line.startswith("- [x]") or line.endswith("← now")]
        for line in [headline, *steps]:
            if line and line not in self._told:
                self._told.add(line)
                self.line(re.sub(r"^- \[x\] ", "done: ", re.sub(r"^- \[ \] (.*) ← now$", r"working on: \1", line)))

    def close(self, figures: Figures) -> None:
        """The end: cost, cache, the four trees."""
        table = Table(show_header=False, box=None, padding=(0, 2))
        table.add_row("task", figures.task)
        table.add_row("pull request", f"#{figures.pull['number']}, merged: {figures.pull['merged']}")
        table.add_row("cost", f"${figures.cost_usd:.4f} in {figures.calls} model calls")
        table.add_row(
            "cache",
            f"{figures.cache['hit_rate']:.1%} read, write amplification {figures.cache['write_amplification']:.2f}",
        )
        table.add_row("digest", figures.digest)
        for name in ("tested", "published", "approved", "merged"):
            table.add_row(f"{name} tree", getattr(figures.trees, name))
        table.add_row("time", f"{figures.seconds:.1f} s")
        self._console.print()
        self._console.print(table)
        verdict = "one tree all the way" if figures.trees.equal else "THE TREES DIFFER"
        self._console.print(f"\n  [bold]{verdict}[/bold]")

    def keep(self, hub: str, dashboard: str) -> None:
        """Where to look while everything is kept up."""
        self._console.print(f"\nGitHub's stand-in: {hub}\nDashboard: {dashboard}\nCtrl-C ends it.")

    def stuck(self, why: str, log: str) -> None:
        """The story broke off."""
        console = Console(stderr=True, highlight=False)
        console.print(f"\nThe story could not go on: {why}", markup=False)
        console.print(f"\nEnd of the log:\n{log}", markup=False)
