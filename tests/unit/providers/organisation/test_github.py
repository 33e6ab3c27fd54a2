"""What is asked, how far pages are followed, and what becomes of an answer that is none."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from bot.domain.errors import UserError
from bot.domain.ids import BlobId
from bot.providers.organisation.github import GithubOrganisation
from bot.providers.organisation.port import ABSENT, Read

Answer = Callable[[httpx.Request], httpx.Response]
REPOSITORY = {"id": 1, "full_name": "o/x", "default_branch": "main", "private": True, "archived": False}


class Asked:
    """A reader over a made-up GitHub, with everything it was asked and every pause it made."""

    def __init__(self, *answers: httpx.Response | Answer | Exception) -> None:
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []
        self._answers = list(answers)
        self.reader = GithubOrganisation(
            "t", base_url="https://hub.example/api/v3", wait=self._wait, transport=httpx.MockTransport(self._answer)
        )

    async def _wait(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(request)


def refused(status: int, message: str = "", **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"message": message}, headers=headers)


def page(*names: str, after: str = "") -> httpx.Response:
    link = {"link": f'<https://elsewhere.example/steal?page={after}>; rel="next"'} if after else {}
    return httpx.Response(200, json=[{"login": name} for name in names], headers=link)


async def test_pages_are_followed_to_the_end_and_never_to_another_host():
    asked = Asked(page("a", after="2"), page("b", after="3"), page("c"))
    assert await asked.reader.members("o") == Read(("a", "b", "c"))
    assert [str(one.url) for one in asked.requests] == [
        "https://hub.example/api/v3/orgs/o/members?per_page=100",
        "https://hub.example/api/v3/orgs/o/members?page=2",
        "https://hub.example/api/v3/orgs/o/members?page=3",
    ]
    assert {one.method for one in asked.requests} == {"GET"}
    assert asked.requests[0].headers["authorization"] == "Bearer t"


async def test_a_list_without_end_says_where_it_stopped():
    found = await Asked(page("a", after="2")).reader.members("o")
    assert (len(found.value), found.fault) == (100, "stopped after 100 pages; there are more")


async def test_what_was_read_before_a_page_failed_is_kept():
    found = await Asked(page("a", after="2"), refused(403, "Forbidden")).reader.members("o")
    assert found == Read(("a",), "403 Forbidden")


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (
            refused(403, "Resource not accessible by personal access token"),
            "403 Resource not accessible by personal access token",
        ),
        (refused(404, "Not Found"), "404 Not Found"),
        (httpx.Response(301, headers={"location": "https://elsewhere.example/"}), "301"),
        (httpx.Response(200, text="<html>"), "GitHub's answer cannot be read"),
        (httpx.Response(200, json={"a": 1}), "GitHub's answer cannot be read"),
        (httpx.Response(200, json=[{"a": 1}]), "GitHub's answer cannot be read"),
        (httpx.Response(404, text="gone"), "404"),
    ],
)
async def test_an_answer_that_is_none_is_a_fault(answer: httpx.Response, fault: str):
    asked = Asked(answer)
    assert await asked.reader.members("o") == Read((), fault)
    assert len(asked.requests) == 1
    assert (await Asked(answer).reader.size("o")).fault != ""


async def test_a_limit_is_waited_for_once_and_a_long_one_not_at_all():
    asked = Asked(refused(429, "slow down", **{"retry-after": "7"}), page("a"))
    assert (await asked.reader.members("o"), asked.pauses) == (Read(("a",)), [7.0])
    asked = Asked(refused(403, "You have exceeded a secondary rate limit"))
    assert (await asked.reader.members("o")).fault == "GitHub limits how much this token may ask"
    assert asked.pauses == [60.0]
    asked = Asked(refused(403, "API rate limit exceeded", **{"x-ratelimit-remaining": "0"}))
    assert (await asked.reader.members("o")).fault == "GitHub limits how much this token may ask"
    assert asked.pauses == []


async def test_nobody_answering_is_tried_twice_more():
    asked = Asked(httpx.ConnectError("x"), refused(502), page("a"))
    assert (await asked.reader.members("o"), asked.pauses) == (Read(("a",)), [1.0, 3.0])
    asked = Asked(httpx.ReadTimeout("x"))
    assert (await asked.reader.members("o")).fault == "GitHub does not answer (ReadTimeout)"
    assert len(asked.requests) == 3
    assert (await Asked(refused(500, "Server Error")).reader.members("o")).fault == "500 Server Error"


async def test_a_token_that_is_not_accepted_ends_the_audit():
    with pytest.raises(UserError, match="does not accept PULLWRIGHT_AUDIT_TOKEN"):
        await Asked(refused(401, "Bad credentials")).reader.members("o")


@pytest.mark.parametrize("name", ["..", "a/b/c", "a b", "-a", "a/../b?x", "", "a" * 41, "https://x", "ä"])
async def test_what_is_no_name_is_never_part_of_an_address(name: str):
    with pytest.raises(UserError, match="is no name of an account"):
        await Asked(page()).reader.members(name)


async def test_odd_branches_and_files_stay_within_the_path():
    asked = Asked(httpx.Response(200, json={"object": {"sha": "a" * 40}}))
    await asked.reader.head("o/x", "agent/gists?x=1#y")
    assert asked.requests[0].url.raw_path == b"/api/v3/repos/o/x/git/ref/heads/agent/gists%3Fx%3D1%23y"
    assert (await asked.reader.head("o/x", "a/../../b")).fault == "its name is no part of an address"
    assert (await asked.reader.forks("o/..")).fault == "its name is no part of an address"
    assert len(asked.requests) == 1


async def test_a_cut_tree_and_a_hidden_bypass_list_are_no_answers():
    tree = {"tree": [{"path": "a", "sha": "b" * 40, "size": 1, "mode": "100644", "type": "blob"}], "truncated": True}
    found = await Asked(httpx.Response(200, json=tree)).reader.tree("o/x", "c" * 40)
    assert (len(found.value), found.fault) == (1, "GitHub lists only a part of this tree")
    assert (await Asked(httpx.Response(200, json={"id": 1})).reader.bypass("o/x", 1)).fault.startswith(
        "GitHub tells it only"
    )
    assert (
        await Asked(httpx.Response(200, json={"id": 1})).reader.tree("o/x", "c")
    ).fault == "GitHub's answer cannot be read"
    assert (await Asked(httpx.Response(200, json={"public_repos": 1})).reader.size("o")).fault != ""


async def test_no_classic_protection_is_an_answer_and_an_unknown_branch_is_none():
    assert await Asked(refused(404, "Branch not protected")).reader.protection("o/x", "main") == ABSENT
    assert (await Asked(refused(404, "Not Found")).reader.protection("o/x", "main")).fault == "404 Not Found"


async def test_a_blob_that_is_no_base64_is_a_fault():
    found = await Asked(httpx.Response(200, json={"content": "%%%="})).reader.blob("o/x", BlobId("a" * 40))
    assert found in (Read(b""), Read(None, "GitHub's answer cannot be read"))


async def test_where_issues_are_turned_off_pull_requests_are_read():
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/issues"):
            return refused(410, "Issues are disabled for this repo")
        told = {"html_url": request.url.path, "user": None, "body": None}
        return httpx.Response(200, json=[told])

    found = await Asked(answer).reader.posts("o/x")
    assert [one.place for one in found.value] == ["/api/v3/repos/o/x/pulls", "/api/v3/repos/o/x/issues/comments"]
    assert (found.fault, found.value[0].author) == ("", "ghost")
