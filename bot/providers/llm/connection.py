"""The vendor's client, with the one way to the outside that it is given: it reads no proxy of the environment by itself."""

from __future__ import annotations

import ssl

import anthropic


def connected(
    *, api_key: str, base_url: str | None, timeout: anthropic.Timeout, proxy: str | None
) -> anthropic.AsyncAnthropic:
    """A client that trusts this machine's authorities. The SDK never retries here, because every attempt must be in the ledger first
    (design D5)."""
    http = anthropic.DefaultAsyncHttpxClient(proxy=proxy, trust_env=False, verify=ssl.create_default_context())
    return anthropic.AsyncAnthropic(
        api_key=api_key, base_url=base_url, max_retries=0, timeout=timeout, http_client=http
    )
