"""What a lock file pins: name and version → the hashes of what is installed. Pure; reads the usual formats, and others by their shape.

A hash that changes while name and version stay means other bytes under the same label, which no update explains.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

Pins = Mapping[str, frozenset[str]]

_HASH = re.compile(r"\b(?:sha(?:1|256|384|512)[-:=]|h1:|md5:)[A-Za-z0-9+/=_-]{16,}|\b[0-9a-f]{64}\b")
_YARN = re.compile(r'^"?(?P<name>@?[^@"\s][^@"]*)@', re.MULTILINE)
_VERSION = re.compile(r'^\s+"?version"?:?\s+"?([^"\s]+)"?$', re.MULTILINE)
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+(?:\[[^\]]*\])?==[^\s\\;]+)", re.MULTILINE)
_GO = re.compile(r"^(\S+ v\S+) (h1:\S+)$", re.MULTILINE)


def repinned(path: str, before: str, after: str) -> tuple[str, ...]:
    """The pins, as `name version`, whose hashes are others than before; sorted."""
    old, new = pins(path, before), pins(path, after)
    return tuple(sorted(pin for pin, hashes in new.items() if old.get(pin) and hashes != old[pin]))


def pins(path: str, text: str) -> Pins:
    """What the text pins; a text that is no such file pins nothing."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for pin, digest in _read(path.rpartition("/")[2].lower(), text):
        found[pin].add(digest)
    return {pin: frozenset(hashes) for pin, hashes in found.items()}


def _read(name: str, text: str) -> Iterator[tuple[str, str]]:
    try:
        if name.endswith(".json") or name in {"composer.lock", "pipfile.lock", "flake.lock"}:
            yield from _nested("", "", json.loads(text))
        elif name in {"poetry.lock", "uv.lock", "pdm.lock", "cargo.lock"}:
            yield from _tables(tomllib.loads(text))
        elif name == "go.sum":
            yield from _GO.findall(text)
        elif name.startswith("requirements") or name.endswith(".txt"):
            yield from _blocks(text, _REQUIREMENT)
        else:
            yield from _stanzas(text)
    except (ValueError, RecursionError):
        return


def _nested(name: str, version: str, told: Any) -> Iterator[tuple[str, str]]:
    """JSON: whatever has a version owns the hashes below it, up to the next version."""
    if isinstance(told, list):
        for one in told:
            yield from _nested(name, version, one)
    elif isinstance(told, dict):
        owner = str(told.get("name") or name)
        version = str(told["version"]) if isinstance(told.get("version"), str) else version
        for key, value in told.items():
            if isinstance(value, str) and version and (_HASH.fullmatch(value) or key in {"integrity", "shasum"}):
                yield f"{owner} {version}", value
            else:
                yield from _nested(owner if key in {"dist", "source", "hashes"} else key or owner, version, value)


def _tables(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """TOML: `[[package]]` tables with name and version."""
    for package in told.get("package", ()):
        pin = f"{package.get('name')} {package.get('version')}"
        for found in _HASH.findall(json.dumps(package, default=str)):
            yield pin, found


def _blocks(text: str, heading: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """A heading names the pin; its hashes follow until the next heading."""
    places = [(found.start(), found.group(1)) for found in heading.finditer(text)]
    for (start, pin), end in zip(places, [*(start for start, _ in places[1:]), len(text)], strict=True):
        for found in _HASH.findall(text[start:end]):
            yield pin, found


def _stanzas(text: str) -> Iterator[tuple[str, str]]:
    """Paragraphs with a name, a version and hashes, as yarn and pnpm write them."""
    for stanza in re.split(r"\n\s*\n", text):
        name, version = _YARN.search(stanza), _VERSION.search(stanza)
        heading = name.group("name") if name else stanza.strip().partition("\n")[0]
        for found in _HASH.findall(stanza):
            yield f"{heading} {version.group(1) if version else ''}".strip(), found
