"""Where people find the pages of a GitHub, from the address of its API."""

from __future__ import annotations

import pytest

from bot.providers.forge.addresses import hosted, pages_of


@pytest.mark.parametrize(
    ("api", "pages", "public"),
    [
        ("https://api.github.com", "https://github.com", True),
        ("https://api.github.com/", "https://github.com", True),
        ("https://api.octo.ghe.com", "https://octo.ghe.com", True),
        ("https://git.example.org/api/v3", "https://git.example.org", False),
        ("https://api.example.org:8443/api/v3/", "https://api.example.org:8443", False),
        ("http://127.0.0.1:4000", "http://127.0.0.1:4000", False),
        ("https://api.github.com.example.org", "https://api.github.com.example.org", False),
    ],
)
def test_pages_stand_beside_the_api_or_at_github_com(api: str, pages: str, public: bool):
    assert (pages_of(api), hosted(api)) == (pages, public)
