"""What an audit reads on this machine: working copies, pins, installed versions, sandboxes."""

from __future__ import annotations

import platform
import re
import shutil
import stat
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bot.audit.facts import Host, PinFacts, WorkingCopy
from bot.audit.operator import PinEntry
from bot.commands import doctor
from bot.commands.pins import mirror_of, pin_of
from bot.custody import pins
from bot.custody.faults import LineFault
from bot.domain.errors import Transient, UserError
from bot.domain.ids import is_full_object_id
from bot.providers.organisation.port import Read
from bot.settings import Settings

_LARGEST = 1 << 20
_DPKG = Path("/var/lib/dpkg/status")
_OF_THE_COMMIT = frozenset({"pin_unreachable", "commit_absent", "not_a_commit"})


def working_copy(path: Path) -> WorkingCopy:
    """Its config files as text, its hooks by name. No git is started, and no link is followed."""
    try:
        inside = path / ".git" if (path / ".git").is_symlink() or (path / ".git").exists() else path
        if inside.is_symlink():
            return _unread(path, f"{inside.name} is a link")
        if not inside.is_dir() or not (inside / "HEAD").exists():
            why = (
                "it is no working copy"
                if inside == path or inside.is_dir()
                else "it belongs to another repository; name that"
            )
            return _unread(path, why)
        names = [name for name in ("config", "config.worktree") if name == "config" or (inside / name).exists()]
        configs = tuple((name, _text(inside / name)) for name in names)
        return WorkingCopy(str(path), configs, _hooks(inside / "hooks"))
    except OSError as error:
        return _unread(path, error.strerror or "it cannot be read")


def _unread(path: Path, why: str) -> WorkingCopy:
    return WorkingCopy(str(path), (("config", Read(None, why)),))


def _text(path: Path) -> Read[str | None]:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        return Read(None, "it is a link or no file: git would write where it leads")
    if status.st_size > _LARGEST:
        return Read(None, f"it has more than {_LARGEST:,} bytes")
    return Read(path.read_text("utf-8", "surrogateescape"))


def _hooks(directory: Path) -> Read[tuple[str, ...]]:
    if directory.is_symlink():
        return Read((), "it is a link")
    if not directory.exists():
        return Read(())
    return Read(tuple(sorted(one.name for one in directory.iterdir() if not one.name.endswith(".sample"))))


async def pins_of(settings: Settings, entries: tuple[PinEntry, ...]) -> tuple[PinFacts, ...]:
    """Each line of the lock file with what its upstream says."""
    return tuple([await _pin(settings, entry) for entry in entries])


async def _pin(settings: Settings, entry: PinEntry) -> PinFacts:
    if not entry.repository:
        return PinFacts(entry)
    try:
        pin, mirror = pin_of(settings, entry.repository, entry.commit), mirror_of(settings.home, entry.repository)
        if is_full_object_id(entry.commit):
            return PinFacts(entry, tree=Read(await pins.resolve(mirror, pin)))
        mirror.open()
        await mirror.refuse_disguised_refs(pin.upstream)
        return PinFacts(entry)
    except LineFault as fault:
        if fault.rule == "ref_named_like_commit":
            return PinFacts(entry, refs=f"a branch or tag is named like a commit: {fault.path}")
        if fault.rule in _OF_THE_COMMIT:
            return PinFacts(entry, commit=f"no branch or tag of it leads to {entry.commit}")
        return PinFacts(entry, tree=Read(None, str(fault)))
    except (Transient, UserError, OSError) as error:
        return PinFacts(entry, tree=Read(None, str(error)))


async def host(settings: Settings, floors: tuple[str, ...], dpkg: Path = _DPKG) -> Host:
    """Whether sandboxes of this machine hold, where they may send, and the versions that the floors name."""
    versions = {name: _version(name, dpkg) for name in floors}
    try:
        uploads: Read[tuple[str, ...]] = Read(doctor.uploads(settings))
    except ValueError as fault:
        uploads = Read((), str(fault))
    if not settings.e2b_api_key.get_secret_value() and shutil.which("bwrap") is None:
        return Host(Read("", "bubblewrap is not installed here"), "", uploads, versions)
    found = await doctor.sandboxes(settings)
    return Host(Read(found.state if found.blocks else ""), "" if found.blocks else found.hint, uploads, versions)


def _version(name: str, dpkg: Path) -> Read[str | None]:
    """A kernel and this product say themselves what they are; everything else is asked of Debian's records."""
    if name == "kernel":
        return Read(platform.release())
    if name == "pullwright":
        try:
            return Read(version(name))
        except PackageNotFoundError:
            return Read(None, "it is not installed as a package")
    try:
        records = dpkg.read_text("utf-8", "replace")
    except OSError:
        return Read(None, "this machine has no Debian packages")
    record = re.search(rf"^Package: {re.escape(name)}\n(?:.+\n)*", records, re.MULTILINE)
    found = re.search(r"^Version: (\S+)$", record[0], re.MULTILINE) if record else None
    if record is None or found is None or "Status: install ok installed" not in record[0]:
        return Read(None, "it is no package that is installed here")
    return Read(found[1])
