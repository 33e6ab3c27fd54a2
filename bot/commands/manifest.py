"""What `pullwright setup` asks GitHub for: an App's manifest, and the checks of what it is made from. Pure.

The form of the manifest and of the address it is posted to are GitHub's ("Registering a GitHub App from a manifest").
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import yaml

from bot.domain.errors import UserError
from bot.web.registration import CREATED

LONGEST_NAME = 34
"""Characters of an App's name (GitHub, "Registering a GitHub App")."""
NAME = "Pullwright"
_ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}")
_WRITABLE = re.compile(r"[!-~]+")
_INWARD = (".localhost", ".local", ".internal")
_EXAMPLE = "It looks like https://bot.example.org/webhook."


@dataclass(frozen=True, slots=True)
class Webhook:
    """The address that GitHub delivers to, and the origin it is at."""

    url: str
    origin: str


def webhook(text: str, *, public: bool) -> Webhook:
    """Checked and completed: without a path it is `/webhook`. `public`: GitHub itself delivers, so an address that only this machine or
    this network knows is refused, as GitHub refuses it. Raises UserError."""
    if not _WRITABLE.fullmatch(text) or "\\" in text:
        raise UserError("The webhook's address has characters that none has.", _EXAMPLE)
    try:
        parts = urlsplit(text)
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise UserError(f"{text} is no address.", _EXAMPLE) from None
    if parts.scheme not in {"http", "https"} or not host:
        raise UserError("The webhook's address has to begin with https:// (or http://) and name a host.", _EXAMPLE)
    if "@" in parts.netloc:
        raise UserError("The webhook's address must not hold a user or a password.", "GitHub signs what it delivers.")
    if parts.fragment:
        raise UserError("The webhook's address must not have a part after #: no server sees it.", _EXAMPLE)
    if public and _inward(host.rstrip(".")):
        raise UserError(
            f"GitHub cannot reach {host}: it delivers to addresses of the public internet only.",
            "Name the address at which it reaches `pullwright serve`: of a reverse proxy, or of a tunnel to this machine (cloudflared, ngrok).",
        )
    path = parts.path if parts.path.strip("/") else "/webhook"
    return Webhook(parts._replace(path=path).geturl(), f"{parts.scheme}://{parts.netloc}")


def _inward(host: str) -> bool:
    """Whether an address is this machine's or of a private network, or a name that no public server has."""
    address = _address(host)
    if address is not None:
        return not address.is_global
    return "." not in host or host.endswith(_INWARD)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """None for a name. `127.1` and the like are addresses, too."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def app_name(text: str) -> str:
    """Without spaces around it. Raises UserError."""
    name = text.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UserError(f"An App's name has 1 to {LONGEST_NAME} characters.", "--name gives it another one.")
    return name


def organisation(text: str) -> str:
    """An organisation's login, "" for the person's own account. Raises UserError."""
    if text and not _ACCOUNT.fullmatch(text):
        raise UserError(
            "That is no organisation's name on GitHub.", "--organization takes the last part of https://github.com/ORG."
        )
    return text


def apps_page(pages: str, owner: str) -> str:
    """Where the owner's Apps are listed; `owner` is an organisation, or "" for the person."""
    return f"{pages}/organizations/{owner}/settings/apps" if owner else f"{pages}/settings/apps"


def form_address(pages: str, owner: str, state: str) -> str:
    """Where the manifest is posted to."""
    return f"{apps_page(pages, owner)}/new?{urlencode({'state': state})}"


def manifest(asked: tuple[Mapping[str, str], tuple[str, ...]], hook: Webhook, name: str, port: int) -> dict[str, Any]:
    """The App, as GitHub wants it described; `asked` are its permissions and events."""
    permissions, events = asked
    return {
        "name": name,
        "url": hook.origin,
        "hook_attributes": {"url": hook.url, "active": True},
        "redirect_url": f"http://127.0.0.1:{port}{CREATED}",
        "public": False,
        "default_permissions": dict(permissions),
        "default_events": list(events),
    }


def read_manifest(text: str) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Permissions and events that app.yml asks for. Raises ValueError."""
    try:
        asked = yaml.safe_load(text)
        return dict(asked["default_permissions"]), tuple(asked["default_events"])
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise ValueError("it is no App's manifest") from error


def pasted(line: str) -> tuple[str, str] | None:
    """Code and state of an address that a browser ended at; None when the line is no such address."""
    try:
        parts = urlsplit(line.strip())
        asked = parse_qs(parts.query)
    except ValueError:
        return None
    code, state = asked.get("code", []), asked.get("state", [])
    return (code[0], state[0]) if parts.path == CREATED and len(code) == len(state) == 1 else None
