"""Templates an operator adds: one TOML file each, named after the template."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from bot.sandboxd.templates import Bind, Template


class TemplateFileError(ValueError):
    """A template file that cannot be used; the message names the file and the fault."""


class _BindEntry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    source: Path
    target: str


class _TemplateFile(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    extends: str = "base"
    binds: list[_BindEntry] = []
    env: dict[str, str] = {}
    path: list[str] = []


def load_templates(directory: Path, known: Iterable[Template]) -> tuple[Template, ...]:
    """Every `NAME.toml` of `directory`, in order of name; `extends` may name a known template."""
    parents = {template.name: template for template in known}
    return tuple(_load(file, parents) for file in sorted(directory.glob("*.toml")))


def _load(file: Path, parents: dict[str, Template]) -> Template:
    try:
        entry = _TemplateFile.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
        parent = parents[entry.extends]
        binds = tuple(Bind(bind.source, bind.target) for bind in entry.binds)
    except KeyError:
        raise TemplateFileError(f"{file}: extends an unknown template; known: {', '.join(sorted(parents))}") from None
    except (ValidationError, tomllib.TOMLDecodeError, ValueError) as error:
        raise TemplateFileError(f"{file}: {error}") from None
    missing = [bind.source for bind in binds if not bind.source.is_dir()]
    if missing:
        raise TemplateFileError(f"{file}: no such directory: {missing[0]}")
    return Template(file.stem, parent.binds + binds, {**parent.env, **entry.env}, (*entry.path, *parent.path))
