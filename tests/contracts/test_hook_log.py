"""The port to GitHub's delivery log, on the production client against the stand-in of GitHub."""

from __future__ import annotations

from bot.emulators.github import Config
from bot.providers.forge.githubkit import AppCredentials
from bot.providers.forge.hooklog import GithubHookLog
from tests.contracts.github_world import HOME, Hub, hub, receiving


def opened(world: Hub) -> GithubHookLog:
    end = world.endpoint
    return GithubHookLog(AppCredentials.from_pem(str(end.app_id), end.private_key_pem), base_url=end.url)


async def test_failed_attempts_are_read_over_all_pages_and_delivered_again():
    async with receiving() as receiver, hub(Config(webhook_url="http://127.0.0.1:9/webhook")) as world:
        for number in range(101):
            await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": str(number)})
        await world.endpoint.settle()
        log = opened(world)
        failed = await log.failed()
        assert len(failed) == 101
        assert len({item.delivery for item in failed}) == 101
        assert {item.status_code for item in failed} == {502}
        world.endpoint.world.app.webhook_url = receiver.url
        await log.redeliver(failed[-1].attempt)
        await world.endpoint.settle()
        assert [event.headers["x-github-delivery"] for event in receiver.events] == [failed[-1].delivery]
        assert len(await log.failed()) == 101
        await log.close()
