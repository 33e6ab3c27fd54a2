from __future__ import annotations

from pathlib import Path

import pytest

from bot.custody.mirror import Mirror
from bot.domain.ids import RepositoryId
from tests.unit.custody.local import Clone, LocalSandbox


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "clone")


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    mirror = Mirror(tmp_path / "mirrors", RepositoryId(42))
    mirror.open()
    return mirror


@pytest.fixture
def sandbox(tmp_path: Path) -> LocalSandbox:
    return LocalSandbox(tmp_path / "sandbox")
