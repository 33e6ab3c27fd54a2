"""`policies/limits.toml`: how much of a change may pass unnamed. Outside text enters here, so it is checked here."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, ValidationError


@dataclass(frozen=True, slots=True)
class Limits:
    """Soft caps; beyond one of them a flag is raised. And who has to approve: how many, code owners, somebody but the requester."""

    changed_files: int = 100
    changed_bytes: int = 1_000_000
    deleted_files: int = 20
    deleted_share: float = 0.3
    line_characters: int = 5_000
    encoded_characters: int = 1_000
    two_person: bool = False
    approvals: int = 1
    code_owners: bool = False
    artefact_files: int = 20
    artefact_bytes: int = 2_000_000


@dataclass(frozen=True, slots=True)
class LimitsFault:
    """Why the file does not hold; nothing is allowed until it does."""

    message: str
    line: int | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    changed_files: int = Field(default=100, ge=1)
    changed_bytes: int = Field(default=1_000_000, ge=1)
    deleted_files: int = Field(default=20, ge=1)
    deleted_share: float = Field(default=0.3, gt=0, le=1)
    line_characters: int = Field(default=5_000, ge=200)
    encoded_characters: int = Field(default=1_000, ge=100)
    two_person: bool = False
    approvals: int = Field(default=1, ge=1, le=10)
    code_owners: bool = False
    artefact_files: int = Field(default=20, ge=0, le=100)
    artefact_bytes: int = Field(default=2_000_000, ge=0, le=10_000_000)


def parse_limits(text: str) -> Limits | LimitsFault:
    """The limits in this text, or what is wrong with it."""
    try:
        file = _File.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        return LimitsFault(f"this is not TOML: {error}", int(found[1]) if found else None)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        key = str(first["loc"][0]) if first["loc"] else ""
        lines = enumerate(text.splitlines(), start=1)
        line = next((number for number, line in lines if re.match(rf"\s*{re.escape(key)}\s*=", line)), None)
        return LimitsFault(f"`{key}`: {first['msg']}", line)
    return Limits(**file.model_dump())
