"""The town is opened once for all stories that do not kill the product or change its settings."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.scenarios.town.town import REPOSITORIES, RoutingBrain, Town
from tests.world import World, world


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def town(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Town]:
    brain = RoutingBrain()
    home = tmp_path_factory.mktemp("town")
    async with world(brain, home, more=REPOSITORIES) as opened:
        yield Town(opened, brain)


@pytest.fixture
def here(town: Town) -> World:
    """A repository of this test's own."""
    return town.next()
