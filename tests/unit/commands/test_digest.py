"""What `pullwright digest` says when there is none to print."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.commands.digest import digest
from bot.domain.errors import UserError


def test_a_folder_that_is_no_clone_is_named_as_it_was_given(tmp_path: Path):
    with pytest.raises(UserError) as caught:
        digest(tmp_path, "a", "b", "main", as_json=False)
    assert str(caught.value).startswith(f"No digest: {tmp_path} is no git repository.")
