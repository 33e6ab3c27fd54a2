"""Tells the story: an issue becomes a merged change, with two corrections and one refused attempt on the way.

The stand-ins run in this process and speak HTTP; between them works the product as `serve` runs it. People act through
GitHub's API with tokens of their own.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import httpx
from pydantic import SecretStr

from bot.commands.serve import Serving, running
from bot.demo import script
from bot.demo.brain import DemoBrain
from bot.demo.figures import Figures, Trees
from bot.demo.people import Person
from bot.demo.telling import Teller
from bot.domain.errors import UserError
from bot.domain.money import dollars
from bot.emulators.anthropic import server as anthropic
from bot.emulators.anthropic.state import Config as AnthropicConfig
from bot.emulators.anthropic.state import State
from bot.emulators.github import server as github
from bot.emulators.github.config import Config as GithubConfig
from bot.emulators.github.config import LabelSeed, RepositorySeed, Seed, UserSeed
from bot.settings import Settings, load
from bot.telemetry import configure

T = TypeVar("T")

REPOSITORY = "corner-shop/bookshop"
LABEL = "agent"
PATIENCE = 240.0
POLL = 0.25
_DIGEST = re.compile(r"\| change digest \| `([0-9a-f]{64})` \|")
_TESTED = re.compile(r"\| tested tree \| `([0-9a-f]{40})` \|")


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """How to tell it."""

    as_json: bool = False
    keep: bool = False
    model: str = "scripted"


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the story plays."""

    serving: Serving
    hub: github.Endpoint
    messages: State | None
    requester: Person
    reviewer: Person
    colleague: Person


async def tell(options: DemoOptions) -> int:
    """Play the whole story; the exit code."""
    teller = Teller(quiet=options.as_json)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pullwright-demo-") as directory:
        home = Path(directory)
        with (home / "log.jsonl").open("w", encoding="utf-8") as log:
            configure(stream=log)
            try:
                async with _set_up(options, home) as stage:
                    figures = await _play(stage, teller)
                    figures = replace(figures, seconds=round(time.monotonic() - began, 1))
                    teller.close(figures)
                    if options.as_json:
                        print(json.dumps(figures.document()), flush=True)  # noqa: T201 - the command's result
                    if options.keep:
                        teller.keep(stage.hub.url, stage.serving.url)
                        await asyncio.Event().wait()
            except _Stuck as stuck:
                log.flush()
                teller.stuck(str(stuck), (home / "log.jsonl").read_text("utf-8")[-4000:])
                return 1
    return 0 if figures.trees.equal and figures.pull["merged"] else 1


class _Stuck(Exception):  # noqa: N818 - the story cannot go on
    """Something that has to happen did not happen in time."""


@asynccontextmanager
async def _set_up(options: DemoOptions, home: Path) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(github.running(GithubConfig(seed=_seed())))
        key = home / "app.pem"
        key.touch(mode=0o600)
        key.write_text(hub.private_key_pem, "ascii")
        settings = Settings(
            home=home / "data",
            app_id=str(hub.app_id),
            private_key_file=key,
            webhook_secret=SecretStr(hub.webhook_secret),
            github_api_url=hub.url,
            port=0,
            budget_usd=Decimal("0.50"),
            e2b_api_key=SecretStr(""),
            database_url="",
            executor_id="demo",
            polling_seconds=0.15,
        )
        settings, state = await _model(options, settings, stack)
        serving = await stack.enter_async_context(running(settings))
        client = await stack.enter_async_context(httpx.AsyncClient(timeout=30, trust_env=False))
        hub.world.app.webhook_url = f"{serving.url}/webhook"
        people = {login: Person(login, user.token, client, hub.url, REPOSITORY) for login, user in hub.users.items()}
        yield Stage(serving, hub, state, people["rosa"], people["robin"], people["carl"])


async def _model(options: DemoOptions, settings: Settings, stack: AsyncExitStack) -> tuple[Settings, State | None]:
    if options.model == "real":
        given = load()
        if not given.anthropic_api_key.get_secret_value():
            raise UserError("ANTHROPIC_API_KEY is not set.", "`pullwright demo` without --model real needs no key.")
        return settings.model_copy(
            update={"anthropic_api_key": given.anthropic_api_key, "anthropic_base_url": given.anthropic_base_url}
        ), None
    endpoint = await stack.enter_async_context(anthropic.running(AnthropicConfig(brain=DemoBrain())))
    key = SecretStr(endpoint.api_key)
    return settings.model_copy(update={"anthropic_api_key": key, "anthropic_base_url": endpoint.url}), endpoint.state


def _seed() -> Seed:
    return Seed(
        users=(UserSeed("rosa", "write"), UserSeed("robin", "write"), UserSeed("carl", "write")),
        repositories=(
            RepositorySeed(
                REPOSITORY,
                files=str(Path(__file__).parent / "repository"),
                labels=(LabelSeed(LABEL, "5319e7", "Hand this to the agent"),),
            ),
        ),
    )


