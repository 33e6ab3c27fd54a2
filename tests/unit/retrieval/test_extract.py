"""Any bytes can be read; what could not be read says so."""

import pytest

from bot.retrieval.extract import LARGEST, decoded, extract
from bot.retrieval.languages import GRAMMARS, language_of

SAMPLES = {
    "a.py": ("class A(B):\n    def go(self, x):\n        '''Does it.'''\n        return x\n", "A.go"),
    "a.js": ("class A {\n  go(x) { return x; }\n}\n", "A.go"),
    "a.ts": ("export class A {\n  go(x: number): number { return x; }\n}\n", "A.go"),
    "a.tsx": ("export class A {\n  go(x: number) { return <b>{x}</b>; }\n}\n", "A.go"),
    "a.go": ("package a\n\nfunc (a *A) gone(x int) int { return x }\n", "gone"),
    "a.java": ("class A {\n  int go(int x) { return x; }\n}\n", "A.go"),
    "a.rs": ("impl A {\n  fn go(&self, x: u8) -> u8 { x }\n}\n", "A.go"),
    "a.c": ("static int *go(int x)\n{\n  return 0;\n}\n", "go"),
    "a.cpp": ("class A {\n  int go(int x) { return x; }\n};\n", "A.go"),
    "a.cs": ("class A {\n  int go(int x) { return x; }\n}\n", "A.go"),
    "a.rb": ("class A\n  def go(x)\n    x\n  end\nend\n", "A.go"),
    "a.php": ("<?php\nclass A {\n  function go($x) { return $x; }\n}\n", "A.go"),
    "a.md": ("# Title\n\ntext\n\n## go\n\nmore\n", "go"),
}


@pytest.mark.parametrize("path", SAMPLES)
def test_each_language_has_its_definitions_with_lines(path: str):
    text, name = SAMPLES[path]
    found = extract(text.encode(), language_of(path))
    definition = next(one for one in found.definitions if one.qualified == name)
    assert "go" in text.split("\n")[definition.first - 1]
    assert definition.last >= definition.first
    assert found.state == "read"


def test_every_grammar_has_a_sample():
    assert {language_of(path) for path in SAMPLES} >= set(GRAMMARS)


def test_a_definition_has_its_signature_and_doc_line():
    found = extract(b'def f(a,\n      b=1):\n    """Adds. More."""\n    return a + b\n', "python")
    assert [(one.signature, one.doc) for one in found.definitions] == [("def f(a, b=1)", "Adds. More.")]


DEEP = """
if x:
    class A:
        class_ = "def f"

        def go(self, x):
            '''Says
            def not_this(): it is text.
            '''
            class Inner(B): limit = 1
            async def wait(self): pass
            @wraps(x)
            def done(): return x
def f():
    try: x = 1
    finally:
        if x:
            def last(): pass
"""


def test_definitions_deep_inside_others_are_found():
    found = extract(DEEP.encode(), "python")
    assert [one.qualified for one in found.definitions] == [
        "A",
        "A.class_",
        "A.go",
        "A.go.Inner",
        "A.go.Inner.limit",
        "A.go.wait",
        "A.go.done",
        "f",
        "f.last",
    ]
    done = next(one for one in found.definitions if one.name == "done")
    assert DEEP.split("\n")[done.first - 1].strip() == "@wraps(x)"


@pytest.mark.parametrize("times", [1, 250])
def test_definitions_deep_inside_others_are_found_once_however_many_there_are(times: int):
    found = extract(
        b"def f():\n    try: pass\n    finally:\n        if x:\n            class A: pass\n" * times, "python"
    )
    assert [(one.qualified, one.first) for one in found.definitions] == [
        (name, first + 5 * copy) for copy in range(times) for name, first in (("f", 1), ("f.A", 5))
    ]


def test_imports_are_read_as_written():
    found = extract(b"import os\nfrom a.b import c, d as e\nfrom . import f\n", "python")
    assert found.imports == ("os", "a.b.c", "a.b.d", ".f")


@pytest.mark.parametrize(
    ("data", "language", "state"),
    [
        (b"a\0b" * 100, "python", "binary"),
        (b"x" * (LARGEST + 1), "python", "large"),
        (b'{"a": ' + b"1, " * 70_000 + b"2}", "config", "long-lines"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "", "lfs"),
        (b"", "python", "read"),
        (b"\xff\xfe" + "class A: pass\n".encode("utf-16-le"), "python", "read"),
        ("# caf\xe9\nclass A: pass\n".encode("latin-1"), "python", "read"),
        (b"class A: pass # \xc3\x28 \xff\n", "python", "read"),
        (b"\xef\xbb\xbfclass A: pass\n", "python", "read"),
    ],
)
def test_odd_bytes_are_named_not_raised(data: bytes, language: str, state: str):
    assert extract(data, language).state == state


@pytest.mark.parametrize("opening", ["(", "["])
@pytest.mark.parametrize("language", ["python", "php"])
def test_deep_nesting_is_bounded(opening: str, language: str):
    found = extract((opening * 30_000 + "\n").encode() + b"x = 1\n" * 400, language)
    assert found.state in {"nested", "long-lines"}


def test_utf_16_is_text():
    assert decoded("größe".encode("utf-16")) == "größe"


def test_the_same_bytes_give_the_same_extract():
    data = SAMPLES["a.py"][0].encode() * 30
    assert extract(data, "python") == extract(data, "python")
