"""Seconds by phase, from the log lines that the product writes for every act."""

from __future__ import annotations

import json
from pathlib import Path


def seconds(log: Path) -> dict[str, float]:
    """Seconds by act, the model's calls and the tool calls of a step added up."""
    found: dict[str, float] = {}
    for line in log.read_text("utf-8", "replace").splitlines():
        if '"event":"step"' not in line.replace(" ", ""):
            continue
        entry = json.loads(line)
        name = ":".join(part for part in str(entry["step"]).split(":") if not part.isdigit())
        found[name] = round(found.get(name, 0.0) + float(entry["seconds"]), 2)
    return found
