"""What GitHub's answer to a manifest's code means."""

from __future__ import annotations

import pytest

from bot.providers.forge.failures import Failure
from bot.providers.forge.registration import Unconverted, new_app, why

PAGES = "https://github.com"
TOLD = {
    "id": 7,
    "slug": "my-agent",
    "name": "My Agent",
    "owner": {"login": "octo-org"},
    "html_url": "https://github.com/apps/my-agent",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\nx",
    "webhook_secret": "s3cret",
}


@pytest.mark.parametrize(
    ("failure", "meaning"),
    [
        (Failure(None, "ConnectError"), Unconverted.UNREACHED),
        (Failure(None, "ConnectTimeout"), Unconverted.UNREACHED),
        (Failure(403, "secondary rate limit", limited=True), Unconverted.UNREACHED),
        (Failure(None, "ReadTimeout"), Unconverted.LOST),
        (Failure(None, "RemoteProtocolError"), Unconverted.LOST),
        (Failure(502, "Server Error"), Unconverted.LOST),
        (Failure(404, "Not Found"), Unconverted.UNKNOWN),
        (Failure(403, "Forbidden"), Unconverted.REFUSED),
        (Failure(302, "https://elsewhere.example.org"), Unconverted.REFUSED),
    ],
)
def test_a_key_is_lost_only_when_github_may_have_told_it(failure: Failure, meaning: Unconverted):
    assert why(failure) is meaning


def test_secrets_of_a_new_app_are_not_printed():
    app = new_app(TOLD, PAGES)
    assert (app.private_key, app.webhook_secret) == (TOLD["pem"], "s3cret")
    assert "s3cret" not in repr(app)
    assert "PRIVATE" not in repr(app)


def test_what_a_person_reads_cannot_give_orders_to_the_terminal():
    odd = {"name": "a\x1b[2Jb", "owner": {"slug": "octo\n"}, "html_url": "javascript:alert(1)", "webhook_secret": None}
    app = new_app({**TOLD, **odd}, PAGES)
    assert (app.name, app.owner, app.webhook_secret) == ("a[2Jb", "octo", "")
    assert app.install_url == "https://github.com/apps/my-agent/installations/new"


def test_a_key_is_not_thrown_away_for_want_of_a_name():
    app = new_app({"id": 7, "pem": TOLD["pem"], "html_url": TOLD["html_url"]}, PAGES)
    assert (app.slug, app.name, app.owner) == ("my-agent", "my-agent", "")


@pytest.mark.parametrize("told", [None, [], {}, {**TOLD, "pem": ""}, {**TOLD, "id": "7"}])
def test_an_answer_without_a_key_is_no_app(told: object):
    with pytest.raises(ValueError, match="no App"):
        new_app(told, PAGES)
