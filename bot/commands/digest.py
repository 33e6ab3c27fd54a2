"""The change digest of two commits of a clone, for whoever wants to recompute what an approval stands for."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from bot.custody.digest import digest_of_directory
from bot.custody.faults import LineFault
from bot.custody.git import GitError
from bot.domain.errors import UserError


def digest(directory: Path, base: str, head: str, base_ref: str, *, as_json: bool) -> str:
    """The digest, alone or with what it was made of. Raises UserError when it cannot be made."""
    try:
        change = asyncio.run(digest_of_directory(directory, base, head, base_ref=base_ref))
    except (LineFault, GitError, ValueError, OSError) as error:
        hint = "DIR has to be a git clone, BASE and HEAD commits in it."
        said = error.seen if isinstance(error, LineFault) else str(error)
        raise UserError(f"No digest: {said}.", hint) from error
    if not as_json:
        return change.value
    return json.dumps(
        {
            "digest": change.value,
            "base_ref": change.base_ref,
            "merge_base": change.merge_base,
            "head": change.head,
            "trees": {"merge_base": change.merge_base_tree, "head": change.head_tree},
        }
    )
