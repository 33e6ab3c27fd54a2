"""`CODEOWNERS` as GitHub documents it: patterns, the last match, and lines nobody can read for certain."""

from __future__ import annotations

import time

import pytest

from bot.policy.owners import read_owners

MATCHES: tuple[tuple[str, str, bool], ...] = (
    ("*", "a/b.py", True),
    ("*.js", "a/b.js", True),
    ("*.js", "b.jsx", False),
    ("/build/logs/", "build/logs/x/y", True),
    ("/build/logs/", "a/build/logs/x", False),
    ("/build/logs/", "build/logs", False),
    ("docs/*", "docs/a.md", True),
    ("docs/*", "docs/b/a.md", False),
    ("docs/*", "x/docs/a.md", False),
    ("apps/", "apps/x", True),
    ("apps/", "a/apps/x", True),
    ("apps/", "a/apps", False),
    ("**/logs", "logs", True),
    ("**/logs", "a/b/logs/x", True),
    ("**/logs", "alogs", False),
    ("/apps/shop", "apps/shop", True),
    ("/apps/shop", "apps/shop/x", True),
    ("/apps/shop", "apps/shops", False),
    ("a/**/b", "a/b", True),
    ("a/**/b", "a/x/y/b/z", True),
    ("a/**/b", "a/xb", False),
    ("docs/**", "docs/a/b", True),
    ("docs/**", "docs", False),
    ("/*", "a", True),
    ("/*", "a/b", False),
    ("**/*", "a/b", True),
    ("a\\ b.txt", "a b.txt", True),
    ("\\*.py", "*.py", True),
    ("\\*.py", "a.py", False),
    ("f?o", "foo", True),
    ("f?o", "fo", False),
    ("a**b", "axxb", True),
    ("a**b", "a/b", False),
    ("foo", "x/foo/y", True),
    ("foo", "x/foobar", False),
    ("Foo", "foo", False),
    ("a/b", "x/a/b", False),
    ("docs/**/", "docs/x", False),
    ("docs/**/", "docs/x/y", True),
)


@pytest.mark.parametrize(("pattern", "path", "owned"), MATCHES)
def test_a_pattern_owns_what_github_says(pattern: str, path: str, owned: bool) -> None:
    owners = read_owners(f"{pattern} @ada\n")
    assert owners.faults == ()
    assert bool(owners.of(path)) is owned


def test_the_last_match_wins_and_may_say_that_nobody_owns_it() -> None:
    owners = read_owners("# ours\n* @ada\n\n*.py @bob @shop/pay # not ada\n/tests/\n")
    assert owners.of("README") == ("@ada",)
    assert owners.of("a/b.py") == ("@bob", "@shop/pay")
    assert owners.of("tests/a.py") == ()


def test_paths_are_grouped_by_their_owners() -> None:
    owners = read_owners("*.py @ada\n/pay/ @bob\n")
    assert owners.groups(["a.py", "x.txt", "b.py", "pay/a.py"]) == {
        ("@ada",): ("a.py", "b.py"),
        ("@bob",): ("pay/a.py",),
    }


@pytest.mark.parametrize(
    "line",
    ["!a @ada", "[ab].py @ada", "\\#a @ada", "/ @ada", "a @ada,@bob", "a ada", "a @shop/pay/x", "a @", "a @ada\\"],
)
def test_a_line_that_cannot_be_read_for_certain_is_a_fault_by_line(line: str) -> None:
    owners = read_owners(f"* @ada\n\n{line}\n")
    assert [fault.line for fault in owners.faults] == [3]


def test_a_byte_order_mark_and_carriage_returns_change_nothing() -> None:
    owners = read_owners("\ufeff*.py @ada\r\n/pay/ @bob\r\n")
    assert owners.faults == ()
    assert (owners.of("a.py"), owners.of("pay/x")) == (("@ada",), ("@bob",))


def test_hostile_patterns_take_no_time() -> None:
    owners = read_owners("/" + "*a" * 200 + "b @ada\n" + "**/" * 200 + "x @bob\n")
    began = time.process_time()
    assert owners.of("a" * 400) == ()
    assert owners.of("/".join("a" * 40)) == ()
    assert time.process_time() - began < 2
