"""What an operator is told about this machine and the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.commands.doctor import configuration, egress, isolation
from bot.settings import Settings

LESS = "Limits on memory are not enforced by a control group."


def test_the_level_is_told_in_words_and_what_is_missing_blocks_nothing():
    full, weak = isolation(""), isolation(LESS)
    assert "shares this machine's kernel" in full.state
    assert "bounded by control groups" in full.state
    assert (full.blocks, weak.blocks) == (False, False)
    assert "weaker" in weak.state
    assert LESS in weak.hint


@pytest.mark.parametrize(
    ("always", "setup", "said", "hint"),
    [
        ("", "", "closed", ""),
        ("files.example.org", "", "reach files.example.org", ""),
        ("", "mirror.example.org:8443", "during set-up also mirror.example.org:8443", ""),
        ("files.example.org, GitHub.com", "", "reach files.example.org, GitHub.com", "upload to github.com:443"),
        ("", "bucket.s3.amazonaws.com:443", "set-up", "upload to bucket.s3.amazonaws.com:443"),
        ("notgithub.com", "", "reach notgithub.com", ""),
    ],
)
def test_hosts_that_take_uploads_are_named(tmp_path: Path, always: str, setup: str, said: str, hint: str):
    found = egress(Settings(home=tmp_path, egress=always, setup_egress=setup))
    assert said in found.state
    assert hint in found.hint
    assert bool(found.hint) is bool(hint)
    assert not found.blocks


def test_an_entry_that_is_no_host_blocks(tmp_path: Path):
    assert egress(Settings(home=tmp_path, egress="*.example.org")).blocks


def test_a_key_that_cannot_sign_blocks(tmp_path: Path):
    key = tmp_path / "key.pem"
    key.write_text("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n")
    (found,) = [
        row for row in configuration(Settings(home=tmp_path, private_key_file=key)) if "KEY_FILE" in row.subject
    ]
    assert found.blocks
    assert "damaged" in found.state
