"""`pullwright setup` against the stand-in: a browser posts the manifest and comes back, and what is saved signs in."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import httpx
import pytest

from bot.commands.registering import Registered, register, requested
from bot.domain.errors import UserError
from bot.providers.forge.githubkit import AppCredentials, GithubForges
from bot.settings import APP_VARIABLES, Settings, load
from tests.births import ROOT
from tests.contracts.github_world import Hub, hub

HOOK = "https://bot.example.org/webhook"


class Browser:
    """A person's browser: sees the first page, and posts its form."""

    def __init__(self, http: httpx.AsyncClient, first: str) -> None:
        self.http = http
        self.first = httpx.URL(first)

    async def form(self) -> tuple[str, dict[str, str]]:
        page = await self.http.get(self.first)
        assert page.status_code == 200
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert page.headers["cache-control"] == "no-store"
        action = re.search(r'action="([^"]+)"', page.text)
        value = re.search(r'name="manifest" value="([^"]+)"', page.text)
        assert action
        assert value
        assert str(httpx.URL(unescape(action[1])).copy_with(raw_path=b"/")).rstrip("/") in policy
        return unescape(action[1]), {"manifest": unescape(value[1])}

    async def press(self) -> httpx.URL:
        """The address that GitHub sends the browser to."""
        action, fields = await self.form()
        back = await self.http.post(action, data=fields)
        assert back.status_code == 302, back.text
        return httpx.URL(back.headers["location"])


@dataclass
class Setup:
    """One that is under way in this process."""

    world: Hub
    browser: Browser
    work: asyncio.Task[Registered]
    typed: int
    said: asyncio.Queue[str]

    def type(self, line: object) -> None:
        os.write(self.typed, f"{line}\n".encode())


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def settings(home: Path, world: Hub) -> Settings:
    return Settings(home=home, github_api_url=world.endpoint.url)


@asynccontextmanager
async def setting_up(home: Path) -> AsyncIterator[Setup]:
    source, typed = os.pipe()
    async with hub() as world, httpx.AsyncClient(trust_env=False, timeout=20) as http:
        said: asyncio.Queue[str] = asyncio.Queue()
        mine = settings(home, world)
        request = requested(mine, HOOK, "My Agent", "octo-org", 0)
        work = asyncio.create_task(register(mine, request, said.put_nowait, source))
        first = re.search(r"http://127\.0\.0\.1:\d+/\S+", await said.get())
        assert first
        try:
            yield Setup(world, Browser(http, first[0]), work, typed, said)
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            os.close(source)
            os.close(typed)


