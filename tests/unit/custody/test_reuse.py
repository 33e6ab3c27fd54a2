"""Who finds what was kept: the name is all that tells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.custody.reuse import MANY_FILES, WEEK_SECONDS, SetUp, prefix, snapshot_name
from bot.domain.change import FileMode, TreeEntry
from bot.domain.ids import BlobId, RepositoryId

NOW = 10 * WEEK_SECONDS + 5.0
SETUP = SetUp(RepositoryId(7), "acme/shop", "pullwright", ("pip install -r requirements.txt",))
FILES = (
    TreeEntry("requirements.txt", FileMode.REGULAR, BlobId("1" * 40)),
    TreeEntry("app.py", FileMode.REGULAR, BlobId("2" * 40)),
)


def name(setup: SetUp = SETUP, files: tuple[TreeEntry, ...] = FILES, now: float = NOW) -> str | None:
    return snapshot_name(setup, files, now)


def test_another_file_of_the_same_dependencies_changes_nothing() -> None:
    other = (FILES[0], TreeEntry("app.py", FileMode.EXECUTABLE, BlobId("3" * 40)), replace(FILES[1], path="new.py"))
    assert name(files=other) == name()
    assert name(now=NOW + 100) == name()


@pytest.mark.parametrize(
    "setup",
    [
        replace(SETUP, repository=RepositoryId(8)),
        replace(SETUP, owner="acme/other"),
        replace(SETUP, template="base"),
        replace(SETUP, commands=("pip install -r requirements.txt", "npm ci")),
        replace(SETUP, files=("app.py",)),
    ],
)
def test_another_repository_template_or_command_has_another_name(setup: SetUp) -> None:
    assert name(setup) != name()


def test_changed_dependencies_and_another_week_have_another_name() -> None:
    assert name(files=(replace(FILES[0], blob=BlobId("4" * 40)), FILES[1])) != name()
    assert name(now=NOW + WEEK_SECONDS) != name()


def test_only_repository_owner_and_template_are_in_the_prefix() -> None:
    assert prefix(SETUP) == prefix(replace(SETUP, commands=()))
    assert len({prefix(replace(SETUP, **change)) for change in ({}, {"owner": "x"}, {"template": "x"})}) == 3  # type: ignore[arg-type]
    assert prefix(replace(SETUP, owner="a\0" + "7")) != prefix(SETUP)
    assert str(name()).startswith(prefix(SETUP))


def test_without_a_set_up_only_a_large_tree_is_worth_keeping() -> None:
    plain = replace(SETUP, commands=())
    many = tuple(replace(FILES[1], path=f"f{number}") for number in range(MANY_FILES))
    assert name(plain) is None
    assert name(plain, many) is not None
    assert name(plain, many[::-1] + FILES) == name(plain, many), "whatever its files: only what differs has to cross"
