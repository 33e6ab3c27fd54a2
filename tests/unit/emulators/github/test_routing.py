"""Routes and the permission table say the same, and every path finds its own route."""

from __future__ import annotations

import re

import pytest

from bot.emulators.github.handlers import HANDLERS
from bot.emulators.github.permissions import TABLE
from bot.emulators.github.router import Router

ROUTER = Router(HANDLERS)


def _example(template: str) -> str:
    path = template.replace("{ref*}", "heads/agent/1-x").replace("{branch*}", "agent/1-x")
    path = path.replace("{path*}", "src/a.py").replace("{basehead*}", "main...agent/1-x").replace("{sha*}", "main")
    return re.sub(r"\{\w+\}", "7", path)


def test_every_route_has_exactly_one_rule():
    assert HANDLERS.keys() == TABLE.keys()


@pytest.mark.parametrize("key", sorted(HANDLERS))
def test_a_path_finds_the_route_it_was_made_from(key):
    method, template = key.split(" ", 1)
    found = ROUTER.find(method, _example(template))
    assert found
    assert found.key == key


def test_levels_and_permissions_are_spelled_right():
    names = {"metadata", "contents", "issues", "pull_requests", "checks", "statuses", "administration", "members"}
    names |= {"organization_administration"}
    for rule in TABLE.values():
        for need in rule.token:
            name, level = need.split(":")
            assert name in names
            assert level in {"read", "write"}


def test_encoded_slashes_stay_inside_their_segment():
    found = ROUTER.find("GET", "/repos/o/r/labels/area%2Fcore")
    assert found
    assert found.values["name"] == "area/core"


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("POST", "/repos/o/r"), ("GET", "/repos/o/r/"), ("GET", "/repos/o"), ("PUT", "/app")],
)
def test_anything_else_is_unknown(method, path):
    assert ROUTER.find(method, path) is None
