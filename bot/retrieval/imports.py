"""What a file imports, as it is written there, and the module paths that may be meant. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import AnyStr

_PYTHON = re.compile(
    r"[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+c?import[ \t]+(\([^)]*\)|[^\n#]+)|c?import[ \t]+([\w., \t]+))"
)
_SCRIPT = re.compile(r"""\b(?:from\s*|require\s*\(\s*|import\s*\(?\s*)["']([^"'\n]+)["']""")
_GO = re.compile(r'^\s*(?:import\s+)?(?:[\w.]+\s+)?"([\w./~-]+)"\s*$', re.MULTILINE)
_DOTTED = re.compile(r"\s*(?:import|using)\s+(?:static\s+)?([\w.]+)\s*;")
_RUST = re.compile(r"\b(?:use|mod)\s+([\w:]+)")
_INCLUDE = re.compile(r'\s*#\s*include\s*["<]([^">\n]+)[">]')
_RUBY = re.compile(r"""\brequire(?:_relative)?\s*\(?\s*["']([^"'\n]+)["']""")
_PHP = re.compile(r"""\buse\s+([\w\\]+)|\b(?:require|include)(?:_once)?\b[^"'\n]*["']([^"'\n]+)["']""")
_MOST = 300


def words_at(text: AnyStr, *needles: AnyStr) -> list[int]:
    """Where these words stand, in order. Much faster than a pattern that is tried at every character."""
    found: list[int] = []
    for needle in needles:
        at = text.find(needle)
        while at >= 0:
            found.append(at)
            at = text.find(needle, at + len(needle))
    return sorted(found)


def _lines(text: str, *needles: str) -> list[int]:
    """Where the lines begin that have one of these words."""
    found: dict[int, None] = {}
    end = -1
    for at in words_at(text, *needles):
        if at > end:
            found[text.rfind("\n", 0, at) + 1] = None
            end = text.find("\n", at)
            if end < 0:
                break
    return list(found)


def _python(text: str) -> list[str]:
    found = []
    for at in _lines(text, "import"):
        match = _PYTHON.match(text, at)
        if match is None:
            continue
        module, names, plain = match.groups()
        if plain:
            found += [part.split(" as ")[0].strip() for part in plain.split(",")]
        else:
            joint = "" if module.endswith(".") else "."
            parts = [part.split(" as ")[0].strip() for part in names.strip("()").replace("\n", ",").split(",")]
            found += [f"{module}{joint}{part}" for part in parts if part and not part.startswith("#")]
    return found


Places = Callable[..., list[int]]


def _matches(pattern: re.Pattern[str], places: Places, *needles: str) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        found = (pattern.match(text, at) for at in places(text, *needles))
        return [next(filter(None, match.groups()), "") for match in found if match]

    return read


_READERS: dict[str, Callable[[str], list[str]]] = {
    "python": _python,
    "cython": _python,
    **dict.fromkeys(
        ("javascript", "typescript", "tsx", "component"), _matches(_SCRIPT, words_at, "from", "require", "import")
    ),
    "go": _GO.findall,
    **dict.fromkeys(("java", "kotlin", "scala", "csharp"), _matches(_DOTTED, _lines, "import", "using")),
    "rust": _matches(_RUST, words_at, "use", "mod"),
    **dict.fromkeys(("c", "cpp"), _matches(_INCLUDE, _lines, "include")),
    "ruby": _matches(_RUBY, words_at, "require"),
    "php": _matches(_PHP, words_at, "use", "require", "include"),
}


def imports_of(text: str, language: str) -> tuple[str, ...]:
    """At most 300 distinct ones, in the order of the text."""
    reader = _READERS.get(language)
    return tuple(dict.fromkeys(name for name in reader(text) if name))[:_MOST] if reader else ()


def meant(folder: str, written: str, language: str) -> list[str]:
    """Module paths that an import may mean which is written in a file of this folder, the likeliest first."""
    if language in {"python", "cython"}:
        dots = len(written) - len(written.lstrip("."))
        dotted = written[dots:].replace(".", "/")
        if dots:
            above = "/".join(folder.split("/")[: len(folder.split("/")) - dots + 1])
            dotted = f"{above}/{dotted}".strip("/")
        return [dotted, posixpath.dirname(dotted)] if "/" in dotted else [dotted]
    if written.startswith("."):
        return [
            posixpath.splitext(posixpath.normpath(posixpath.join(folder, written)))[0],
            posixpath.normpath(posixpath.join(folder, written)),
        ]
    plain = written.replace("::", "/").replace("\\", "/").removeprefix("crate/")
    if language in {"java", "kotlin", "scala", "csharp", "php"}:
        return [plain.replace(".", "/")]
    stem = posixpath.splitext(plain)[0]
    return [posixpath.normpath(posixpath.join(folder, stem)), stem] if language in {"c", "cpp", "ruby"} else [stem]
