"""The order of a run: what takes longest begins first, so that no processor waits for it at the end. The rest stays shuffled."""

from __future__ import annotations

import pytest

_FIRST = ("tests/scenarios/test_real_projects.py", "tests/scenarios/test_lightning.py", "tests/scenarios/")


def _rank(item: pytest.Item) -> int:
    return next((rank for rank, start in enumerate(_FIRST) if item.nodeid.startswith(start)), len(_FIRST))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_rank)
