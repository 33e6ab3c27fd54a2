"""The App comes to a repository: it is indexed in the background, and summarised where money is set aside."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bot.custody.mirror import Mirror
from bot.domain.errors import Transient
from bot.domain.ids import InstallationId, RepositoryId
from bot.domain.money import from_dollars
from bot.emulators import github
from bot.emulators.anthropic import BrainAnswer, BrainRequest, Config, Text, running
from bot.emulators.anthropic.faults import Fault, Kind
from bot.emulators.github.installing import change_installation
from bot.providers.forge.githubkit import AppCredentials, GithubForges
from bot.providers.journal.direct import DirectJournal
from bot.providers.llm.anthropic_batches import AnthropicBatches
from bot.providers.llm.pricing import PriceBook
from bot.providers.store.sql import open_store, sqlite_url
from bot.retrieval.service import store_of
from bot.retrieval.store import Store
from bot.retrieval.summarise import Pace
from bot.workflow.onboarding import Arrival, onboard, summarised
from bot.workflow.services import Services
from tests.contracts.github_world import hub
from tests.histories.test_ground import URLS, office

SELL = "def sell():\n" + "".join(f"    book_{n} = {n}\n" for n in range(30))
SEED = github.Seed(
    repositories=(github.RepositorySeed("octo-org/hello", contents={"README.md": "# hi\n", "sell.py": SELL}),)
)


class Brain:
    def answer(self, request: BrainRequest) -> BrainAnswer:
        return BrainAnswer((Text("Sells books."),))


@pytest.mark.parametrize("action", ["created", "added"])
async def test_a_repository_that_comes_is_handed_on_and_no_task_starts(action: str, tmp_path: Path):
    async with office(tmp_path) as made:
        asked = {"repository": made.stage.repository.full_name}
        assert change_installation(made.stage.world, action, asked, URLS)
        assert await made.deliver() == ["onboarding 1 repositories"]
        assert [arrival.repository for arrival in made.arrived] == [made.stage.repository.id]
        assert len(made.started) == 1


@asynccontextmanager
async def arrival(tmp_path: Path) -> AsyncIterator[tuple[Arrival, Services]]:
    """One repository on the stand-in, reached over HTTP as the App."""
    async with office(tmp_path) as made, hub(github.Config(seed=SEED)) as world:
        credentials = AppCredentials.from_pem(str(world.endpoint.app_id), world.endpoint.private_key_pem)
        forges = GithubForges(credentials, base_url=world.endpoint.url)
        told = Arrival(InstallationId(world.endpoint.installation_id), RepositoryId(world.endpoint.repositories[0].id))
        try:
            yield told, replace(made.services, forges=forges, home=tmp_path / "home", git_protocols="http")
        finally:
            await forges.close()


async def test_a_new_repository_is_fetched_and_indexed(tmp_path: Path):
    async with arrival(tmp_path) as (told, services):
        note = await onboard(told, services, DirectJournal())
        store = Store(store_of(Mirror(services.home / "mirrors", told.repository)))
        assert note == f"{store.size()} files indexed"
        assert "no money is set aside" in await summarised(told, services, DirectJournal())
        assert store.size() > 0
        store.close()


async def test_summaries_are_made_within_what_is_set_aside(tmp_path: Path):
    async with arrival(tmp_path) as (told, services), running(Config(brain=Brain(), first_byte=0.0)) as endpoint:
        batches = AnthropicBatches(api_key=endpoint.api_key, base_url=endpoint.url, prices=PriceBook.load())
        kept = open_store(sqlite_url(tmp_path / "kept.db"))
        held = kept.summaries(told.repository)
        poor = replace(services, summaries=batches, summaries_of=lambda _: held, summary_budget=from_dollars(0.000001))
        assert "0 summaries" in await summarised(told, poor, DirectJournal())
        note = await summarised(told, replace(poor, summary_budget=from_dollars(1)), DirectJournal())
        assert list((await held.texts()).values()) == ["Sells books."]
        kept.close()
        assert "1 summaries" in note
        await batches.aclose()


async def test_a_repository_out_of_reach_is_no_fault(tmp_path: Path):
    async with arrival(tmp_path) as (told, services):
        gone = Arrival(told.installation, RepositoryId(1))
        assert "nothing to index" in await onboard(gone, services, DirectJournal())


async def test_what_was_under_way_is_collected_and_then_the_rest_is_bought(tmp_path: Path):
    async with (
        arrival(tmp_path) as (told, services),
        running(Config(brain=Brain(), first_byte=0.0, batch_seconds=60.0)) as endpoint,
    ):
        batches = AnthropicBatches(api_key=endpoint.api_key, base_url=endpoint.url, prices=PriceBook.load())
        kept = open_store(sqlite_url(tmp_path / "kept.db"))
        held = kept.summaries(told.repository)

        async def sleep(seconds: float) -> None:
            endpoint.state.clock.advance(seconds)

        rich = replace(
            services,
            summaries=batches,
            summaries_of=lambda _: held,
            summary_budget=from_dollars(1),
            summary_pace=Pace(sleep, endpoint.state.clock.now),
        )
        endpoint.state.faults.add(Fault(Kind.STATUS, 529, path="/v1/messages/batches", skip=1))
        with pytest.raises(Transient):  # the durable journal would try again
            await summarised(told, rich, DirectJournal())
        note = await summarised(told, rich, DirectJournal())
        kept.close()
        await batches.aclose()
        assert note.startswith("1 summaries")
        assert len(endpoint.state.batches) == 1


async def test_a_task_has_what_is_new_since_summarised(tmp_path: Path):
    async with office(tmp_path) as made:
        assert [one.repository for one in made.summarised] == [made.stage.repository.id]
