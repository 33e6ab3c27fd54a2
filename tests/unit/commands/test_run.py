"""A change of a local run is approved by its digest, and by nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bot.commands.run import _approved

DIGEST = "0123456789ab" + "f" * 52


class Screen:
    """Somebody who types these lines, then nothing."""

    def __init__(self, *lines: str) -> None:
        self.lines, self.shown, self.asked = list(lines), "", 0

    async def ask(self, question: str) -> str:
        self.asked += 1
        return self.lines.pop(0) if self.lines else ""

    def show(self, text: str) -> None:
        self.shown += text + "\n"


@pytest.mark.parametrize(
    ("typed", "approved", "asked"),
    [
        (("0123456789ab",), True, 1),
        ((DIGEST,), True, 1),
        (("0123456789ac", "0123456789ab"), True, 2),
        (("yes", "0123456789", "0123456789ab"), True, 3),
        (("no", "no", "no", "0123456789ab"), False, 3),
        (("0123456789ac",), False, 2),
        ((), False, 1),
    ],
)
async def test_only_its_digest_approves_a_change(typed: tuple[str, ...], approved: bool, asked: int):
    screen = Screen(*typed)
    proposal = SimpleNamespace(digest=DIGEST, branch="agent/run-1")
    assert await _approved(cast(Any, screen), cast(Any, proposal)) is approved
    assert screen.asked == asked
    assert ("Nothing was committed." in screen.shown) is not approved
