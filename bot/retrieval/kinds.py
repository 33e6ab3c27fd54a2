"""What sort of file a path is. Tests, vendored, generated and minified files are known, and ranked apart. Pure."""

from __future__ import annotations

import re
from enum import StrEnum

from bot.retrieval.languages import DATA, PROSE, language_of


class Kind(StrEnum):
    CODE = "code"
    TEST = "test"
    VENDORED = "vendored"
    GENERATED = "generated"
    DOCS = "docs"
    DATA = "data"


_TEST_FOLDERS = frozenset(
    {
        "tests",
        "__tests__",
        "e2e",
        "spec",
        "specs",
        "testdata",
        "test_data",
        "test-data",
        "fixtures",
        "__mocks__",
        "testcases",
    }
)
_VENDORED = frozenset(
    {
        "node_modules",
        "vendor",
        "third_party",
        "third-party",
        "3rdparty",
        "_vendor",
        "vendored",
        "externals",
        "bower_components",
    }
)
_FOR_READERS = frozenset({"docs", "doc", "documentation", "examples", "samples"})
_SITES = (["site"], ["website"])
"""At the top: the project's own pages. Deeper, a product may have a package of this name."""
_VENDORED_NAME = re.compile(r"[-.]v?\d+\.\d+(?:\.\d+)*(?:[-.]min)?\.(?:js|css)$", re.IGNORECASE)
"""A library's release, as jquery-3.5.1.js."""
_MIGRATION = re.compile(r"(?:^|/)(?:migrations|migrate)/\d{3,}_[^/]*$")
"""A step of a database's history: written once, not worked on again."""
_BUILT = frozenset({"dist", "build", "__pycache__", "site-packages", "_build", "target"})
_TEST_NAME = re.compile(
    r"^test_|_test\.|\.test\.|\.spec\.|_spec\.|^conftest\.py$|[a-z0-9]tests?\.py$|Tests?\.(?:java|cs|kt|php)$|TestCase\.java$"
    r"|^IT[A-Z].*\.java$"
)
_GENERATED_NAME = re.compile(
    r"\.min\.(?:js|css)$|\.bundle\.js$|\.pb\.go$|_pb2(?:_grpc)?\.py$|\.d\.ts$|\.designer\.cs$|-lock\.|\.lock$|\.map$",
    re.IGNORECASE,
)


def kind_of(path: str, *, generated: bool = False) -> Kind:
    """By the path alone, but for `generated`, which the text says."""
    *folders, name = path.split("/")
    lowered = {folder.lower() for folder in folders}
    language = language_of(path)
    if lowered & _VENDORED or _VENDORED_NAME.search(name):
        return Kind.VENDORED
    if generated or lowered & _BUILT or _GENERATED_NAME.search(name) or _MIGRATION.search(path):
        return Kind.GENERATED
    if lowered & _TEST_FOLDERS or _TEST_NAME.search(name) or _in_test_folder(folders, language):
        return Kind.TEST
    if language in PROSE or lowered & _FOR_READERS or folders[:1] in _SITES:
        return Kind.DOCS
    return Kind.DATA if language in DATA else Kind.CODE


def _in_test_folder(folders: list[str], language: str) -> bool:
    """`test` is a product folder in some Python projects (django/test); elsewhere it holds tests."""
    if "test" not in folders:
        return False
    return folders[0] == "test" or language not in {"python", "cython"}