async def _until(what: str, probe: Callable[[], Awaitable[T | None]]) -> T:
    """Poll until the probe gives something."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = await probe()
        if found is not None:
            return found
        await asyncio.sleep(POLL)
    raise _Stuck(f"{what} did not happen within {PATIENCE:.0f} s")


async def _play(stage: Stage, teller: Teller) -> Figures:
    teller.chapter("Rosa opens an issue and labels it")
    number = await stage.requester.open_issue(script.ISSUE_TITLE, script.ISSUE_BODY)
    await stage.requester.label(number, LABEL)
    teller.line(f"issue #{number}: {script.ISSUE_TITLE}")

    teller.chapter("Pullwright plans, codes and checks in a sandbox")
    pull = await _until("the draft pull request", lambda: _watch(stage, teller, number))
    first = _digest_in(pull)
    teller.line(f"draft pull request #{pull['number']}, digest {first[:12]}")
    if not pull["draft"]:
        raise _Stuck("the pull request was not a draft before the approval")

    teller.chapter("Robin reviews and approves")
    await stage.reviewer.review(pull["number"])
    pull = await _until("ready for review", lambda: _pull_when(stage, pull["number"], lambda p: not p["draft"]))
    teller.line("the approval holds for this digest; the draft is ready")

    teller.chapter("Carl pushes one more commit")
    head = await _push_more(stage, pull)
    pull = await _until("back to draft", lambda: _pull_when(stage, pull["number"], lambda p: bool(p["draft"])))
    teller.line("the approval is void, the pull request is a draft again")
    pull = await _until("the new digest", lambda: _pull_when(stage, pull["number"], lambda p: _digest_in(p) != first))
    second = _digest_in(pull)
    await stage.reviewer.comment(pull["number"], f"/agent merge {first[:12]}")
    refusal = await _until("the refusal", lambda: _gate_line(stage, pull["number"]))
    teller.line(f"`/agent merge {first[:12]}` is refused: {refusal}")

    teller.chapter("Robin approves the new digest, and it merges")
    await stage.reviewer.review(pull["number"], commit=head)
    await _until("ready again", lambda: _pull_when(stage, pull["number"], lambda p: not p["draft"]))
    await stage.reviewer.comment(pull["number"], f"/agent merge {second[:12]}")
    pull = await _until("the merge", lambda: _pull_when(stage, pull["number"], lambda p: bool(p["merged"])))
    await _until("the last word", lambda: _last_word(stage, number))
    teller.line(f"merged: exactly {second[:12]}")
    return await _figures(stage, pull, second)


async def _watch(stage: Stage, teller: Teller, number: int) -> dict[str, Any] | None:
    comments = await stage.requester.comments(number)
    if comments:
        teller.progress(comments[0]["body"])
        if "Stopped" in comments[0]["body"].splitlines()[1]:
            raise _Stuck(comments[0]["body"])
    pulls = await stage.requester.pulls()
    waiting = bool(comments) and "waits for a review" in comments[0]["body"]
    return await stage.requester.pull(pulls[0]["number"]) if pulls and waiting else None


async def _pull_when(stage: Stage, number: int, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
    pull = await stage.requester.pull(number)
    return pull if holds(pull) else None


def _digest_in(pull: dict[str, Any]) -> str:
    found = _DIGEST.search(pull["body"] or "")
    return found[1] if found else ""


async def _push_more(stage: Stage, pull: dict[str, Any]) -> str:
    branch = pull["head"]["ref"]
    text = await stage.colleague.text_of("docs/api.md", branch)
    more = text + "\nTo have a limit raised, write to the shop.\n"
    return await stage.colleague.push(branch, "docs/api.md", more, "Say whom to ask for a higher limit")


async def _gate_line(stage: Stage, number: int) -> str | None:
    for comment in await stage.requester.comments(number):
        for line in comment["body"].splitlines():
            if "nothing to merge" in line or "named another" in line:
                return str(line)
    return None


async def _last_word(stage: Stage, number: int) -> bool | None:
    comments = await stage.requester.comments(number)
    return True if comments and "Merged" in comments[0]["body"].splitlines()[1] else None


async def _figures(stage: Stage, pull: dict[str, Any], digest: str) -> Figures:
    store = stage.serving.application.store
    record = (await store.tasks.listing(1))[0]
    approval = await store.approvals.last(record.spec.id)
    totals = await store.ledger.totals(record.spec.id)
    tested = _TESTED.search(pull["body"] or "")
    usage = totals.usage
    return Figures(
        task=record.spec.id,
        pull={"number": pull["number"], "draft": pull["draft"], "merged": pull["merged"]},
        digest=digest,
        trees=Trees(
            tested=tested[1] if tested else "",
            published=await stage.requester.tree_of(pull["head"]["sha"]),
            approved=approval.head_tree if approval else "",
            merged=await stage.requester.tree_of(await stage.requester.head_of("main")),
        ),
        cost_usd=dollars(totals.spent),
        cache={
            "hit_rate": round(usage.read / usage.prompt, 4) if usage.prompt else 0.0,
            "write_amplification": _amplification(stage.messages),
        },
        calls=totals.calls,
        seconds=0.0,
    )


def _amplification(state: State | None) -> float:
    """Cache writes over tokens that had to be written once, by the stand-in's own bill."""
    return float(state.bill.document()["totals"]["write_amplification"]) if state is not None else 0.0