async def test_the_command_makes_an_app_that_signs_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = tmp_path / "home"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PULLWRIGHT_")}
    async with hub() as world, httpx.AsyncClient(trust_env=False, timeout=20) as http:
        surroundings = {**kept, "PULLWRIGHT_HOME": str(home), "PULLWRIGHT_GITHUB_API_URL": world.endpoint.url}
        child = await asyncio.create_subprocess_exec(
            *(ROOT / ".venv/bin/pullwright", "setup", HOOK, "--organization", "octo-org", "--json"),
            env=surroundings,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert child.stderr
        told = b""
        while (first := re.search(rb"http://127\.0\.0\.1:\d+/\S+", told)) is None:
            told += (line := await child.stderr.readline())
            assert line, told
        browser = Browser(http, first[0].decode())
        manifest = json.loads((await browser.form())[1]["manifest"])
        assert manifest["hook_attributes"] == {"url": HOOK, "active": True}
        assert (manifest["url"], manifest["public"]) == ("https://bot.example.org", False)
        back = await browser.press()
        answer = await http.get(back)
        output, rest = await child.communicate()
        assert (answer.status_code, child.returncode) == (200, 0)

        made = json.loads(output)
        assert made["app_id"] == world.endpoint.app_id
        assert made["install_url"] == f"{world.endpoint.url}/apps/pullwright/installations/new"
        assert world.endpoint.world.app.webhook_url == HOOK
        key, env = home / "app.pem", home / "app.env"
        assert (made["key_file"], made["env_file"]) == (str(key), str(env))
        assert [stat.S_IMODE(path.stat().st_mode) for path in (home, key, env)] == [0o700, 0o600, 0o600]
        assert names(home) == ["app.env", "app.pem"]
        secrets = ("PRIVATE KEY", world.endpoint.webhook_secret, back.params["code"])
        assert [one for one in secrets if one in (output + told + rest).decode() + answer.text] == []

        for name in APP_VARIABLES:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PULLWRIGHT_HOME", str(home))
        found = load()
        assert found.webhook_secret.get_secret_value() == world.endpoint.webhook_secret
        forges = GithubForges(AppCredentials.from_pem(found.app_id, found.private_key()), base_url=world.endpoint.url)
        assert (await forges.bot()).login == "pullwright[bot]"
        await forges.close()
        with pytest.raises(UserError, match="already: 411000 in"):
            requested(found, HOOK, "x", "", 0)


async def test_an_interrupt_leaves_nothing_and_says_so(tmp_path: Path):
    child = await asyncio.create_subprocess_exec(
        *("env", "--default-signal=INT"),  # tests that run in the background of a shell inherit that it is ignored
        *(ROOT / ".venv/bin/pullwright", "setup", HOOK),
        env={"PATH": os.environ["PATH"], "PULLWRIGHT_HOME": str(tmp_path / "home")},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert child.stdout
        assert b"Open this address" in await child.stdout.readline()
        child.send_signal(signal.SIGINT)
        _, errors = await asyncio.wait_for(child.communicate(), 30)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    assert child.returncode == 130
    assert errors.count(b"\n") == 1
    assert b"stopped" in errors
    assert names(tmp_path / "home") == []


async def test_strangers_are_turned_away_and_the_person_is_waited_for(tmp_path: Path):
    async with setting_up(tmp_path) as setup:
        http, first = setup.browser.http, setup.browser.first
        for host in ("evil.example.org", "127.0.0.1.example.org", ""):
            assert (await http.get(first, headers={"Host": host})).status_code == 400
        assert (await http.get(first.copy_with(path="/"))).status_code == 404
        back = await setup.browser.press()
        foreign = back.copy_set_param("state", "<b>x</b>")
        answer = await http.get(foreign)
        assert answer.status_code == 400
        assert "<b>" not in answer.text
        assert (await http.get(back, headers={"Host": "evil.example.org"})).status_code == 400
        assert len(setup.world.endpoint.world.manifest_codes) == 1  # nobody asked for it yet
        moved = back.copy_with(host="localhost", port=first.port)
        assert (await http.get(moved, headers={"Host": f"localhost:{first.port}"})).status_code == 200
        assert (await setup.work).app.owner == "octo-org"


async def test_a_code_that_is_used_up_leads_back_to_the_first_page(tmp_path: Path):
    async with setting_up(tmp_path) as setup:
        used = await setup.browser.press()
        await setup.world.http.post(f"/app-manifests/{used.params['code']}/conversions")
        answer = await setup.browser.http.get(used)
        assert answer.status_code == 410
        assert "<form" in answer.text
        odd = used.copy_set_param("code", "../../user")
        assert (await setup.browser.http.get(odd)).status_code == 410
        assert (await setup.browser.http.get(await setup.browser.press())).status_code == 200
        await setup.work


async def test_an_address_can_be_pasted(tmp_path: Path):
    async with setting_up(tmp_path) as setup:
        back = await setup.browser.press()
        setup.type("what now?")
        assert "no address" in await setup.said.get()
        setup.type(back.copy_set_param("state", "x"))
        assert "not made for this setup" in await setup.said.get()
        setup.type(f"  {back}")
        assert (await setup.work).app.slug == "pullwright"


async def test_a_lost_answer_is_not_asked_for_again_by_itself(tmp_path: Path):
    """The code works once: what the person reads is where another key comes from."""
    async with setting_up(tmp_path) as setup:
        back = await setup.browser.press()
        await setup.world.fault(kind="drop", when="after", path="conversions")
        answers = [await setup.browser.http.get(back) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [502, 410]
        assert "generate a private key" in answers[1].text
        asked = [one for one in setup.world.endpoint.world.journal.entries() if "conversions" in one["path"]]
        assert len(asked) == 2
        assert not setup.work.done()


async def test_what_was_taken_is_seen_through_when_the_command_is_stopped(tmp_path: Path):
    async with setting_up(tmp_path) as setup:
        back = await setup.browser.press()
        await setup.world.fault(kind="delay", seconds=0.3, path="conversions")
        coming = asyncio.create_task(setup.browser.http.get(back))
        while setup.world.endpoint.world.faults.pending():  # noqa: ASYNC110 - until the code is on its way
            await asyncio.sleep(0.01)
        setup.work.cancel()
        assert (await setup.work).app.slug == "pullwright"
        assert (await coming).status_code == 200
        assert (tmp_path / "app.env").exists()


async def test_credentials_that_cannot_be_saved_are_not_lost_silently(tmp_path: Path):
    """Somebody else's `app.env` came meanwhile: it stays, and what GitHub told stays beside it."""
    async with setting_up(tmp_path) as setup:
        (tmp_path / "app.env").write_text("mine")
        answer = await setup.browser.http.get(await setup.browser.press())
        assert answer.status_code == 500
        with pytest.raises(UserError, match="could not be saved") as caught:
            await setup.work
        assert (tmp_path / "app.env").read_text() == "mine"
        assert "PRIVATE KEY" in (tmp_path / "app.pem").read_text()
        (kept,) = set(names(tmp_path)) - {"app.env", "app.pem"}
        assert str(tmp_path / kept) in caught.value.hint


async def test_it_gives_up_when_nobody_comes(tmp_path: Path):
    async with hub() as world:
        mine = settings(tmp_path, world)
        with pytest.raises(UserError, match="Nobody came back"):
            await register(mine, requested(mine, HOOK, "x", "", 0), lambda _: None, None, patience=0.0)
        assert names(tmp_path) == []


async def test_while_github_is_unreachable_a_reload_is_enough(tmp_path: Path):
    async with setting_up(tmp_path) as setup:
        back = await setup.browser.press()
        await setup.world.fault(kind="primary", path="conversions")
        assert (await setup.browser.http.get(back)).status_code == 503
        assert (await setup.browser.http.get(back)).status_code == 200
        await setup.work
