"""Registration of an App by manifest: the settings page that a browser posts to, and the code it comes back with."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from bot.emulators.github.call import Reply
from bot.emulators.github.world import World

_PAGE = re.compile(r"(?:/organizations/[^/]+)?/settings/apps/new")
_LIVES = timedelta(hours=1)
_REQUIRED = ("name", "url")


class SettingsPage:
    """Answers the form post as if the owner pressed "Create" at once."""

    def __init__(self, world: World) -> None:
        self._world = world

    def recognises(self, method: str, path: str) -> bool:
        return method == "POST" and _PAGE.fullmatch(path) is not None

    async def answer(self, request: Request) -> Reply:
        async with request.form() as form:
            text, state = form.get("manifest"), request.query_params.get("state") or form.get("state")
        manifest = _read(text)
        if manifest is None:
            return Reply({"message": "Invalid manifest"}, 422)
        code = secrets.token_hex(20)
        self._world.manifest_codes[code] = self._world.clock.now() + _LIVES
        app = self._world.app
        app.name = str(manifest["name"])
        app.webhook_url = manifest.get("hook_attributes", {}).get("url", app.webhook_url)
        back = {"code": code, **({"state": str(state)} if state else {})}
        address = f"{manifest['redirect_url']}?{urlencode(back)}"
        return Reply(raw=b"", status=302, media_type="text/html", headers={"Location": address})


def _read(text: object) -> Mapping[str, Any] | None:
    """The manifest, if it has what the real page asks for."""
    try:
        manifest = json.loads(str(text))
    except ValueError:
        return None
    if not isinstance(manifest, dict) or not all(manifest.get(key) for key in (*_REQUIRED, "redirect_url")):
        return None
    hook = manifest.get("hook_attributes", {"url": "http://127.0.0.1/"})
    return manifest if isinstance(hook, dict) and hook.get("url") else None
