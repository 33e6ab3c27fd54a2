"""Logs: one line each, as JSON for machines or plain for a terminal. Values of secrets never reach a log call."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog

_TOKEN = re.compile(r"\b(gh[opsur]_[A-Za-z0-9_.\-]{10,}|github_pat_\w{20,}|sk-ant-[\w-]{10,}|e2b_\w{10,})")


def configure(*, json_lines: bool = True, stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Set up logging for the process. Call once, from the command."""
    renderer: Any = structlog.processors.JSONRenderer() if json_lines else structlog.dev.ConsoleRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if json_lines else _unchanged,
            redact,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )


def _unchanged(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return event


def redact(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Mask what looks like a token in any text of the event."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = _TOKEN.sub("[token]", value)
    return event
