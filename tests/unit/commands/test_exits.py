"""What is no bug ends a command in one sentence and a code, never in a traceback."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from bot.commands.exits import bounded
from bot.domain.errors import Transient, UserError
from bot.emulators.anthropic.brains import named
from bot.emulators.github.config import load_seed


def _raising(error: BaseException) -> Callable[[], NoReturn]:
    def command() -> NoReturn:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UserError("No key.", "Set one."), 2, "pullwright: No key.\nSet one.\n"),
        (Transient("the store cannot serve now"), 2, "pullwright: the store cannot serve now.\n"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "/a"), 2, "No such file or directory: /a."),
        (OSError(errno.EADDRINUSE, "Address already in use"), 2, "Address already in use.\nTake another port, or 0.\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_a_command_that_cannot_do_its_work_says_why(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        bounded(_raising(error))
    assert caught.value.code == code
    told = capsys.readouterr()
    assert told.out == ""
    assert said in told.err


def test_a_bug_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        bounded(_raising(ZeroDivisionError()))


@pytest.mark.parametrize(
    "seed",
    [
        "[1]",
        "{",
        '{"repositories": [{"full_name": "no-owner"}]}',
        '{"repositories": [{"full_name": "a/b", "files": "nowhere"}]}',
        '{"repositories": "a/b"}',
    ],
)
def test_a_seed_that_is_none_is_a_value_error(seed: str, tmp_path: Path) -> None:
    file = tmp_path / "seed.json"
    file.write_text(seed)
    with pytest.raises(ValueError, match=r"."):
        load_seed(file)


def test_directories_of_a_seed_are_beside_it(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    file = tmp_path / "seed.json"
    file.write_text('{"repositories": [{"full_name": "a/b", "files": "files"}]}')
    assert load_seed(file).repositories[0].files == str(tmp_path / "files")


@pytest.mark.parametrize("spec", ["nobody", "os:path", "json:JSONDecodeError", "no_such_module:x"])
def test_a_brain_that_cannot_answer_is_refused_at_the_start(spec: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        named(spec)
