"""Proxies that the environment names are for the outside: clients of services on this machine are told to ask them straight."""

from __future__ import annotations

from collections.abc import MutableMapping

_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")
_SPARED = ("NO_PROXY", "no_proxy")


def spare_this_machine(environment: MutableMapping[str, str]) -> None:
    """Add this machine to NO_PROXY where any proxy is named. The vendors' clients read it themselves, some the one spelling, some the other."""
    if not any(name.lower().endswith("_proxy") and name not in _SPARED for name in environment):
        return
    spared = [host.strip() for name in _SPARED for host in environment.get(name, "").split(",")]
    told = ",".join(dict.fromkeys(host for host in (*spared, *_THIS_MACHINE) if host))
    environment.update(dict.fromkeys(_SPARED, told))
