"""Only bytes that GitHub signed with one of our secrets pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.stages.intake.signature import WebhookSecrets, is_signed, signature

SECRETS = WebhookSecrets("new secret", "old secret")
BODY = b'{"a": 1}'
GOOD = signature("new secret", BODY)


def test_githubs_own_example_passes():
    secrets = WebhookSecrets("It's a Secret to Everybody")
    header = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert is_signed(secrets, b"Hello, World!", header)


def test_both_secrets_pass_while_one_is_changed():
    assert is_signed(SECRETS, BODY, GOOD)
    assert is_signed(SECRETS, BODY, signature("old secret", BODY))
    assert not is_signed(WebhookSecrets("new secret"), BODY, signature("old secret", BODY))


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "sha256=",
        GOOD[:-1],
        GOOD + "0",
        GOOD.upper(),
        GOOD.replace("sha256=", "SHA256="),
        GOOD.replace("sha256=", "sha1="),
        GOOD.removeprefix("sha256="),
        f" {GOOD}",
        f"{GOOD}\n",
        f"{GOOD}, {GOOD}",
        f"{GOOD}{GOOD}",
        "sha1=" + "0" * 40,
        "sha256=" + "é" * 64,
        "sha256=" + "٣" * 64,
        "sha256=" + "0" * 64,
    ],
)
def test_any_other_header_is_refused(header: str | None):
    assert not is_signed(SECRETS, BODY, header)


def test_a_body_written_anew_is_refused():
    assert not is_signed(SECRETS, b'{"a":1}', GOOD)
    assert not is_signed(SECRETS, b"\xef\xbb\xbf" + BODY, GOOD)


@given(st.binary(max_size=64), st.text(max_size=80))
def test_no_header_makes_it_raise(body: bytes, header: str):
    assert not is_signed(SECRETS, body, header)


@pytest.mark.parametrize(("current", "previous"), [("", None), ("  ", None), ("x", ""), ("x", " ")])
def test_an_empty_secret_is_refused(current: str, previous: str | None):
    with pytest.raises(ValueError, match="must not be empty"):
        WebhookSecrets(current, previous)


def test_secrets_do_not_show():
    assert "secret" not in repr(WebhookSecrets("my secret")).lower().replace("webhooksecrets", "")
