"""Lock files in the formats of their tools: one version, one set of hashes."""

from __future__ import annotations

import pytest

from bot.policy.locks import pins, repinned

A, B = "a" * 64, "b" * 64
SRI_A, SRI_B = "sha512-" + "A" * 86 + "==", "sha512-" + "B" * 86 + "=="
NPM = '{"packages": {"node_modules/left-pad": {"version": "1.3.0", "integrity": "HASH"}}}'
NPM_OLD = '{"dependencies": {"left-pad": {"version": "1.3.0", "integrity": "HASH"}}}'
COMPOSER = '{"packages": [{"name": "acme/pay", "version": "2.0.0", "dist": {"type": "zip", "shasum": "HASH"}}]}'
POETRY = '[[package]]\nname = "left"\nversion = "1.3.0"\nfiles = [{file = "left.whl", hash = "sha256:HASH"}]\n'
UV = '[[package]]\nname = "left"\nversion = "1.3.0"\nwheels = [{ url = "x", hash = "sha256:HASH", size = 1 }]\n'
CARGO = '[[package]]\nname = "left"\nversion = "1.3.0"\nchecksum = "HASH"\n'
PIP = "left==1.3.0 \\\n    --hash=sha256:HASH\nother==2.0\n"
YARN = '# yarn lockfile v1\n\nleft-pad@^1.3.0:\n  version "1.3.0"\n  resolved "x"\n  integrity HASH\n'
PNPM = "packages:\n\n  left-pad@1.3.0:\n    resolution: {integrity: HASH}\n"
GO = "example.com/left v1.3.0 h1:HASH\nexample.com/left v1.3.0/go.mod h1:zzzzzzzzzzzzzzzzzzzzzzzz=\n"

FORMATS = (
    ("package-lock.json", NPM, SRI_A, SRI_B, "node_modules/left-pad 1.3.0"),
    ("npm-shrinkwrap.json", NPM_OLD, SRI_A, SRI_B, "left-pad 1.3.0"),
    ("composer.lock", COMPOSER, "a" * 40, "b" * 40, "acme/pay 2.0.0"),
    ("sub/poetry.lock", POETRY, A, B, "left 1.3.0"),
    ("uv.lock", UV, A, B, "left 1.3.0"),
    ("Cargo.lock", CARGO, A, B, "left 1.3.0"),
    ("requirements/dev.txt", PIP, A, B, "left==1.3.0"),
    ("yarn.lock", YARN, SRI_A, SRI_B, "left-pad 1.3.0"),
    ("pnpm-lock.yaml", PNPM, SRI_A, SRI_B, "left-pad@1.3.0:"),
    ("go.sum", GO, "Q" * 43 + "=", "R" * 43 + "=", "example.com/left v1.3.0"),
)


@pytest.mark.parametrize(("path", "text", "one", "other", "pin"), FORMATS, ids=[one[0] for one in FORMATS])
def test_other_bytes_under_the_same_version(path: str, text: str, one: str, other: str, pin: str) -> None:
    before, after = text.replace("HASH", one), text.replace("HASH", other)
    assert repinned(path, before, before) == ()
    assert repinned(path, before, after) == (pin,)
    newer = after.replace("1.3.0", "1.4.0").replace("2.0.0", "2.1.0")
    assert repinned(path, before, newer) == ()
    assert repinned(path, "", after) == ()


@pytest.mark.parametrize("text", ["", "{", "[" * 5000, "no lock\n\nat all", '{"packages": 7}', "[[package]]\n"])
@pytest.mark.parametrize("path", ["package-lock.json", "uv.lock", "yarn.lock", "go.sum", "requirements.txt"])
def test_what_is_no_lock_pins_nothing(path: str, text: str) -> None:
    assert pins(path, text) == {}
