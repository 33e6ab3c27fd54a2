"""The audit of an organisation: reads with a credential of its own, changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

from bot.audit import report, run
from bot.audit.checks import Audit, audited
from bot.audit.operator import Operator, read_last_report, read_operator, read_pins
from bot.commands import audit_local
from bot.commands.manifest import read_manifest
from bot.domain.errors import UserError
from bot.settings import PROJECT, Settings
from bot.wiring import log_of, organisation_of

T = TypeVar("T")
told, exit_code = report.told, report.exit_code


async def audit(
    settings: Settings, organisation: str, config: Path | None, manifest: Path = PROJECT / "app.yml"
) -> Audit:
    """Read everything and judge it. Raises UserError for a token or a file that cannot be used."""
    token = settings.audit_token.get_secret_value()
    if not token:
        raise UserError(
            "PULLWRIGHT_AUDIT_TOKEN is not set.",
            "Make a read-only token for the audit alone; docs/operating.md lists the rights it needs.",
        )
    operator = _parsed(config, read_operator) if config else Operator()
    last = _parsed(operator.last_report, read_last_report) if operator.last_report else None
    entries = _parsed(operator.lock_file, read_pins) if operator.lock_file else None
    async with AsyncExitStack() as closing:
        log = None if settings.untouched() else log_of(settings)
        if log is not None:
            closing.callback(log.close)
        here = run.Here(
            manifest=_parsed(manifest, read_manifest),
            copies=tuple(map(audit_local.working_copy, operator.working_copies)) or None,
            pins=None if entries is None else await audit_local.pins_of(settings, entries),
            host=await audit_local.host(settings, tuple(operator.floors)),
            log=log,
        )
        reader = organisation_of(settings, token)
        closing.push_async_callback(reader.close)
        return audited(await run.read(organisation, operator, reader, here), last)


def _parsed(path: Path, read: Callable[[str], T]) -> T:
    try:
        return read(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(f"{path} cannot be used: {why}.", "Correct it and start again.") from error
