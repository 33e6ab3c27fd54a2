"""What is taken away while the product works (R03, R04): the disk, the right time, a worker. It refuses or waits, and goes on afterwards."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn

from bot.commands.worker import _name
from bot.domain.repository import LandingMode
from bot.providers.store.sql import open_store, sqlite_url
from bot.web.app import WebSettings, build
from tests.attacks.conftest import Control
from tests.attacks.test_webhook import RAW, SECRET, Door, serving
from tests.histories.history import playing

LARGE = RAW[:-1] + b', "padding": "' + b"x" * 3_000_000 + b'"}'
ONE_MIB = 1024 * 1024
ROOT = Path(__file__).parents[2]


@contextmanager
def a_full_disk() -> Iterator[None]:
    """No file of this process grows beyond a mebibyte: what SQLite then hears is what a full disk says."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ONE_MIB, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_r03_what_a_full_disk_cannot_keep_is_not_acknowledged(tmp_path: Path, control: Control):
    store = open_store(sqlite_url(tmp_path / "store.db"))
    door = Door(0, store)
    settings = WebSettings(secrets=(SECRET,), tasks=store.tasks, ledger=store.ledger)
    with serving(uvicorn.Config(build(door, settings), port=0, log_config=None, lifespan="off")) as port:
        door.port = port
        with a_full_disk():
            assert door.send(LARGE, {"x-github-delivery": "large"}) == 503
            assert await store.deliveries.unfinished() == ()
        control(door.send(LARGE, {"x-github-delivery": "large"}) == 202, "with room, the same delivery is taken")
        assert await store.deliveries.unfinished() == ("large",)
    store.close()


@pytest.mark.parametrize("seconds", [86_400, -86_400])
async def test_r03_a_clock_a_day_off_costs_tokens_and_no_approval(seconds: int, tmp_path: Path, control: Control):
    async with playing(tmp_path, LandingMode.MERGE) as history:
        tokens = history.stage.world.registry.tokens
        before = dict(tokens)
        history.stage.world.clock.advance(seconds)
        headers = {"Authorization": f"token {next(iter(before))}", "User-Agent": "somebody"}
        old = await history.stage.people.request("GET", history.here, headers=headers)
        control(old.status_code == (401 if seconds > 0 else 200), "GitHub judges the tokens of before by its own clock")
        await history.review("rudi", "APPROVE", history.pull.head_sha)
        await history.deliver_all()
        assert history.counts["landed"] == 0
        await history.review("robin", "APPROVE", history.pull.head_sha)
        await history.deliver_all()
        history.check()
        assert history.counts["landed"] == 1
        assert seconds < 0 or tokens.keys() - before


_HOLDS = """
import sys
from pathlib import Path
from bot.commands.worker import _name
with _name(Path(sys.argv[1]), "host") as name:
    print(name, flush=True)
    sys.stdin.read()
"""


def test_r04_a_worker_that_stands_still_keeps_its_name_and_a_dead_one_gives_it_up(tmp_path: Path, control: Control):
    """A name is the right to go on with what was begun under it: two that carry it would both act."""
    command = [sys.executable, "-c", _HOLDS, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"host:worker:1\n"
        os.kill(other.pid, signal.SIGSTOP)
        with _name(tmp_path, "host") as mine:
            assert mine == "host:worker:2"
        other.kill()
        other.wait()
    assert list(tmp_path.glob("*worker:1.lock")), "what the dead one left is still there"
    with _name(tmp_path, "host") as mine:
        control(mine == "host:worker:1", "nothing but the life of the first kept its name from the second")
