from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.change import ChangedPath, FileMode, TreeEntry
from bot.domain.ids import BlobId
from bot.policy.flags import Flag, Weight, denied, merged, to_name
from bot.policy.limits import Limits, LimitsFault, parse_limits
from bot.policy.paths import flags_of


class Blobs:
    """Content by id, as the mirror would give it."""

    def __init__(self) -> None:
        self.held: dict[BlobId, bytes] = {}

    def keep(self, data: bytes) -> BlobId:
        blob = BlobId(hashlib.sha1(data).hexdigest())
        self.held[blob] = data
        return blob

    def change(
        self, path: str, old: bytes | None = None, new: bytes | None = b"x\n", mode: str = "100644", was: str = "100644"
    ) -> ChangedPath:
        before = None if old is None else TreeEntry(path, FileMode(was), self.keep(old))
        after = None if new is None else TreeEntry(path, FileMode(mode), self.keep(new))
        return ChangedPath(path, before, after)

    def flags(self, *changes: ChangedPath, files_before: int = 1000, limits: Limits | None = None) -> dict[str, Flag]:
        found = flags_of(changes, files_before=files_before, peek=self.held.get, limits=limits or Limits())
        return {flag.name: flag for flag in found}


@pytest.fixture
def blobs() -> Blobs:
    return Blobs()


NAMED_PATHS = {
    "workflows": [".github/workflows/ci.yml", ".GitHub/Workflows/x.yaml", ".github/actions/a/run.sh", "act/action.yml"],
    "ci": [".gitlab-ci.yml", "Jenkinsfile", ".circleci/config.yml", "azure-pipelines.yml", ".buildkite/p.yml"],
    "codeowners": ["CODEOWNERS", ".github/CODEOWNERS", "docs/CODEOWNERS", "SECURITY.md", ".github/dependabot.yml"],
    "bot_config": [".github/pullwright.toml", ".github/pullwright.cedar", "policies/x.cedar", "a/.semgrepignore"],
    "agent_instructions": [
        "AGENTS.md",
        "sub/CLAUDE.md",
        ".claude/settings.json",
        ".cursorrules",
        ".mcp.json",
        "x/skills/y.md",
    ],
    "gitattributes": [".gitattributes", "sub/.GitAttributes"],
    "gitmodules": [".gitmodules"],
}


@pytest.mark.parametrize(("name", "path"), [(name, path) for name, paths in NAMED_PATHS.items() for path in paths])
def test_paths_that_a_reviewer_has_to_name(blobs: Blobs, name: str, path: str) -> None:
    for change in (blobs.change(path), blobs.change(path, b"old\n"), blobs.change(path, b"old\n", None)):
        assert blobs.flags(change)[name].weight is Weight.NAMED


@pytest.mark.parametrize(
    "path",
    [
        "src/workflows/ci.py",
        "docs/readme.md",
        "src/claude.py",
        "github/workflows/x",
        "a.py",
        "src/policies_x/y",
        "owners/CODEOWNERS.py",
    ],
)
def test_ordinary_paths_raise_nothing(blobs: Blobs, path: str) -> None:
    assert blobs.flags(blobs.change(path)) == {}


@pytest.mark.parametrize(
    "path", ["conftest.py", "x/y.pth", "Makefile", "Dockerfile.dev", ".vscode/tasks.json", ".envrc", "build.rs"]
)
def test_a_new_build_hook_has_to_be_named_and_a_changed_one_is_shown(blobs: Blobs, path: str) -> None:
    assert blobs.flags(blobs.change(path))["build_hook"].weight is Weight.NAMED
    assert blobs.flags(blobs.change(path, b"old\n"))["build_hook"].weight is Weight.SHOWN


def test_links_pointers_and_modes(blobs: Blobs) -> None:
    flags = blobs.flags(
        blobs.change("l", new=b"a", mode="120000"),
        blobs.change("sub", new=b"", mode="160000"),
        blobs.change("run.sh", b"#!/bin/sh\n", b"#!/bin/sh\n", mode="100755"),
    )
    assert {name: flag.weight.value for name, flag in flags.items()} == {
        "symlink": "named",
        "gitmodules": "named",
        "executable": "shown",
    }
    assert blobs.flags(blobs.change("data.json", b"{}", b"{}", mode="100755"))["executable"].weight is Weight.NAMED
    assert blobs.flags(blobs.change("run.sh", b"#!a\n", b"#!b\n", mode="100755", was="100755")) == {}
    assert blobs.flags(blobs.change("sub", b"", None, was="160000"))["gitmodules"].weight is Weight.NAMED


@pytest.mark.parametrize(
    ("data", "name", "weight"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "binary", Weight.NAMED),
        (b"\x7fELF\2\1\1\0", "binary_program", Weight.DENIED),
        (b"MZ\x90\0", "binary_program", Weight.DENIED),
        (b"PK\3\4", "archive", Weight.DENIED),
        (b"\x1f\x8b\x08", "archive", Weight.DENIED),
        ("x = 1 \u202e# \u2066".encode(), "hidden_characters", Weight.NAMED),
        ("a\u200bb".encode(), "hidden_characters", Weight.NAMED),
        ("see \U000e0069\U000e0067".encode(), "tag_characters", Weight.DENIED),
        (b"x" * 5001 + b"\n", "minified", Weight.NAMED),
        (b"k = '" + b"QUJD" * 260 + b"'\n", "encoded_blob", Weight.NAMED),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "lfs_pointer", Weight.NAMED),
        (b"line\n" * 250_000, "large", Weight.NAMED),
    ],
)
def test_content_that_people_cannot_read(blobs: Blobs, data: bytes, name: str, weight: Weight) -> None:
    assert blobs.flags(blobs.change("src/a", new=data))[name].weight is weight
    if weight is Weight.NAMED and name not in {"binary", "lfs_pointer"}:
        assert name not in blobs.flags(blobs.change("src/a", data, data + b"one more line\n"))


