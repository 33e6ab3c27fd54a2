"""What changed, as git objects say it. Nothing here is text of a patch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.ids import BlobId, CommitId, Digest, TreeId


class FileMode(StrEnum):
    """The modes git stores. A gitlink is a submodule pointer."""

    REGULAR = "100644"
    EXECUTABLE = "100755"
    SYMLINK = "120000"
    GITLINK = "160000"


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One file of a tree: `path` is relative, with forward slashes."""

    path: str
    mode: FileMode
    blob: BlobId


@dataclass(frozen=True, slots=True)
class ChangedPath:
    """One line of `diff-tree --raw`: None on a side means the path is absent there."""

    path: str
    old: TreeEntry | None
    new: TreeEntry | None

    @property
    def kind(self) -> str:
        if self.old is None:
            return "added"
        return "deleted" if self.new is None else "modified"


@dataclass(frozen=True, slots=True)
class Change:
    """A tree made from a base commit. `paths` is the raw comparison with the base's tree, sorted by path."""

    base: CommitId
    base_tree: TreeId
    tree: TreeId
    paths: tuple[ChangedPath, ...]

    @property
    def empty(self) -> bool:
        return self.tree == self.base_tree


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """A commit of a history: what it says and what it changes against its first parent, which is None for a root. `lines` counts
    those added and removed, binary files left out."""

    id: CommitId
    parent: CommitId | None
    message: str
    changes: tuple[ChangedPath, ...]
    lines: int


@dataclass(frozen=True, slots=True)
class ChangeDigest:
    """The digest of design §7 and what it was computed from."""

    value: Digest
    base_ref: str
    merge_base: CommitId
    head: CommitId
    merge_base_tree: TreeId
    head_tree: TreeId
