"""Bad input ends in one sentence before anything is spent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.commands.evaluate import Request, run
from bot.commands.kept import Kept
from bot.domain.errors import UserError
from bot.domain.ids import CommitId
from bot.evaluation.judging import Invalid
from bot.settings import Settings
from tests.unit.custody.local import Clone

Arrange = Callable[[Clone, Path], dict[str, Any]]


def nothing(clone: Clone, root: Path) -> dict[str, Any]:
    return {}


def no_tests(clone: Clone, root: Path) -> dict[str, Any]:
    clone.commit({"a.py": "1\n"})
    clone.commit({"a.py": "2\n"})
    return {}


@pytest.mark.parametrize(
    ("arrange", "key", "sentence"),
    [
        (nothing, "", "ANTHROPIC_API_KEY is not set"),
        (lambda clone, root: {"models": ("claude-sonnet-9", "x")}, "k", "claude-sonnet-9 is no model that can be asked. Known are claude-"),
        (lambda clone, root: {"models": ("gpt-6.1-sol",)}, "k", "gpt-6.1-sol is no model that can be asked"),
        (lambda clone, root: {"directory": root / "none"}, "k", "none is no git repository. DIR is a clone"),
        (nothing, "k", "has no commit"),
        (no_tests, "k", "makes a task. 1 change no test, 1 have no parent."),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_sentence_with_what_to_do(tmp_path: Path, arrange: Arrange, key: str, sentence: str):
    clone = Clone(tmp_path / "clone")
    asked = {"directory": clone.path, **arrange(clone, tmp_path)}
    settings = Settings(home=tmp_path / "data", anthropic_api_key=SecretStr(key))
    with pytest.raises(UserError) as told:
        run(
            settings, Request(announce=pytest.fail, agreed=lambda _: pytest.fail("nothing is to be agreed to"), **asked)
        )
    assert sentence in str(told.value)
    assert not (tmp_path / "data").exists()


def test_what_was_kept_is_found_again_and_what_is_damaged_is_named(tmp_path: Path):
    kept, commit = Kept.at(tmp_path / "kept"), CommitId("c" * 40)
    assert kept.found(commit) is None
    kept.put_found(commit, Invalid("its tests pass without it"))
    assert kept.found(commit) == Invalid("its tests pass without it")
    assert kept.pair(commit, "p", "m") is None
    (path,) = (tmp_path / "kept").iterdir()
    path.write_text("{")
    with pytest.raises(UserError, match="is not what an evaluation kept"):
        kept.found(commit)
