"""GitHub's own description of its API, as the judge of what a stand-in takes and answers.

The description (`tests/fixtures/github`) is of API version 2022-11-28. What 2026-03-10 takes away is the table `GONE`: there the
fields must be absent, everything else is unchanged. An answer may hold nothing that is not described: closer than clients need, and
what keeps the stand-in from inventing.
"""

from __future__ import annotations

import functools
import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import jsonschema_rs

FIXTURES = Path(__file__).parents[1] / "fixtures" / "github"
NEW_VERSION = "2026-03-10"
OURS = "pullwright"
_PULLS, _ISSUES = ("pull-request", "pull-request-simple"), ("issue", "nullable-issue")
_REPOSITORIES = ("repository", "full-repository", "minimal-repository", "nullable-repository")
GONE: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(_PULLS, frozenset({"merge_commit_sha", "assignee"})),
    **dict.fromkeys(_ISSUES, frozenset({"assignee"})),
    **dict.fromkeys(_REPOSITORIES, frozenset({"has_downloads"})),
}
"""Fields that API version 2026-03-10 no longer has (`specs/github.md` §1.1, and checked against githubkit's models)."""

EVERYWHERE = frozenset({301, 400, 401, 403, 404, 413, 422})
"""What any path may answer, described there or not: moved, unknown API version, bad credentials, no permission, not visible, too
large, does not fit."""
NEWER = {"archived_at": {"type": ["string", "null"]}, "archived_by": {}}
"""Fields of a label in the newer snapshot that githubkit's models were made from, which require them."""

