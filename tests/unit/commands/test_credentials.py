"""A new App's credentials: room for them first, then both files, for nobody else's eyes."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from dotenv import dotenv_values

from bot.commands.credentials import reserved
from bot.domain.errors import UserError


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_what_is_kept_reads_alike_in_a_shell_and_in_python(tmp_path: Path):
    home = tmp_path / "my home"
    with reserved(home) as drafts:
        assert all(path.stat().st_mode & 0o777 == 0o600 for path in home.iterdir())
        drafts.keep(7, "KEY\n", 'a"b #c')
    assert names(home) == ["app.env", "app.pem"]
    assert home.stat().st_mode & 0o777 == 0o700
    assert (home / "app.pem").read_text() == "KEY\n"
    wanted = {
        "PULLWRIGHT_APP_ID": "7",
        "PULLWRIGHT_PRIVATE_KEY_FILE": str(home / "app.pem"),
        "PULLWRIGHT_WEBHOOK_SECRET": 'a"b #c',
    }
    assert dotenv_values(home / "app.env") == wanted
    words = shlex.split((home / "app.env").read_text(), comments=True)
    assert dict(word.split("=", 1) for word in words) == wanted


def test_nothing_is_left_when_nothing_came(tmp_path: Path):
    with reserved(tmp_path):
        assert len(names(tmp_path)) == 2
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["app.pem", "app.env"])
def test_an_app_that_is_there_is_never_touched(tmp_path: Path, name: str):
    (tmp_path / name).symlink_to("gone")
    with pytest.raises(UserError, match=name), reserved(tmp_path):
        raise AssertionError
    assert names(tmp_path) == [name]


@pytest.mark.parametrize("odd", ["a'b", "a$HOME", "a\\b", "a\nb", "a`b"])
def test_a_home_that_no_shell_could_read_back_is_refused(tmp_path: Path, odd: str):
    with pytest.raises(UserError, match="shell"), reserved(tmp_path / odd):
        raise AssertionError
    assert names(tmp_path) == []


def test_a_home_that_cannot_be_is_refused(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be written"), reserved(tmp_path / "file" / "home"):
        raise AssertionError


def test_a_secret_that_cannot_be_quoted_does_not_cost_the_key(tmp_path: Path):
    with reserved(tmp_path) as drafts:
        with pytest.raises(ValueError, match="quoted"):
            drafts.keep(7, "KEY\n", "a'b")
        (kept,) = drafts.written
    assert [path for path in tmp_path.iterdir() if path.stat().st_size] == [kept]
    assert kept.read_text() == "KEY\n"


def test_without_a_secret_none_is_claimed(tmp_path: Path):
    with reserved(tmp_path) as drafts:
        drafts.keep(7, "KEY\n", "")
    assert "PULLWRIGHT_WEBHOOK_SECRET" not in dotenv_values(tmp_path / "app.env")
    assert os.path.getsize(tmp_path / "app.pem") == 4  # noqa: PTH202 - not the room that was held
