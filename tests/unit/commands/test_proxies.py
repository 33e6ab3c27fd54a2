"""Which way to the outside, where the environment names proxies; and that this machine is always asked straight."""

from __future__ import annotations

import pytest

from bot.commands.doctor import proxy
from bot.commands.proxies import spare_this_machine
from bot.domain.errors import UserError
from bot.settings import Settings, load

WAY = "http://user:secret@proxy.corp:3128"


@pytest.fixture(autouse=True)
def _no_proxy_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.parametrize(
    ("address", "without", "through"),
    [
        ("https://api.github.com", "", True),
        ("http://github.corp/api/v3", "", False),
        ("https://127.0.0.1:8080", "", False),
        ("https://[::1]:8080", "", False),
        ("https://localhost:8080", "", False),
        ("https://github.corp", "corp", False),
        ("https://github.corp", ".corp", False),
        ("https://github.corp", "*.corp", False),
        ("https://github.corp", "example.org, GitHub.Corp", False),
        ("https://githubcorp", "corp", True),
        ("https://api.github.com", "*", False),
        ("https://10.1.2.3", "10.0.0.0/8", False),
        ("https://11.1.2.3", "10.0.0.0/8", True),
        ("https://api.github.com", " , ", True),
    ],
)
def test_the_way_to_an_address(address: str, without: str, through: bool):
    assert Settings(https_proxy=WAY, no_proxy=without).proxy(address) == (WAY if through else None)


def test_the_usual_names_count_in_both_spellings(monkeypatch: pytest.MonkeyPatch):
    assert load().proxy("https://api.github.com") is None
    monkeypatch.setenv("all_proxy", "proxy.corp:3128")
    assert load().proxy("https://api.github.com") == "http://proxy.corp:3128"
    monkeypatch.setenv("HTTPS_PROXY", WAY)
    assert load().proxy("https://api.github.com") == WAY
    assert load().proxy("http://github.corp") == "http://proxy.corp:3128"
    assert "user:secret" not in repr(load())


def test_another_kind_of_proxy_is_refused_where_it_would_be_needed():
    settings = Settings(all_proxy="socks5://proxy.corp:1080", no_proxy="github.corp")
    assert settings.proxy("https://github.corp") is None
    with pytest.raises(UserError, match=r"not HTTP, and api\.github\.com"):
        settings.proxy("https://api.github.com")
    (found,) = proxy(settings)
    assert found.blocks


def test_doctor_names_the_way_without_its_password():
    told = [found.state for found in proxy(Settings(https_proxy=WAY, no_proxy="anthropic.com"))]
    assert told == ["https://api.github.com through proxy.corp:3128"]
    assert proxy(Settings(https_proxy="", all_proxy="")) == ()


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({}, None),
        ({"NO_PROXY": "corp"}, None),
        ({"https_proxy": WAY}, "127.0.0.1,localhost,::1"),
        (
            {"ALL_PROXY": WAY, "NO_PROXY": "corp, localhost", "no_proxy": "example.org"},
            "corp,localhost,example.org,127.0.0.1,::1",
        ),
    ],
)
def test_clients_are_told_to_ask_this_machine_straight(environment: dict[str, str], told: str | None):
    before = dict(environment)
    spare_this_machine(environment)
    assert environment == (before if told is None else {**before, "NO_PROXY": told, "no_proxy": told})
