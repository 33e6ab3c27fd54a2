"""What an evaluation keeps in a directory, so that the next one goes on: what was found of each commit, and each pair."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bot.domain.errors import UserError
from bot.domain.ids import CommitId, short
from bot.evaluation.judging import Demand, Invalid, Pair
from bot.workflow.values import write_whole

_PAIR: TypeAdapter[Pair] = TypeAdapter(Pair)
_FOUND: TypeAdapter[Demand | Invalid] = TypeAdapter(Demand | Invalid)


@dataclass(frozen=True, slots=True)
class Kept:
    """One file each, whole or not there. Without a directory nothing is kept. Raises UserError for a file it cannot read."""

    directory: Path | None

    @classmethod
    def at(cls, directory: Path | None) -> Kept:
        """Made now, so that a name which cannot be a directory is told before any work."""
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
        return cls(directory)

    def pair(self, commit: CommitId, planner: str, model: str) -> Pair | None:
        """What an earlier run kept of this pair, judged or not."""
        found: Pair | None = self._read(f"{short(commit)}-{planner}-{model}.json", _PAIR)
        return found

    def put_pair(self, pair: Pair) -> None:
        self._write(f"{short(pair.commit)}-{pair.planner}-{pair.model}.json", _PAIR.dump_json(pair, indent=1))

    def found(self, commit: CommitId) -> Demand | Invalid | None:
        """What its tests prove, if that was tried before."""
        found: Demand | Invalid | None = self._read(f"{short(commit)}-tests.json", _FOUND)
        return found

    def put_found(self, commit: CommitId, found: Demand | Invalid) -> None:
        self._write(f"{short(commit)}-tests.json", _FOUND.dump_json(found, indent=1))

    def _read(self, name: str, kind: TypeAdapter[Any]) -> Any:
        if self.directory is None or not (self.directory / name).exists():
            return None
        try:
            return kind.validate_json((self.directory / name).read_bytes())
        except ValidationError:
            told = f"{self.directory / name} is not what an evaluation kept."
            raise UserError(told, "Remove it, or name another directory with --keep.") from None

    def _write(self, name: str, data: bytes) -> None:
        if self.directory is not None:
            write_whole(self.directory / name, data + b"\n")
