"""Input that no honest client sends: each is refused in the service's shape, and none is an error of the stand-in."""

from __future__ import annotations

import gzip

import pytest

from bot.emulators.github import Config
from tests.contracts.github_world import HOME, clone_url, hub

NO_JSON = [b"{", b"[1]", b'"x"', b"\xff", b"[" * 50_000, b'{"title": NaN}', b'{"title": "\\ud800"}']
NO_NUMBER = ["²", "%C2%B2", "-1", "9" * 30, "1e3", "%00"]


async def test_a_body_that_is_no_json_object_is_refused():
    async with hub() as world:
        headers = {"Authorization": f"token {world.token('octo-dev')}", "Content-Type": "application/json"}
        for body in NO_JSON:
            answer = await world.http.post(f"{HOME}/issues", content=body, headers=headers)
            assert answer.status_code == 400
            assert answer.json()["status"] == "400"
        huge = await world.http.post(f"{HOME}/issues", content=b" " * (41 << 20), headers=headers)
        assert huge.status_code == 413


async def test_a_number_that_is_none_is_an_unknown_path():
    async with hub() as world:
        for number in NO_NUMBER:
            for path in (f"/issues/{number}", f"/pulls/{number}", f"/issues/comments/{number}"):
                assert (await world.ask("GET", HOME + path, "octo-dev")).status_code == 404
            for path in (f"/app/installations/{number}", f"/app/hook/deliveries/{number}", f"/repositories/{number}"):
                assert (await world.ask("GET", path, "app")).status_code == 404


async def test_a_name_that_no_command_line_carries_is_a_name_git_does_not_know():
    async with hub() as world:
        for name, status in (("%00", 404), ("x" * 20_000, 404)):
            assert (await world.ask("GET", f"{HOME}/branches/{name}", "octo-dev")).status_code == status
            assert (await world.ask("GET", f"{HOME}/contents?ref={name}", "octo-dev")).status_code == status
            assert (await world.ask("GET", f"{HOME}/commits/{name}", "octo-dev")).status_code == 422
        for base in ("\x00", "x" * 200_000):
            opened = await world.ask("POST", f"{HOME}/pulls", "octo-dev", {"title": "t", "head": "main", "base": base})
            assert opened.status_code == 422


@pytest.mark.parametrize("query", ["page=0", "page=-1", "per_page=0", "per_page=-5"])
async def test_a_page_that_makes_no_sense_is_the_first(query):
    async with hub() as world:
        for number in range(2):
            await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": str(number)})
        assert len((await world.ask("GET", f"{HOME}/issues?{query}", "octo-dev")).json()) == 2


@pytest.mark.parametrize("size", ["0", "-5"])
async def test_the_delivery_log_takes_any_page_size(size):
    async with hub() as world:
        assert (await world.ask("GET", f"/app/hook/deliveries?per_page={size}", "app")).status_code == 200


async def test_pages_end_at_a_hundred_and_beyond_the_last_there_is_nothing():
    async with hub() as world:
        for number in range(101):
            await world.ask("POST", f"{HOME}/labels", "octo-dev", {"name": f"l{number}", "color": "ffffff"})
        first = await world.ask("GET", f"{HOME}/labels?per_page=1000", "octo-dev")
        assert len(first.json()) == 100
        assert set(first.links) == {"next", "last"}
        beyond = await world.ask("GET", f"{HOME}/labels?page=9999999999", "octo-dev")
        assert (beyond.json(), set(beyond.links)) == ([], {"prev", "first"})


async def test_what_is_unchanged_is_not_sent_again():
    async with hub() as world:
        await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "t"})
        first = await world.ask("GET", f"{HOME}/issues/1", "octo-dev")
        again = await world.ask("GET", f"{HOME}/issues/1", "octo-dev", **{"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
        await world.ask("PATCH", f"{HOME}/issues/1", "octo-dev", {"title": "u"})
        changed = await world.ask("GET", f"{HOME}/issues/1", "octo-dev", **{"If-None-Match": first.headers["etag"]})
        assert changed.status_code == 200
        assert changed.headers["etag"] != first.headers["etag"]


async def test_a_webhook_address_and_a_repository_name_are_checked():
    async with hub() as world:
        for url in ("\x00", "ftp://example.com", "nowhere", "http://"):
            refused = await world.ask("PATCH", "/app/hook/config", "app", {"url": url, "secret": "other"})
            assert refused.status_code == 422
        assert world.endpoint.world.app.webhook_secret == world.endpoint.webhook_secret
        for name in ("a/b", "\x00", "a b", "x" * 101):
            assert (await world.ask("PATCH", HOME, "octo-admin", {"name": name})).status_code == 422


async def test_a_delivery_that_cannot_be_made_is_a_failed_one():
    async with hub(Config(webhook_url="http://a b/")) as world:
        await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "t"})
        await world.endpoint.settle()
        (entry,) = (await world.ask("GET", "/app/hook/deliveries", "app")).json()
        assert (entry["status"], entry["status_code"]) == ("failed to connect to host", 502)


async def test_a_query_that_is_none_is_told_under_errors():
    async with hub() as world:
        deep = "{a" * 20_000
        odd = '{repository(owner: "octo-org", name: "hello") {pullRequest(number: [1]) {id}}}'
        for query in ("", "{", "query", "mutation {", "}", '{a(b: "\\x")}', "{node(id: [1]) {id}}", deep, odd):
            answer = await world.ask("POST", "/graphql", "octo-dev", {"query": query})
            assert answer.status_code == 200
            assert answer.json()["errors"]
        assert (await world.ask("POST", "/graphql", "octo-dev", {"query": 7})).status_code == 422


async def test_a_push_that_is_none_is_refused():
    async with hub() as world:
        address = f"{clone_url(world.endpoint, world.token('octo-admin'))}/git-receive-pack"
        bodies = [b"-001", b"zzzz", b"0002", b"0003x", b"00ff", b"0000", b"0032" + b"\xff" * 46]
        kind = {"content-type": "application/x-git-receive-pack-request"}
        for body in bodies:
            assert (await world.http.post(address, content=body, headers=kind)).status_code < 500
        squeezed = {**kind, "content-encoding": "gzip"}
        assert (await world.http.post(address, content=b"no gzip", headers=squeezed)).status_code == 400
        whole = gzip.compress(b"0000")
        assert (await world.http.post(address, content=whole, headers=squeezed)).status_code < 500


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("clock", b"{"),
        ("clock", b"[1]"),
        ("clock", b'{"advance": "soon"}'),
        ("clock", b'{"advance": NaN}'),
        ("faults", b"[1]"),
        ("faults", b'{"kind": "miracle"}'),
        ("faults", b'{"kind": "drop", "colour": 1}'),
        ("faults", b'{"kind": "drop", "path": "("}'),
        ("installation", b"[1]"),
    ],
)
async def test_an_order_that_makes_no_sense_changes_nothing(name, order):
    async with hub() as world:
        assert (await world.http.post(f"/_stand-in/{name}", content=order)).status_code == 422
        assert (await world.http.get("/_stand-in/faults")).json() == []
        assert (await world.http.get("/_stand-in/log?after=x")).status_code == 422
