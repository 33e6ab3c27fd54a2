"""`pullwright setup`: creates the GitHub App by its manifest. A person presses the button on GitHub; the key comes here, and stays here."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.commands import manifest
from bot.commands.credentials import KEY_FILE, reserved
from bot.commands.desk import Desk, Say
from bot.commands.manifest import Webhook
from bot.domain.errors import UserError
from bot.providers.forge.addresses import hosted, pages_of
from bot.providers.forge.registration import NewApp, Registrar
from bot.settings import APP_FILE, APP_VARIABLES, PROJECT, Settings
from bot.web.registration import Form, build
from bot.web.serving import bound, listening

PATIENCE = 3600.0
"""Seconds until it gives up: as long as GitHub keeps a code."""
_LINE = 8192


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for, checked. `owner` is an organisation, or "" for whoever presses the button; port 0 takes a free one."""

    webhook: Webhook
    name: str = manifest.NAME
    owner: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True)
class Registered:
    """An App, and where its credentials lie."""

    app: NewApp
    key_file: Path
    env_file: Path


def requested(settings: Settings, webhook_url: str, name: str, owner: str, port: int) -> Request:
    """Raises UserError for what GitHub would refuse, and where there is an App already."""
    api = settings.github_api_url
    if not re.fullmatch(r"https?://[^/@\s]+(/\S*)?", api):
        raise UserError(f"PULLWRIGHT_GITHUB_API_URL is no address: {api}.", "It looks like https://HOST/api/v3.")
    if settings.app_file is not None:
        raise UserError(
            f"There is an App already: {settings.app_id or 'one'} in {settings.app_file}.",
            f"For another one, move {APP_FILE} and {KEY_FILE} away first, or set PULLWRIGHT_HOME to another directory.",
        )
    if settings.names_app():
        raise UserError(
            f"The environment names an App already{f', {settings.app_id}' if settings.app_id else ''}, and it would stay in force.",
            f"For another one, first: unset {' '.join(APP_VARIABLES)}",
        )
    hook = manifest.webhook(webhook_url, public=hosted(api))
    return Request(hook, manifest.app_name(name), manifest.organisation(owner), port)


async def register(
    settings: Settings, request: Request, say: Say, source: int | None, patience: float = PATIENCE
) -> Registered:
    """Wait for somebody to create the App on GitHub, and keep its key. `source` is where addresses may be pasted.

    Raises UserError when nobody did, or when the key could not be kept; OSError for a port that is taken. Nothing is left behind then
    but what was already written.
    """
    asked = _asked(PROJECT / "app.yml")
    pages, state = pages_of(settings.github_api_url), secrets.token_urlsafe(32)
    app: NewApp | None = None
    try:
        async with AsyncExitStack() as stack:
            drafts = stack.enter_context(reserved(settings.home))
            door = stack.enter_context(bound("127.0.0.1", request.port))
            port = door.getsockname()[1]
            registrar = Registrar(settings.github_api_url, settings.proxy(settings.github_api_url))
            stack.push_async_callback(registrar.close)
            form = Form(
                path=secrets.token_urlsafe(16),
                action=manifest.form_address(pages, request.owner, state),
                manifest=json.dumps(manifest.manifest(asked, request.webhook, request.name, port)),
                name=request.name,
                origins=(pages, f"http://127.0.0.1:{port}"),
                apps=manifest.apps_page(pages, request.owner),
            )
            desk = Desk(state, registrar, drafts, say)
            await stack.enter_async_context(listening(build(form, desk), door))
            pasting = stack.enter_context(lines(source, desk.paste))
            say(_invitation(port, form.path, pasting=pasting))
            app = await desk.app(patience)
    except asyncio.CancelledError:
        if app is None:
            raise
    return Registered(app, settings.home / KEY_FILE, settings.home / APP_FILE)


def _asked(path: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    try:
        permissions, events = manifest.read_manifest(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(
            f"{path} cannot be used: {why}.", "It says which permissions and events the App has."
        ) from error
    return dict(permissions), events


@contextmanager
def lines(source: int | None, take: Callable[[str], None]) -> Iterator[bool]:
    """Hands on each line that is typed, and yields whether any can be: not from a file, nor from what is closed."""
    reader = None if source is None else _Reader(source, take)
    readable = reader is not None and reader.begin()
    try:
        yield readable
    finally:
        if reader is not None and readable:
            reader.end()


class _Reader:
    def __init__(self, source: int, take: Callable[[str], None]) -> None:
        self._source = source
        self._take = take
        self._rest = b""
        self._loop = asyncio.get_running_loop()

    def begin(self) -> bool:
        try:
            self._loop.add_reader(self._source, self._read)
        except (OSError, ValueError):
            return False
        return True

    def end(self) -> None:
        self._loop.remove_reader(self._source)

    def _read(self) -> None:
        chunk = b"" if _behind(self._source) else _chunk(self._source)
        if not chunk:
            self.end()
        *whole, rest = (self._rest + (chunk or b"\n")).split(b"\n")
        self._rest = rest if len(rest) < _LINE else b""
        for line in whole:
            self._take(line.decode("utf-8", "replace"))


def _behind(source: int) -> bool:
    """Whether the terminal is somebody else's now: to read from it in the background would stop this process."""
    return os.isatty(source) and os.tcgetpgrp(source) != os.getpgrp()


def _chunk(source: int) -> bytes:
    """What is there to read; nothing at the end, or when it is gone."""
    try:
        return os.read(source, 4096)
    except OSError:
        return b""


def terminal() -> int | None:
    """Standard input, if there is one."""
    try:
        return sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        return None


def run(settings: Settings, request: Request, say: Say) -> Registered:
    """`register` on standard input. Raises KeyboardInterrupt when it was told to stop, by SIGTERM as well."""

    async def cancellable() -> Registered:
        work = asyncio.ensure_future(register(settings, request, say, terminal()))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
        return await work

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _invitation(port: int, path: str, *, pasting: bool) -> str:
    told = [
        "Open this address in a browser and press the button:",
        "",
        f"  http://127.0.0.1:{port}/{path}",
        "",
        "Is the browser on another machine? Then, over there, first:",
        "",
        f"  ssh -L {port}:127.0.0.1:{port} {socket.gethostname()}",
    ]
    if pasting:
        told += ["", "Or let it fail to come back, and paste here the address at which it ended."]
    return "\n".join(told)


def told(registered: Registered, request: Request, *, as_json: bool) -> str:
    """What was made, where it lies, and what is next."""
    app = registered.app
    if as_json:
        facts = {
            "app_id": app.id,
            "slug": app.slug,
            "name": app.name,
            "owner": app.owner,
            "html_url": app.html_url,
            "install_url": app.install_url,
            "key_file": str(registered.key_file),
            "env_file": str(registered.env_file),
        }
        return json.dumps(facts)
    parts = [
        f"Made the GitHub App {app.name} (id {app.id}){f' of {app.owner}' if app.owner else ''}.",
        f"Its key lies in {registered.key_file}, its id and webhook secret in {registered.env_file}: every command reads them there.",
    ]
    if not app.webhook_secret:
        parts.append(
            f"GitHub told no webhook secret: set one on {app.html_url}, and as PULLWRIGHT_WEBHOOK_SECRET in that file."
        )
    parts += [
        "\nNext:\n",
        f"  {app.install_url}   install it on a repository",
        "  export ANTHROPIC_API_KEY=…",
        "  pullwright doctor",
        f"  pullwright serve   GitHub has to reach it at {request.webhook.url}",
    ]
    return "\n".join(parts)