def test_emoji_and_a_leading_mark_are_no_hidden_text(blobs: Blobs) -> None:
    text = "\ufeff👩\u200d💻 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f ❤️\u200d🔥\n"
    assert blobs.flags(blobs.change("a.md", new=text.encode())) == {}


def test_content_that_cannot_be_looked_at_has_to_be_named(blobs: Blobs) -> None:
    change = blobs.change("a", new=b"gone")
    blobs.held.clear()
    assert set(blobs.flags(change)) == {"unreadable"}


def test_amounts(blobs: Blobs) -> None:
    deleted = [blobs.change(f"d{i}", b"x", None) for i in range(21)]
    assert blobs.flags(*deleted)["mass_deletion"].paths[0] == "d0"
    assert set(blobs.flags(*deleted[:4], files_before=10)) == {"mass_deletion"}
    assert blobs.flags(*deleted[:3], files_before=10) == {}
    assert set(blobs.flags(*(blobs.change(f"n{i}") for i in range(101)))) == {"large"}


def test_tests_that_are_deleted_emptied_or_skipped(blobs: Blobs) -> None:
    old = b"def test_a():\n    assert 1\n\ndef test_b():\n    assert 2\n    assert 3\n"
    assert blobs.flags(blobs.change("tests/test_a.py", old, None))["tests_removed"].weight is Weight.NAMED
    fewer = blobs.flags(blobs.change("tests/test_a.py", old, b"def test_a():\n    assert 1\n"))
    assert fewer["tests_removed"].why == "2 test cases before, 1 after."
    weaker = blobs.flags(blobs.change("tests/test_a.py", old, old.replace(b"    assert 3\n", b"")))
    assert weaker["tests_removed"].why == "3 assertions before, 2 after."
    skipped = blobs.flags(blobs.change("tests/test_a.py", old, b"@unittest.skip\n" + old))
    assert set(skipped) == {"tests_skipped"}
    assert blobs.flags(blobs.change("tests/test_a.py", old, old + b"\ndef test_c():\n    assert 4\n")) == {}
    assert blobs.flags(blobs.change("web/a.test.ts", b"it('x', () => { expect(1) })\n", b"xit('x')\n")).keys() >= {
        "tests_removed",
        "tests_skipped",
    }


def test_where_dependencies_come_from(blobs: Blobs) -> None:
    lock = b'{"a": {"resolved": "https://registry.example/a.tgz"}}'
    other = lock.replace(b"registry.example", b"evil.example")
    flags = blobs.flags(blobs.change("package-lock.json", lock, other))
    assert flags["lockfile"].weight is Weight.SHOWN
    assert "evil.example" in flags["install_source"].why
    same = lock.replace(b"a.tgz", b"b.tgz")
    alone = blobs.change("package-lock.json", lock, same)
    assert blobs.flags(alone)["lock_only"].weight is Weight.NAMED
    manifest = blobs.change("package.json", b"{}", b'{"x": 1}')
    assert set(blobs.flags(alone, manifest)) == {"lockfile", "manifest"}
    scripts = blobs.flags(blobs.change("package.json", b"{}", b'{"scripts": {"postinstall": "node x"}}'))
    assert scripts["install_source"].weight is Weight.NAMED


def test_flags_of_one_name_are_one_flag_of_the_heaviest_weight() -> None:
    light, heavy = Flag("x", Weight.SHOWN, ("b",), "l"), Flag("x", Weight.NAMED, ("a",), "h")
    deny = Flag("z", Weight.DENIED, ("c",), "d")
    assert merged([light, heavy, deny]) == (deny, Flag("x", Weight.NAMED, ("a", "b"), "h"))
    assert to_name(merged([light, heavy, deny])) == ("x",)
    assert denied([light, deny]) == (deny,)


@given(st.text(max_size=60), st.binary(max_size=300), st.binary(max_size=300))
def test_nothing_that_may_stand_in_a_tree_breaks_the_flags(path: str, old: bytes, new: bytes) -> None:
    blobs = Blobs()
    blobs.flags(blobs.change(path, old, new), blobs.change(path, None, new), blobs.change(path, old, None))


def test_limits_are_read_and_faults_named() -> None:
    assert parse_limits("changed_files = 5\ntwo_person = true\n") == Limits(changed_files=5, two_person=True)
    for text, words in [("x = 1", "`x`: Extra"), ("changed_files = 0", "changed_files"), ("= 1", "not TOML")]:
        fault = parse_limits(text)
        assert isinstance(fault, LimitsFault)
        assert words in fault.message


def test_files_that_only_move_are_not_deleted(blobs: Blobs) -> None:
    gone = [blobs.change(f"old{n}", f"{n}\n".encode(), None) for n in range(5)]
    here = [blobs.change(f"new{n}", None, f"{n}\n".encode()) for n in range(5)]
    assert blobs.flags(*gone, *here, files_before=10) == {}
    assert set(blobs.flags(*gone, *here[:1], files_before=10)) == {"mass_deletion"}


def test_an_lfs_pointer_has_to_be_named(blobs: Blobs) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    edited = blobs.change("big.bin", pointer, pointer.replace(b"sha256:0", b"sha256:1"))
    assert blobs.flags(edited)["lfs_pointer"].weight is Weight.NAMED
