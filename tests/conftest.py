"""The order of a run: what takes longest begins first, so that no processor waits for it at the end. The rest stays shuffled."""

from __future__ import annotations

import gc

import pytest

_FIRST = tuple(
    f"tests/scenarios/{name}"
    for name in (
        *("test_real_projects", "test_crash", "test_lightning", "test_worker", "test_local_run"),
        *("test_intake_killed", "test_egress"),
        "",  # the stories that share a town: it stands idle, and costs, while others are told
    )
)


def _rank(item: pytest.Item) -> int:
    return next((rank for rank, start in enumerate(_FIRST) if item.nodeid.startswith(start)), len(_FIRST))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_rank)


def pytest_collection_finish() -> None:
    """What was imported stays: the collector need not look at it again after each test."""
    gc.collect()
    gc.freeze()
