"""What a file imports, as it is written there, and the module paths that may be meant. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

_PYTHON = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+c?import[ \t]+(\([^)]*\)|[^\n#]+)|c?import[ \t]+([\w., \t]+))", re.MULTILINE
)
_SCRIPT = re.compile(r"""(?:\bfrom\s*|\brequire\s*\(\s*|\bimport\s*\(?\s*)["']([^"'\n]+)["']""")
_GO = re.compile(r'^\s*(?:import\s+)?(?:[\w.]+\s+)?"([\w./~-]+)"\s*$', re.MULTILINE)
_DOTTED = re.compile(r"^\s*(?:import|using)\s+(?:static\s+)?([\w.]+)\s*;", re.MULTILINE)
_RUST = re.compile(r"\b(?:use|mod)\s+([\w:]+)")
_INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">\n]+)[">]', re.MULTILINE)
_RUBY = re.compile(r"""\brequire(?:_relative)?\s*\(?\s*["']([^"'\n]+)["']""")
_PHP = re.compile(r"""^\s*use\s+([\w\\]+)|\b(?:require|include)(?:_once)?\b[^"'\n]*["']([^"'\n]+)["']""", re.MULTILINE)
_MOST = 300


def _python(text: str) -> list[str]:
    found = []
    for match in _PYTHON.finditer(text):
        module, names, plain = match.groups()
        if plain:
            found += [part.split(" as ")[0].strip() for part in plain.split(",")]
        else:
            joint = "" if module.endswith(".") else "."
            parts = [part.split(" as ")[0].strip() for part in names.strip("()").replace("\n", ",").split(",")]
            found += [f"{module}{joint}{part}" for part in parts if part and not part.startswith("#")]
    return found


def _matches(pattern: re.Pattern[str]) -> Callable[[str], list[str]]:
    return lambda text: [next(filter(None, match.groups()), "") for match in pattern.finditer(text)]


_READERS: dict[str, Callable[[str], list[str]]] = {
    "python": _python,
    "cython": _python,
    **dict.fromkeys(("javascript", "typescript", "tsx", "component"), _matches(_SCRIPT)),
    "go": _matches(_GO),
    **dict.fromkeys(("java", "kotlin", "scala", "csharp"), _matches(_DOTTED)),
    "rust": _matches(_RUST),
    **dict.fromkeys(("c", "cpp"), _matches(_INCLUDE)),
    "ruby": _matches(_RUBY),
    "php": _matches(_PHP),
}


def imports_of(text: str, language: str) -> tuple[str, ...]:
    """At most 300 distinct ones, in the order of the text."""
    reader = _READERS.get(language)
    return tuple(dict.fromkeys(name for name in reader(text) if name))[:_MOST] if reader else ()


def meant(importer: str, written: str, language: str) -> list[str]:
    """Module paths that a written import may mean, the likeliest first."""
    folder = posixpath.dirname(importer)
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
