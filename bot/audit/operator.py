"""The operator's inputs (`--config FILE`, TOML): what no API knows. Pure; raises ValueError that names the setting."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

Model = TypeVar("Model", bound=BaseModel)
Login = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,38}(?:\[bot\])?$")]


class PinEntry(BaseModel):
    """One skill, plugin or action of the lock file. What is not there is empty, and found."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    repository: str = ""
    commit: str = ""
    owner: str = ""
    tree: str = ""


class Operator(BaseModel):
    """The file itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bot: Login = Field(default="pullwright[bot]", description="account of the bot")
    branch_prefix: str = Field(default="agent/", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*/$", description="its branches")
    agents: tuple[Login, ...] = Field(default=(), description="accounts of other agents")
    departed: tuple[Login, ...] = Field(default=(), description="people who left")
    allowed_apps: tuple[str, ...] = Field(default=(), description="slugs of Apps that may be installed")
    working_copies: tuple[Path, ...] = Field(default=(), description="directories whose .git/config is read")
    lock_file: Path | None = Field(default=None, description="pins of skills, plugins and actions")
    last_report: Path | None = Field(default=None, description="an earlier report of this audit (--json)")
    enterprise_cloud: bool = Field(
        default=True, description="whether the organisation has an audit log and authorised credentials"
    )
    floors: Mapping[str, str] = Field(default_factory=dict, description="the oldest version that is good enough")

    @property
    def bots(self) -> frozenset[str]:
        """Every account that is an agent, in lower case."""
        return frozenset(name.lower() for name in (self.bot, *self.agents))

    @property
    def gone(self) -> frozenset[str]:
        """Who left, in lower case."""
        return frozenset(name.lower() for name in self.departed)


class _Locks(BaseModel):
    model_config = ConfigDict(extra="forbid")

    pin: tuple[PinEntry, ...] = ()


def read_operator(text: str) -> Operator:
    """The settings in this text."""
    return _read(Operator, text)


def read_pins(text: str) -> tuple[PinEntry, ...]:
    """The pins of a lock file: `[[pin]]` with name, repository, commit, owner, tree."""
    return _read(_Locks, text).pin


def read_last_report(text: str) -> Mapping[str, str]:
    """Ids of instruction files by `repository:path`, from an earlier report."""
    told = json.loads(text)
    files = told.get("instruction_files") if isinstance(told, dict) else None
    if not isinstance(files, dict) or not all(isinstance(blob, str) for blob in files.values()):
        raise ValueError("it is no report of `pullwright audit --json`")
    return files


def _read(kind: type[Model], text: str) -> Model:
    try:
        return kind.model_validate(tomllib.loads(text))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ValueError(f"{place}: {first['msg']}") from None
