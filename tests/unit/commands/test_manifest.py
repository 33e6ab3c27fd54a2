"""What `pullwright setup` asks GitHub for, and what it refuses before it does."""

from __future__ import annotations

import pytest

from bot.commands import manifest
from bot.domain.errors import UserError


@pytest.mark.parametrize(
    ("given", "url", "origin"),
    [
        ("https://bot.example.org", "https://bot.example.org/webhook", "https://bot.example.org"),
        ("https://bot.example.org:8443/", "https://bot.example.org:8443/webhook", "https://bot.example.org:8443"),
        ("http://bot.example.org/hooks/a?b=c", "http://bot.example.org/hooks/a?b=c", "http://bot.example.org"),
        ("https://8.8.8.8", "https://8.8.8.8/webhook", "https://8.8.8.8"),
        ("https://[2606:4700::1111]/x", "https://[2606:4700::1111]/x", "https://[2606:4700::1111]"),
    ],
)
def test_an_address_without_a_path_is_that_of_the_webhook(given: str, url: str, origin: str):
    assert manifest.webhook(given, public=True) == manifest.Webhook(url, origin)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "bot.example.org",
        "ftp://bot.example.org",
        "https://",
        "https:///webhook",
        "https://u@bot.example.org",
        "https://u:p@bot.example.org",
        "https://bot.example.org:99999",
        "https://bot.example.org:x",
        "https://[::1",
        "https://bot.example.org/#a",
        "https://bot.example.org\\@evil.example.org",
        "https://bot.example.org/a b",
        "https://bot.exam\nple.org",
        "https://bücher.example.org",
    ],
)
@pytest.mark.parametrize("public", [True, False])
def test_what_is_no_address_of_a_webhook_is_refused(given: str, public: bool):
    with pytest.raises(UserError):
        manifest.webhook(given, public=public)


@pytest.mark.parametrize(
    "host",
    [
        *(
            "localhost",
            "LOCALHOST.",
            "bot",
            "a.localhost",
            "bot.local",
            "bot.internal",
            "127.0.0.1",
            "127.1",
            "0x7f000001",
        ),
        *("2130706433", "10.1.2.3", "192.168.0.1", "172.16.9.9", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("[::1]", "[fd00::1]", "[fe80::1]", "[::ffff:127.0.0.1]"),
    ],
)
def test_github_itself_cannot_reach_this_machine_but_a_server_beside_it_can(host: str):
    with pytest.raises(UserError, match="public internet") as caught:
        manifest.webhook(f"http://{host}/webhook", public=True)
    assert "tunnel" in caught.value.hint
    assert manifest.webhook(f"http://{host}/webhook", public=False).url == f"http://{host}/webhook"


@pytest.mark.parametrize("name", ["", "  ", "a" * 35, "a\nb", "\x1b[31m"])
def test_a_name_that_github_refuses_is_refused(name: str):
    with pytest.raises(UserError, match="34"):
        manifest.app_name(name)
    assert manifest.app_name(f" {'ä' * 34} ") == "ä" * 34


@pytest.mark.parametrize("owner", ["a/b", "-a", "a b", "a" * 40, "..", "a?b"])
def test_an_organisation_that_cannot_be_is_refused(owner: str):
    with pytest.raises(UserError, match="organisation"):
        manifest.organisation(owner)
    assert [manifest.organisation(one) for one in ("", "octo-org")] == ["", "octo-org"]


def test_the_form_goes_to_the_owners_settings():
    assert manifest.form_address("https://github.com", "", "s&1") == "https://github.com/settings/apps/new?state=s%261"
    assert (
        manifest.form_address("https://git.example.org", "octo-org", "s")
        == "https://git.example.org/organizations/octo-org/settings/apps/new?state=s"
    )


def test_the_manifest_is_private_and_asks_for_what_the_file_says():
    hook = manifest.Webhook("https://bot.example.org/webhook", "https://bot.example.org")
    assert manifest.manifest(({"contents": "write"}, ("push",)), hook, "Mine", 4000) == {
        "name": "Mine",
        "url": "https://bot.example.org",
        "hook_attributes": {"url": "https://bot.example.org/webhook", "active": True},
        "redirect_url": "http://127.0.0.1:4000/created",
        "public": False,
        "default_permissions": {"contents": "write"},
        "default_events": ["push"],
    }


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("http://127.0.0.1:4000/created?code=c&state=s", ("c", "s")),
        ("  http://localhost/created?state=s&code=c \r", ("c", "s")),
        ("http://127.0.0.1:4000/created?code=c", None),
        ("http://127.0.0.1:4000/created?code=c&code=d&state=s", None),
        ("http://127.0.0.1:4000/other?code=c&state=s", None),
        ("http://[::1/created?code=c&state=s", None),
        ("", None),
    ],
)
def test_an_address_that_is_pasted_has_a_code_and_a_state(line: str, found: tuple[str, str] | None):
    assert manifest.pasted(line) == found
