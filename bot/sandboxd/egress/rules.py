"""What a name on the allow-list is, what a CONNECT may ask for, and which addresses are public. Pure."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

HTTPS = 443
_HOST = re.compile(r"(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_TARGET = re.compile(r"([A-Za-z0-9.-]{1,255}):([0-9]{1,5})")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Denied(Exception):  # noqa: N818 - a decision, not a fault
    """No way out: `status` is HTTP's, `reason` one line for people. `target` is who was asked for, as far as it is known.

    `unlisted`: the allow-list does not name it, and nothing else is wrong.
    """

    def __init__(self, status: int, reason: str, target: str = "", *, unlisted: bool = False) -> None:
        self.status = status
        self.reason = reason
        self.target = target
        self.unlisted = unlisted
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Destination:
    """A host by its exact name, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_entry(text: str) -> Destination:
    """An entry of the allow-list: `host` (port 443) or `host:port`. ValueError for patterns, addresses and anything else."""
    host, _, port = text.strip().partition(":")
    named = plain_host(host)
    number = int(port) if port.isdecimal() else HTTPS if not port else 0
    if named is None or not 0 < number < 1 << 16:
        raise ValueError(f"{text!a} is not an exact host name with an optional port, such as files.example.org:443")
    return Destination(named, number)


def parse_target(text: str) -> Destination:
    """What follows CONNECT. Raises Denied."""
    found = _TARGET.fullmatch(text)
    if found is None:
        raise Denied(400, "Only HOST:PORT can be asked for")
    host = plain_host(found[1])
    if host is None or not 0 < int(found[2]) < 1 << 16:
        raise Denied(403, "Only host names can be asked for, no addresses", text[:260])
    return Destination(host, int(found[2]))


def plain_host(text: str) -> str | None:
    """A host name in its one form: lower case, no trailing dot, a last label of letters; None for anything else."""
    lowered = text.lower() if text.isascii() else ""
    host = lowered.removesuffix(".")
    return host if _HOST.fullmatch(host) else None


def is_public(address: str) -> bool:
    """Whether the address is one of the open internet, also when it wraps another one."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = [found.ipv4_mapped, found.sixtofour, *(found.teredo or ())]
        if found in _NAT64:
            inner.append(ipaddress.IPv4Address(int(found) & 0xFFFFFFFF))
        if any(each is not None and not each.is_global for each in inner):
            return False
        if found.ipv4_mapped is not None:
            return found.ipv4_mapped.is_global
    return found.is_global and not found.is_multicast and not found.is_reserved
