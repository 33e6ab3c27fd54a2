"""The calls that the product can make, read off the source of the forge, and the list they are held to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from bot.providers import forge

ALLOWED = frozenset(
    {
        "GET /app",
        "GET /app/installations",
        "POST /app/installations/{}/access_tokens",
        "GET /app/hook/deliveries",
        "POST /app/hook/deliveries/{}/attempts",
        "GET /users/{}%5Bbot%5D",
        "GET /orgs/{}/teams/{}/memberships/{}",
        "GET /repositories/{}",
        "POST {graphql_url}",
        "GET /repos/{}/collaborators/{}/permission",
        "GET /repos/{}/issues/{}",
        "GET /repos/{}/issues/{}/comments",
        "POST /repos/{}/issues/{}/comments",
        "PATCH /repos/{}/issues/comments/{}",
        "POST /repos/{}/issues/comments/{}/reactions",
        "POST /repos/{}/issues/{}/labels",
        "DELETE /repos/{}/issues/{}/labels/{}",
        "GET /repos/{}/git/ref/heads/{}",
        "POST /repos/{}/git/blobs",
        "POST /repos/{}/git/trees",
        "POST /repos/{}/git/commits",
        "GET /repos/{}/git/commits/{}",
        "POST /repos/{}/git/refs",
        "PATCH /repos/{}/git/refs/heads/{}",
        "GET /repos/{}/pulls",
        "POST /repos/{}/pulls",
        "GET /repos/{}/pulls/{}",
        "PATCH /repos/{}/pulls/{}",
        "GET /repos/{}/pulls/{}/reviews",
        "GET /repos/{}/pulls/{}/reviews/{}",
        "GET /repos/{}/pulls/{}/comments",
        "PUT /repos/{}/pulls/{}/merge",
        "POST /repos/{}/check-runs",
        "PATCH /repos/{}/check-runs/{}",
        "GET /repos/{}/commits/{}/check-runs",
    }
)
"""Every call the product can make. A line is added here only with a reason a reviewer accepts."""
SETUP = frozenset({"POST /app-manifests/{}/conversions"})
"""What a person's `pullwright setup` asks for, without a credential; nothing else of the product holds what makes this call."""

GRAPHQL = "POST {graphql_url}"
_SENDERS = {"_read": ("GET", 0), "_pages": ("GET", 0), "_write": (None, 2), "Ask": (None, 1)}
_PASSED_ON = {"_read", "_pages", "_write"}
"""Inside these, the path is what their own callers gave, and those are looked at."""


class UnreadableCallError(AssertionError):
    """A call whose method or path is not written where it is made: nobody could say where it goes."""


def made() -> set[str]:
    """Every call in the room of the forge, with what varies as `{}`."""
    return {call for path in sorted(Path(forge.__path__[0]).glob("*.py")) for call in calls(path.read_text("utf-8"))}


def calls(source: str) -> Iterator[str]:
    """The calls in one text; raises UnreadableCallError."""
    module = ast.parse(source)
    constants = _assigned(module.body, {})
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name not in _PASSED_ON:
            yield from _calls_of(function, constants)


def concrete(call: str) -> tuple[str, str]:
    """Method and a path that the call could have, for asking a description what it is."""
    method, _, path = call.partition(" ")
    path = re.sub(r"^/repos/\{\}", "/repos/octo-org/hello", path).replace("/repositories/{}", "/repos/octo-org/hello")
    return method, path.replace("{}", "1")


def _calls_of(function: ast.FunctionDef | ast.AsyncFunctionDef, constants: dict[str, str]) -> Iterator[str]:
    words = constants | _assigned(ast.walk(function), constants)
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name not in _SENDERS:
            continue
        fixed, at = _SENDERS[name]
        method = fixed or _text(node.args[at - 1], words)
        path = _text(node.args[at], words)
        if not re.fullmatch(r"GET|POST|PUT|PATCH|DELETE", method) or not path.startswith(("/", "{graphql_url}")):
            raise UnreadableCallError(f"{function.name}: {ast.unparse(node)}")
        yield f"{method} {path if name == 'Ask' else '/repos/{}' + path}"


def _assigned(nodes: Iterable[ast.AST], words: dict[str, str]) -> dict[str, str]:
    """What each name is set to, where that can be told."""
    set_here = [node for node in nodes if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)]
    return {node.targets[0].id: text for node in set_here if (text := _text(node.value, words))}  # type: ignore[attr-defined]


def _text(node: ast.expr, words: dict[str, str]) -> str:
    """What the expression says, with `{}` for what varies; empty when that cannot be told."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, words) or "{}" for part in node.values)
    if isinstance(node, ast.FormattedValue):
        known = _text(node.value, words)
        return known if known.startswith("/") else ""
    if isinstance(node, ast.Attribute) and node.attr == "graphql_url":
        return "{graphql_url}"
    return words.get(node.id, "") if isinstance(node, ast.Name) else ""
