"""Two releases of each real project, from their source distributions, and the tools that their own tests need.

Both come from the registry that pip is configured with, pinned by hash, into directories that git ignores.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from bot.sandboxd.templates import venv_binds

ROOT = Path(__file__).parents[3]
CACHE = ROOT / ".cache" / "real"
TOOLS = ROOT / ".venv-real"
_LOCK = ROOT / "requirements" / "real-sources.txt"
_ENTRY = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[\w.]+)(?: \\\n +--hash=\S+)+", re.MULTILINE)
_DOWNLOADS_AT_ONCE = 2


class SourceMissing(Exception):  # noqa: N818 - what is missing is the news
    """A source distribution or a tool could not be had; says what was tried and what came back."""


def prepare() -> None:
    """Install the tools and unpack every release of the lock file, as far as they are not there yet."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock, ThreadPoolExecutor(_DOWNLOADS_AT_ONCE) as pool:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _run([str(ROOT / "scripts" / "setup.sh"), "real"])
        missing = [found for found in _ENTRY.finditer(_LOCK.read_text("utf-8")) if not _unpacked(found).is_dir()]
        list(pool.map(_fetch, missing))


def release(name: str, version: str) -> Path:
    """The unpacked files of a release."""
    directory = CACHE / f"{name}-{version}"
    if not directory.is_dir():
        raise SourceMissing(f"{name} {version} is not in {_LOCK.name}, or nobody called prepare()")
    return directory


def offer_template(home: Path) -> None:
    """A sandbox template named `real`, with the projects' test tools in front, for the product whose data are in `home`."""
    templates = home / "templates"
    templates.mkdir(parents=True)
    binds = "".join(
        f"[[binds]]\nsource = {json.dumps(str(bind.source))}\ntarget = {json.dumps(bind.target)}\n"
        for bind in venv_binds(TOOLS, "/opt/real")
    )
    text = f'extends = "pullwright"\npath = ["/opt/real/bin"]\n{binds}'
    (templates / "real.toml").write_text(text, "utf-8")


def _unpacked(entry: re.Match[str]) -> Path:
    return CACHE / f"{entry['name']}-{entry['version']}"


def _fetch(entry: re.Match[str]) -> None:
    with tempfile.TemporaryDirectory(dir=CACHE) as directory:
        scratch = Path(directory)
        (scratch / "wanted.txt").write_text(f"{entry[0]}\n", "utf-8")
        pip = [str(TOOLS / "bin" / "python"), "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        plain = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--require-hashes"]
        _run([*pip, *plain, "--dest", directory, "--requirement", str(scratch / "wanted.txt")])
        archive = next(scratch.glob("*.tar.gz"))
        _unpack(archive, scratch / "files")
        (scratch / "files").rename(_unpacked(entry))


def _unpack(archive: Path, target: Path) -> None:
    """Its plain files without the top directory, with their executable bits."""
    with tarfile.open(archive) as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            content = tar.extractfile(member) if member.isreg() else None
            if content is None:
                continue
            if path.is_absolute() or ".." in path.parts:
                raise SourceMissing(f"{archive.name} holds the path {member.name!r}")
            file = target.joinpath(*path.parts[1:])
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.read())
            file.chmod(0o755 if member.mode & 0o100 else 0o644)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=_environment())
    if done.returncode:
        raise SourceMissing(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-3000:]}")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}
