"""The order of a run: what takes longest begins first, so that no processor waits for it at the end. The rest stays shuffled."""

from __future__ import annotations

import gc
import os

import pytest

from bot.commands.proxies import spare_this_machine

spare_this_machine(os.environ)  # as `pullwright` does; stand-ins are on the loopback
gc.set_threshold(50_000)  # as `pullwright` sets it: most of what is made here is imported and stays

_FIRST = tuple(
    f"tests/scenarios/test_{name}"
    for name in ("real_projects", "crash", "lightning", "worker", "local_run", "evaluation", "intake_killed", "egress")
)


def _rank(item: pytest.Item) -> int:
    return next((rank for rank, start in enumerate(_FIRST) if item.nodeid.startswith(start)), len(_FIRST))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_rank)


def pytest_collection_finish() -> None:
    """What was imported stays: the collector need not look at it again after each test."""
    gc.collect()
    gc.freeze()
