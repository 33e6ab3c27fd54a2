"""Names of things. GitHub's are numeric or node ids, because names are re-used after a rename; git's are full object ids."""

from __future__ import annotations

import re
from typing import NewType

InstallationId = NewType("InstallationId", int)
RepositoryId = NewType("RepositoryId", int)
UserId = NewType("UserId", int)
CommentId = NewType("CommentId", int)
ReviewId = NewType("ReviewId", int)
CheckRunId = NewType("CheckRunId", int)
NodeId = NewType("NodeId", str)
DeliveryId = NewType("DeliveryId", str)
TaskId = NewType("TaskId", str)
StepId = NewType("StepId", str)
SandboxId = NewType("SandboxId", str)

CommitId = NewType("CommitId", str)
TreeId = NewType("TreeId", str)
BlobId = NewType("BlobId", str)
Digest = NewType("Digest", str)
"""sha256 in hex of a change, as design §7 defines it."""

SHORT_DIGEST = 12
"""How many characters of a digest or plan hash people type in a command."""

_FULL_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def is_full_object_id(text: str) -> bool:
    """True for a whole git object id in lower-case hex; an abbreviation or a ref name never passes."""
    return _FULL_ID.fullmatch(text) is not None


def short(identifier: str) -> str:
    """The part of a digest or object id that people read and type."""
    return identifier[:SHORT_DIGEST]
