"""Where a GitHub's pages are, from the address of its API. Pure, and free of the vendor's client."""

from __future__ import annotations

from urllib.parse import urlsplit

_PUBLIC = "api.github.com"
_RESIDENT = ".ghe.com"


def hosted(api_url: str) -> bool:
    """Whether GitHub itself runs it, so that it reaches public addresses only: github.com, or `NAME.ghe.com` (data residency)."""
    host = urlsplit(api_url).hostname or ""
    return host == _PUBLIC or host.endswith(_RESIDENT)


def pages_of(api_url: str) -> str:
    """The origin of the pages that people open: of `https://api.github.com` it is `https://github.com`, of `https://api.NAME.ghe.com`
    `https://NAME.ghe.com`; an Enterprise Server (`https://HOST/api/v3`) and a stand-in have both at one origin."""
    parts = urlsplit(api_url)
    where = parts.netloc.lower().rpartition("@")[2]
    return f"{parts.scheme}://{where.removeprefix('api.') if hosted(api_url) else where}"
