"""Examines this machine and the configuration, in words a person understands."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from bot.custody.git import GitError, git
from bot.domain.errors import Transient, UserError
from bot.providers.forge.connection import signing_key
from bot.providers.store.sql import open_store
from bot.sandboxd.egress.rules import parse_entry
from bot.sandboxd.errors import IsolationUnavailable
from bot.sandboxd.serve import Config, running
from bot.settings import Settings

_TAKES_UPLOADS = re.compile(
    r"(?:^|\.)(?:github\.com|githubusercontent\.com|gitlab\.com|bitbucket\.org|codeberg\.org|amazonaws\.com|r2\.cloudflarestorage\.com"
    r"|googleapis\.com|blob\.core\.windows\.net|digitaloceanspaces\.com|dropbox(?:api)?\.com|pastebin\.com|transfer\.sh|0x0\.st|file\.io"
    r"|slack\.com|discord\.com|telegram\.org|webhook\.site|requestbin\.com|ngrok\.(?:io|app)|huggingface\.co)$"
)
"""Hosts where whoever has an account, or nobody, can leave data (specs/security.md §4.3)."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `blocks`: nothing can be served until it is put right."""

    subject: str
    state: str
    blocks: bool = False
    hint: str = ""


async def examine(settings: Settings) -> tuple[Finding, ...]:
    """All findings, the machine's first."""
    return (
        Finding("Python", sys.version.split()[0]),
        await _git(),
        await sandboxes(settings),
        egress(settings),
        *proxy(settings),
        *configuration(settings),
        _database(settings),
    )


async def _git() -> Finding:
    try:
        result = await git(["--version"], git_dir=None)
    except (GitError, OSError) as error:
        return Finding("git", f"does not run: {error}", blocks=True, hint="apt-get install git")
    return Finding("git", result.stdout.decode().strip().removeprefix("git version "))


async def sandboxes(settings: Settings) -> Finding:
    """Where tasks would run, after the probe of a local sandbox."""
    if settings.e2b_api_key.get_secret_value():
        where = settings.e2b_api_url or "E2B Cloud"
        return Finding("sandboxes", f"{where}: one microVM with its own kernel per task, egress closed at creation")
    if shutil.which("bwrap") is None:
        return Finding("sandboxes", "bubblewrap is missing", blocks=True, hint="apt-get install bubblewrap")
    try:
        async with running(Config(settings.home, "doctor-probe-key", weaker=settings.weaker_isolation)) as endpoint:
            shortfall = endpoint.shortfall
    except IsolationUnavailable as refusal:
        return Finding("sandboxes", str(refusal), blocks=True)
    return isolation(shortfall)


def isolation(shortfall: str) -> Finding:
    """The level of local sandboxes that pass their probe."""
    level = (
        "local: a Linux namespace of everything, an unprivileged user, filtered system calls, no network but the hosts you allow, "
        "no file of this machine; it shares this machine's kernel, so one kernel fault is a way out (E2B Cloud has none to share)"
    )
    if not shortfall:
        return Finding("sandboxes", f"{level}; memory, processes and processor time bounded by control groups")
    return Finding(
        "sandboxes", f"{level}; weaker than it could be", hint=f"{shortfall} Every approval summary says so."
    )


def egress(settings: Settings) -> Finding:
    """What sandboxes may reach, and which of it takes what somebody sends there."""
    always, during_setup = settings.hosts()
    try:
        taking = uploads(settings)
    except ValueError as fault:
        return Finding("network", str(fault), blocks=True, hint="PULLWRIGHT_EGRESS, PULLWRIGHT_SETUP_EGRESS")
    if not always and not during_setup:
        return Finding("network", "closed: a sandbox reaches no host")
    said = f"sandboxes reach {', '.join(always) or 'no host'}; during set-up also {', '.join(during_setup) or 'none'}"
    if not taking:
        return Finding("network", said)
    hint = f"Anybody may upload to {', '.join(taking)}: what a task can read, a hostile repository can send there. Use a read-only mirror."
    return Finding("network", said, hint=hint)


def proxy(settings: Settings) -> tuple[Finding, ...]:
    """The way to GitHub and to the model where the environment names a proxy; its user and password are not shown."""
    try:
        ways = {where: settings.proxy(where) for where in (settings.github_api_url, settings.anthropic_base_url)}
    except UserError as fault:
        return (Finding("proxy", fault.message, blocks=True, hint=fault.hint),)
    return tuple(
        Finding("proxy", f"{where} through {urlsplit(way).netloc.rpartition('@')[2]}")
        for where, way in ways.items()
        if way is not None
    )


def uploads(settings: Settings) -> tuple[str, ...]:
    """The hosts that sandboxes may reach and that take uploads. Raises ValueError for an entry that is none."""
    always, during_setup = settings.hosts()
    hosts = [parse_entry(entry) for entry in (*always, *during_setup)]
    return tuple(str(entry) for entry in hosts if _TAKES_UPLOADS.search(entry.host))


def _app(settings: Settings) -> Finding:
    """Where the App comes from."""
    if settings.app_file is not None:
        return Finding("GitHub App", f"from {settings.app_file}")
    if settings.names_app():
        return Finding("GitHub App", "from the environment")
    return Finding("GitHub App", "none yet", hint="pullwright setup https://YOUR-HOST/webhook makes one")


def configuration(settings: Settings) -> tuple[Finding, ...]:
    """The App, and each setting without which nothing is served."""
    rows = (
        ("PULLWRIGHT_APP_ID", bool(settings.app_id)),
        ("PULLWRIGHT_WEBHOOK_SECRET", bool(settings.webhook_secret.get_secret_value())),
        ("ANTHROPIC_API_KEY", bool(settings.anthropic_api_key.get_secret_value())),
    )
    found = [_app(settings)]
    found += [
        Finding(
            name,
            "set" if is_set else "not set",
            blocks=not is_set,
            hint="" if is_set else "README.md, “Connect your App”",
        )
        for name, is_set in rows
    ]
    try:
        signing_key(settings.private_key())
        found.append(Finding("PULLWRIGHT_PRIVATE_KEY_FILE", "set, usable"))
    except UserError as error:
        found.append(Finding("PULLWRIGHT_PRIVATE_KEY_FILE", error.message, blocks=True, hint=error.hint))
    voyage = "set" if settings.voyage_api_key.get_secret_value() else "not set: ranking uses words and outlines only"
    found.append(Finding("VOYAGE_API_KEY", voyage))
    return tuple(found)


def _database(settings: Settings) -> Finding:
    kind = "PostgreSQL" if settings.database_url.startswith("postgres") else "SQLite (one process)"
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        open_store(settings.database()).close()
    except (Transient, OSError, ValueError) as error:
        return Finding("database", f"{kind}: {error}", blocks=True, hint="Check DATABASE_URL and PULLWRIGHT_HOME.")
    return Finding("database", f"{kind}, reachable")


def render(findings: tuple[Finding, ...], *, as_json: bool) -> str:
    """The report."""
    if as_json:
        return json.dumps({"ok": not any(f.blocks for f in findings), "findings": [asdict(f) for f in findings]})
    width = max(len(finding.subject) for finding in findings)
    lines = []
    for finding in findings:
        mark = "✗" if finding.blocks else "✓"
        lines.append(f"{mark} {finding.subject:<{width}}  {finding.state}")
        if finding.hint:
            lines.append(f"  {'':<{width}}  → {finding.hint}")
    return "\n".join(lines)
