"""Templates: a named root file system as read-only binds, an environment and what goes in front of PATH."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

_CHECKOUT = Path(__file__).resolve().parents[2]
_RESERVED = frozenset({"/", "/home", "/home/user", "/tmp", "/run", "/etc", "/var", "/root"})  # noqa: S108 - the sandbox's own
_RESERVED_TREES = ("/usr", "/proc", "/dev")
_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")

HOME = "/home/user"


@dataclass(frozen=True, slots=True)
class Bind:
    """`source` on this machine appears read-only at `target` inside."""

    source: Path
    target: str

    def __post_init__(self) -> None:
        if (
            not self.target.startswith("/")
            or os.path.normpath(self.target) != self.target
            or self.target.startswith("//")
        ):
            raise ValueError(f"a bind's target is a plain absolute path, not {self.target!r}")
        inside = PurePosixPath(self.target)
        if self.target in _RESERVED or any(inside.is_relative_to(tree) for tree in _RESERVED_TREES):
            raise ValueError(f"{self.target} belongs to the sandbox itself and cannot be a bind's target")


@dataclass(frozen=True, slots=True)
class Template:
    """What `template=` of a create call names. /usr is always there; everything writable is a fresh tmpfs."""

    name: str
    binds: tuple[Bind, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    path: tuple[str, ...] = ()

    def environment(self) -> dict[str, str]:
        """The environment a command starts from, before the sandbox's and the call's own variables."""
        search = ":".join(dict.fromkeys((*self.path, *_SYSTEM_PATH)))
        return {"LANG": "C.UTF-8", "TERM": "dumb", **self.env, "PATH": search}


def base_template() -> Template:
    """Only /usr."""
    return Template("base")


def python_template(
    name: str = "pullwright",
    *,
    tools: Path | None = None,
    semgrep: Path | None = None,
    extra: tuple[Bind, ...] = (),
) -> Template:
    """The default: this interpreter, the tools venv at /opt/tools and Semgrep at /opt/semgrep, as far as we can run them."""
    tools, semgrep = tools or _CHECKOUT / ".venv-sandbox", semgrep or _CHECKOUT / ".venv-semgrep"
    binds, path = list(interpreter_binds()), [f"{interpreter_prefix()}/bin"]
    for venv, target in ((tools, "/opt/tools"), (semgrep, "/opt/semgrep")):
        if os.access(venv / "bin" / "python", os.X_OK):
            binds += venv_binds(venv, target)
            path = [f"{target}/bin", *path] if target == "/opt/tools" else path
    unique = tuple(dict.fromkeys((*binds, *extra)))
    return Template(
        name,
        unique,
        {"PYTHONDONTWRITEBYTECODE": "1", "SEMGREP_SEND_METRICS": "off", "SEMGREP_ENABLE_VERSION_CHECK": "0"},
        tuple(path),
    )


def interpreter_prefix() -> Path:
    """Where the Python that runs the server is installed; the agent of every sandbox runs on the same one."""
    return Path(sys.base_prefix)


def interpreter_program() -> Path:
    """That Python itself, by a path that is valid inside too."""
    versioned = interpreter_prefix() / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    return versioned if versioned.exists() else interpreter_prefix() / "bin" / "python3"


def interpreter_binds() -> tuple[Bind, ...]:
    """Its installation at its own path; empty when /usr holds it already."""
    return _at_own_path(interpreter_prefix()) + _at_own_path(Path(os.path.realpath(interpreter_program())).parents[1])


def venv_binds(venv: Path, target: str) -> tuple[Bind, ...]:
    """A venv at `target`, also at its own path (its scripts name their interpreter by it), and the Python it is of."""
    venv = venv.absolute()
    base = Path(os.path.realpath(venv / "bin" / "python")).parents[1]
    named = next((home for home in _configured_homes(venv)), base / "bin").parent
    return (Bind(venv, target), *_at_own_path(venv), *_at_own_path(base), *_at_own_path(named))


def _configured_homes(venv: Path) -> list[Path]:
    lines = (venv / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("=") for line in lines)
    return [Path(value.strip()) for key, _, value in pairs if key.strip() == "home"]


def _at_own_path(directory: Path) -> tuple[Bind, ...]:
    return () if directory.is_relative_to("/usr") else (Bind(directory, str(directory)),)
