"""Addresses in responses follow the Host header and the prefix of the request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Urls:
    """`web` is scheme and host; `prefix` is empty or `/api/v3`."""

    web: str
    prefix: str = ""

    def api(self, path: str) -> str:
        return f"{self.web}{self.prefix}/{path}"

    def repo(self, full_name: str, path: str = "") -> str:
        return self.api(f"repos/{full_name}{path}")

    def html(self, path: str) -> str:
        return f"{self.web}/{path}"
