"""The webhook under load: real payloads, signed, at a steady rate against `pullwright serve`. Prints one JSON object last.

Every delivery is of a kind that has to be stored and worked through. Latency counts from the moment a delivery was due, so that a
server that stands still is not spared the deliveries that wait. `none lost` is read from the database after the end.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

from bot.emulators.github import Endpoint, running
from bot.stages.intake.signature import signature
from tests.births import surroundings

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "tests" / "fixtures" / "webhooks" / "examples.json.gz"
KINDS = {
    ("issue_comment", "created"): 5,
    ("pull_request", "synchronize"): 3,
    ("pull_request_review", "submitted"): 1,
    ("pull_request_review_comment", "created"): 1,
}
"""What comes, and how often: events that intake stores and decides about. None of them starts a task here."""


@dataclass(frozen=True, slots=True)
class Delivery:
    id: str
    request: bytes


@dataclass(slots=True)
class Tally:
    """What came back, in milliseconds after it was due."""

    took: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Server:
    process: asyncio.subprocess.Process
    port: int
    home: Path

    def memory(self) -> float:
        """Resident MiB."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return round(int(text.partition("VmRSS:")[2].split()[0]) / 1024, 1)

    def seconds(self) -> float:
        """Processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def deliveries(number: int, secret: str, installation: int, seed: int) -> list[Delivery]:
    """Signed requests, each with an id and a body of its own."""
    examples = json.loads(gzip.decompress(EXAMPLES.read_bytes()))
    by_kind: dict[tuple[str, str], list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for event, payload in examples:
        if (event, payload.get("action")) in by_kind:
            by_kind[event, payload["action"]].append(payload)
    chance = random.Random(seed)
    made = []
    for at in range(number):
        kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
        payload = chance.choice(by_kind[kind]) | {"installation": {"id": installation}, "bench": at}
        identifier = str(UUID(int=chance.getrandbits(128)))
        made.append(Delivery(identifier, _request(kind[0], identifier, json.dumps(payload).encode(), secret)))
    return made


def _request(event: str, identifier: str, body: bytes, secret: str) -> bytes:
    head = (
        "POST /webhook HTTP/1.1",
        "Host: 127.0.0.1",
        "User-Agent: GitHub-Hookshot/bench",
        "Content-Type: application/json",
        f"X-GitHub-Event: {event}",
        f"X-GitHub-Delivery: {identifier}",
        f"X-Hub-Signature-256: {signature(secret, body)}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join([*head, "", ""]).encode() + body


@asynccontextmanager
async def serving(home: Path, hub: Endpoint) -> AsyncIterator[Server]:
    """The product in a process of its own, as its users run it."""
    environment = {
        **surroundings(home, hub),
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    }
    with (home / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(ROOT / ".venv/bin/pullwright", "serve"), env=environment, stdout=asyncio.subprocess.PIPE, stderr=log
        )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), 60)
        if not line:
            sys.exit((home / "log").read_text("utf-8", "replace")[-3000:])
        yield Server(process, int(json.loads(line)["url"].rpartition(":")[2]), home)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


async def send(port: int, delivery: Delivery, due: float, tally: Tally) -> None:
    """One delivery over a connection of its own, as GitHub's come."""
    await asyncio.sleep(due - time.perf_counter())
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(delivery.request)
        status = (await reader.readline()).split(b" ")[1].decode()
        tally.took.append((time.perf_counter() - due) * 1000)
        writer.close()
    except (OSError, IndexError):
        status = "broken"
    tally.statuses[status] += 1


def stored(home: Path) -> tuple[set[str], int]:
    """The ids in the database, and how many are finished."""
    path = next(path for path in (home / "data").rglob("*.db*") if _holds_deliveries(path))
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        rows = connection.execute("SELECT id, finished FROM deliveries").fetchall()
    return {row[0] for row in rows}, sum(row[1] for row in rows)


def _holds_deliveries(path: Path) -> bool:
    if path.suffix not in {".db", ".sqlite"} and ".db" not in path.suffixes:
        return False
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name='deliveries'").fetchone())
    except sqlite3.Error:
        return False


async def measure(rate: int, seconds: float, seed: int, patience: float) -> dict[str, Any]:
    number = int(rate * seconds)
    with TemporaryDirectory(prefix="bench-webhook-") as directory:
        home = Path(directory)
        async with running() as hub, serving(home, hub) as server:
            every = deliveries(number + 20, hub.webhook_secret, hub.installation_id, seed)
            warming, tally = Tally(), Tally()
            begin = time.perf_counter()
            await asyncio.gather(*(send(server.port, one, begin, warming) for one in every[number:]))
            await asyncio.sleep(3)
            before, spent = server.memory(), server.seconds()
            begin = time.perf_counter() + 0.5
            sending = (send(server.port, one, begin + at / rate, tally) for at, one in enumerate(every[:number]))
            await asyncio.gather(*sending)
            busy, spent = time.perf_counter() - begin, server.seconds() - spent
            after = server.memory()
            drained = await _drained(home, len(every), patience)
            ids, finished = stored(home)
    took = sorted(tally.took)
    return {
        "deliveries": number,
        "per_second": rate,
        "seconds": round(busy, 2),
        "statuses": dict(tally.statuses),
        "p50_ms": round(took[len(took) // 2], 1),
        "p99_ms": round(took[int(len(took) * 0.99)], 1),
        "max_ms": round(took[-1], 1),
        "lost": len({one.id for one in every} - ids),
        "unfinished": len(ids) - finished,
        "drained_after_s": drained,
        "cpu_share": round(spent / busy, 2),
        "memory_mib": {"before": before, "after": after},
    }


async def _drained(home: Path, number: int, patience: float) -> float | None:
    """Seconds until intake has decided about all of them; None when it takes longer than the patience."""
    began = time.monotonic()
    while time.monotonic() - began < patience:
        if stored(home)[1] >= number:
            return round(time.monotonic() - began, 1)
        await asyncio.sleep(0.5)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=200, help="deliveries a second")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patience", type=float, default=180.0, help="how long intake may take to work them off")
    given = parser.parse_args()
    print(json.dumps(asyncio.run(measure(given.rate, given.seconds, given.seed, given.patience))))


if __name__ == "__main__":
    main()
