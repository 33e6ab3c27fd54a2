"""Which App the product is: the environment's, or the one of `app.env` under the home, never a mixture."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.commands.doctor import configuration
from bot.domain.errors import UserError
from bot.settings import APP_VARIABLES, load

FILE = "PULLWRIGHT_APP_ID='12'\nexport PULLWRIGHT_PRIVATE_KEY_FILE=\"/keys/app.pem\"\nPULLWRIGHT_WEBHOOK_SECRET='${HOME}'\nPULLWRIGHT_LABEL=robot\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of which nothing stands in the environment but its place."""
    monkeypatch.setenv("PULLWRIGHT_HOME", str(tmp_path))
    for name in APP_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def place(home: Path, text: str, mode: int = 0o600) -> Path:
    file = home / "app.env"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_the_file_names_the_app_and_nothing_else(home: Path):
    file = place(home, FILE)
    settings = load()
    assert (settings.app_id, settings.private_key_file, settings.label) == ("12", Path("/keys/app.pem"), "agent")
    assert settings.webhook_secret.get_secret_value() == "${HOME}"
    assert settings.app_file == file
    assert configuration(settings)[0].state == f"from {file}"


@pytest.mark.parametrize("variable", APP_VARIABLES)
def test_one_variable_is_enough_to_leave_the_file_alone(home: Path, monkeypatch: pytest.MonkeyPatch, variable: str):
    place(home, FILE, 0o644)
    monkeypatch.setenv(variable, "x")
    settings = load()
    given = (settings.app_id, str(settings.private_key_file or ""), settings.webhook_secret.get_secret_value())
    assert sorted(given) == ["", "", "x"]
    assert configuration(settings)[0].state == "from the environment"


def test_an_empty_variable_names_no_app(home: Path, monkeypatch: pytest.MonkeyPatch):
    place(home, FILE)
    monkeypatch.setenv("PULLWRIGHT_APP_ID", "")
    assert load().app_id == "12"


def test_without_a_file_there_is_no_app_and_doctor_says_how_to_make_one(home: Path):
    found = configuration(load())[0]
    assert found.state == "none yet"
    assert "pullwright setup" in found.hint


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_reach_is_refused(home: Path, mode: int):
    place(home, FILE, mode)
    with pytest.raises(UserError, match="not yours alone"):
        load()


def test_a_file_that_is_no_text_is_refused(home: Path):
    place(home, "").write_bytes(b"PULLWRIGHT_APP_ID=\xff\n")
    with pytest.raises(UserError, match="no text"):
        load()


def test_a_value_of_the_file_that_cannot_be_used_is_named(home: Path, monkeypatch: pytest.MonkeyPatch):
    place(home, FILE)
    monkeypatch.setenv("PULLWRIGHT_PORT", "x")
    with pytest.raises(UserError, match="PULLWRIGHT_PORT"):
        load()