REFUSALS = ("basic-error", "validation-error", "validation-error-simple")
BESIDE = re.compile(
    r"/(?:api/)?graphql|/[^/]+/[^/]+\.git/.*|/organizations/[^/]+/settings/.*|/settings/.*|/_stand-in/.*"
)
"""What the stand-in serves that is no REST: GraphQL, git, GitHub's web pages, its own control surface."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer, as they were on the wire. `path` is raw, without the query."""

    method: str
    path: str
    query: str
    asked: bytes
    status: int
    agent: str
    accept: str
    media_type: str
    version: str
    answered: bytes


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path, with references to shared parts followed."""

    method: str
    path: str
    told: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


class Description:
    """The trimmed description; `faults` says in what an exchange differs from it."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.told = told
        self.operations = [
            Operation(method.upper(), path, one)
            for path, methods in told["paths"].items()
            for method, one in methods.items()
        ]
        self._patterns = sorted(
            ((_pattern(one, self._parameters(one)), one) for one in self.operations),
            key=lambda pair: (".+" in pair[0], pair[1].path.endswith("}"), pair[1].path.count("{")),
        )

    def find(self, method: str, path: str) -> Operation | None:
        """The operation that a call is of, the one with the most fixed words first."""
        fits = (one for pattern, one in self._patterns if one.method == method and re.fullmatch(pattern, path))
        return next(fits, None)

    def faults(self, seen: Exchange) -> list[str]:
        """Empty when the description allows the exchange."""
        path = plain(seen.path)
        if BESIDE.fullmatch(path):
            return []
        operation = self.find(seen.method, path)
        if operation is None:
            unknown = f"{seen.method} {path}: {seen.status} for a path nobody describes"
            return [] if seen.status in EVERYWHERE else [unknown]
        found = [*self._answer_faults(operation, seen)]
        if seen.status < 300:
            found += [*self._question_faults(operation, seen)]
        return [f"{operation.name}, {seen.status}: {fault}" for fault in found]

    def _answer_faults(self, operation: Operation, seen: Exchange) -> Iterator[str]:
        told = self._followed(operation.told["responses"].get(str(seen.status)))
        if told is None and seen.status not in EVERYWHERE:
            yield "this status is not described here"
        kinds = (told or {}).get("content", {})
        if not kinds and seen.status >= 300 and seen.status != 304:
            refusals = ({"$ref": f"#/components/schemas/{name}"} for name in REFUSALS)
            kinds = {"application/json": {"schema": {"anyOf": list(refusals)}}}
        media_type = seen.media_type.partition(";")[0].strip()
        if not kinds:
            if seen.answered.strip() not in {b"", b"{}"}:
                yield f"a body where none is described: {seen.answered[:80]!r}"
        elif media_type not in kinds and not (
            media_type.startswith("application/vnd.github.") and media_type in seen.accept
        ):
            yield f"media type {media_type!r} is not described here"
        elif media_type == "application/json":
            new, exact = seen.version == NEW_VERSION, seen.status < 300
            yield from self._misfits(kinds[media_type]["schema"], seen.answered, new=new, exact=exact)

    def _question_faults(self, operation: Operation, seen: Exchange) -> Iterator[str]:
        """GitHub ignores a field that it does not know; from the product it would be a mistake."""
        exact = seen.agent == OURS
        body = operation.told.get("requestBody")
        if body is not None and (seen.asked or body.get("required")):
            schema = body["content"]["application/json"]["schema"]
            yield from self._misfits(schema, seen.asked or b"null", new=False, exact=exact)
        if body is None and seen.asked:
            yield f"a request body where none is described: {seen.asked[:80]!r}"
        known = {one["name"]: one["schema"] for one in self._parameters(operation) if one["in"] == "query"}
        for name, text in parse_qsl(seen.query, keep_blank_values=True):
            if name not in known:
                yield f"query parameter {name!r} is not described"
            else:
                value = json.dumps(text) if known[name].get("type") not in {"integer", "boolean"} else text
                yield from self._misfits(known[name], value.encode(), new=False, exact=exact)

    def _misfits(self, schema: Mapping[str, Any], text: bytes, *, new: bool, exact: bool) -> Iterator[str]:
        try:
            value = json.loads(text)
        except ValueError:
            yield f"not JSON: {text[:80]!r}"
            return
        for error in self._validator(json.dumps(schema, sort_keys=True), new, exact).iter_errors(value):
            yield f"/{'/'.join(map(str, error.instance_path))}: {error.message[:300]}"

    @functools.cache  # noqa: B019 - one description for the whole run
    def _validator(self, schema: str, new: bool, exact: bool) -> jsonschema_rs.Validator:
        writer = _Writer(self.told["components"]["schemas"], gone=GONE if new else {}, exact=exact)
        whole = writer.whole(json.loads(schema))
        return jsonschema_rs.Draft202012Validator(
            whole, validate_formats=True, formats={"email": _looks_like_an_address}
        )

    def webhook_faults(self, event: str, payload: Mapping[str, Any]) -> list[str]:
        """In what a payload differs from the description of its event and action."""
        action = payload.get("action")
        name = "-".join([event, *([action] if action else [])]).replace("_", "-")
        told = self.told["webhooks"].get(name)
        if told is None:
            return [f"{name}: nobody describes this event"]
        schema = told["post"]["requestBody"]["content"]["application/json"]["schema"]
        return [f"{name}: {one}" for one in self._misfits(schema, json.dumps(payload).encode(), new=False, exact=False)]

    def _followed(self, told: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        while told is not None and "$ref" in told:
            _, _, kind, name = told["$ref"].split("/")
            told = self.told["components"][kind][name]
        return told

    def _parameters(self, operation: Operation) -> list[Mapping[str, Any]]:
        return [one for raw in operation.told.get("parameters", ()) if (one := self._followed(raw))]


def _looks_like_an_address(text: str) -> bool:
    """GitHub's bots have addresses with brackets, which the standard does not allow."""
    return "@" in text


def plain(path: str) -> str:
    """Without the prefix of an own server, and with a repository named by number, as redirects do, named by owner and name."""
    return re.sub(r"^/repositories/\d+(?=/|$)", "/repos/by/number", path.removeprefix("/api/v3"))


def _pattern(operation: Operation, parameters: list[Mapping[str, Any]]) -> str:
    spans = {one["name"] for one in parameters if one.get("x-multi-segment")}
    parts = re.split(r"\{(\w+)\}", operation.path)
    return "".join(
        re.escape(part) if at % 2 == 0 else (".+" if part in spans else "[^/]+") for at, part in enumerate(parts)
    )


class _Writer:
    """OpenAPI 3.0 schemas as JSON Schema 2020-12. Each component comes open (inside `allOf`) or closed to fields not described."""

    def __init__(self, components: Mapping[str, Any], *, gone: Mapping[str, frozenset[str]], exact: bool) -> None:
        self._components = components
        self._gone = gone
        self._exact = exact
        self._written: dict[str, Any] = {}

    def whole(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.schema(schema, closed=self._exact), "$defs": self._written}

    def schema(self, told: Any, *, closed: bool) -> Any:
        if not isinstance(told, dict):
            return told
        if "$ref" in told:
            return self._reference(told["$ref"].rpartition("/")[2], closed=closed)
        made = {
            key: value for key, value in told.items() if key not in {"nullable", "discriminator", "title", "default"}
        }
        for key in ("items", "additionalProperties", "not"):
            if isinstance(made.get(key), dict):
                made[key] = self.schema(made[key], closed=self._exact)
        if "properties" in made:
            made["properties"] = {
                name: self.schema(one, closed=self._exact) for name, one in made["properties"].items()
            }
        mixed = "allOf" in made or ("properties" in made and any(key in made for key in ("anyOf", "oneOf")))
        for key in ("allOf", "anyOf", "oneOf"):
            if key in made:
                made[key] = [self.schema(one, closed=closed and not mixed) for one in made[key]]
        if "oneOf" in made and not self._exact:
            made["anyOf"] = made.pop("oneOf")  # open forms overlap
        if closed and {"color", "default", "node_id"} <= made.get("properties", {}).keys():
            made["properties"] = {**made["properties"], **NEWER}
        if closed and mixed:
            made["unevaluatedProperties"] = False
        elif closed and "properties" in made:
            made.setdefault("additionalProperties", False)
        return {"anyOf": [made, {"type": "null"}]} if told.get("nullable") else made

    def _reference(self, name: str, *, closed: bool) -> dict[str, str]:
        key = f"{'closed' if closed else 'open'}:{name}"
        if key not in self._written:
            self._written[key] = {}
            self._written[key] = self.schema(self._without(name), closed=closed)
        return {"$ref": f"#/$defs/{key}"}

    def _without(self, name: str) -> Mapping[str, Any]:
        """The component less what the asked-for version no longer has."""
        told: Mapping[str, Any] = self._components[name]
        gone = self._gone.get(name, frozenset())
        if not gone:
            return told
        kept = {key: one for key, one in told["properties"].items() if key not in gone}
        return {**told, "properties": kept, "required": [key for key in told["required"] if key not in gone]}


@functools.cache
def description() -> Description:
    return Description(json.loads(gzip.decompress((FIXTURES / "api.json.gz").read_bytes())))


@functools.cache
def permissions() -> Mapping[str, tuple[str, ...]]:
    """Route with `{}` for what varies → the permissions of which one suffices, as GitHub lists them."""
    told = json.loads((FIXTURES / "permissions.json").read_text("utf-8"))
    return {route: tuple(names) for route, names in told.items()}
