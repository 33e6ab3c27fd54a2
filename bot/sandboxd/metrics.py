"""What a sandbox uses now, as E2B tells it: one sample for each question."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

from bot.sandboxd.cgroups import usage
from bot.sandboxd.limits import Limits
from bot.sandboxd.sandbox import Sandbox


async def sample(sandbox: Sandbox, limits: Limits) -> dict[str, object]:
    """Memory by the control group where there is one; processor time since the last question, in per cent of what it may use."""
    reply = await sandbox.ask("numbers")
    now, used = time.time(), _seconds(reply.fields.get("cpu"))
    before, already = sandbox.sampled or (sandbox.started_at, 0.0)
    sandbox.sampled = (now, used)
    grouped = await asyncio.to_thread(usage, sandbox.group)
    return {
        "timestamp": datetime.fromtimestamp(now, UTC).isoformat().replace("+00:00", "Z"),
        "timestampUnix": int(now),
        "cpuCount": max(1, round(limits.cpus)),
        "cpuUsedPct": round(max(0.0, used - already) / max(0.001, now - before) / limits.cpus * 100, 2),
        "memUsed": grouped.get("memory", reply.number("memory")),
        "memTotal": limits.memory_bytes,
        "memCache": 0,
        "diskUsed": reply.number("disk"),
        "diskTotal": reply.number("disk_total"),
    }


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
