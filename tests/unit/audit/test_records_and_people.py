"""A12-A14: our log; A1-A4 and A17: people and what agents wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.audit.facts import ApprovalFacts, BotBranch, PersonFacts, PublicRepository, Records
from bot.audit.findings import Finding, Severity
from bot.audit.operator import Operator
from bot.audit.people import check_departed, check_forks, check_media, check_posts, check_visibility
from bot.audit.records import check_approvals, check_branches, check_log
from bot.domain.event import Actor
from bot.domain.ids import CommitId, TaskId, TreeId, UserId
from bot.providers.organisation.port import (
    Branch,
    Commit,
    Credential,
    DeployKey,
    Gist,
    LogEntry,
    Post,
    Read,
    Repository,
)
from bot.providers.store.port import ApprovedTask
from tests.unit.audit.builders import HOME, facts, snapshot
from tests.unit.stages.approving.builders import approval

H, M, L, U = Severity.HIGH, Severity.MEDIUM, Severity.LOW, Severity.UNKNOWN
WAS = approval()
ROW = ApprovedTask(
    1, TaskId("task:1:5:1"), WAS, Actor(UserId(999), "asker", is_bot=False), "octo-org/hello", landed=True
)
LANDED = Commit(CommitId("e" * 40), WAS.merge_tree, "", "web-flow")
GOOD = ApprovalFacts(ROW, "octo-org/hello", Read("write"), Read((LANDED,)))
OPERATOR = Operator(departed=("Gone",), agents=("helper",))


def severities(found: Any) -> list[Severity]:
    return [one.severity for one in found]


def records(*approvals: ApprovalFacts, **changes: Any) -> Any:
    return snapshot(records=Read(Records(approvals, **changes)))


def test_a_good_record_is_silent():
    seen = records(GOOD, received=("2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00"))
    assert [*check_branches(seen), *check_approvals(seen), *check_log(seen)] == []
    assert [*check_branches(snapshot()), *check_approvals(snapshot()), *check_log(snapshot())] == []


def test_what_landed_is_compared_with_what_was_approved():
    other = replace(LANDED, tree=TreeId("9" * 40))
    assert severities(check_branches(records(replace(GOOD, since=Read((other,)))))) == [H]
    assert severities(check_branches(records(replace(GOOD, since=Read((other, LANDED)))))) == []
    assert severities(check_branches(records(replace(GOOD, since=Read((), "404"))))) == [U]
    waiting = replace(GOOD, row=replace(ROW, landed=False), since=Read(()))
    assert severities(check_branches(records(waiting))) == []


@pytest.mark.parametrize(
    ("author", "committer", "found"),
    [
        ("pullwright[bot]", "web-flow", []),
        ("Pullwright[bot]", "pullwright[bot]", []),
        ("ada", "web-flow", [M]),
        ("pullwright[bot]", "ada", [M]),
        ("", "web-flow", [M]),
    ],
)
def test_commits_of_others_on_the_bots_branches(author: str, committer: str, found: list[Severity]):
    commit = replace(LANDED, author=author, committer=committer)
    branch = BotBranch(Branch("agent/1-x", CommitId("e" * 40)), Read((commit,)))
    assert severities(check_branches(snapshot(facts(branches=Read((branch,)))))) == found


def test_branches_that_were_not_read_are_unknown():
    branch = BotBranch(Branch("agent/1-x", CommitId("e" * 40)), Read((), "cut"))
    assert severities(check_branches(snapshot(facts(branches=Read((branch,), "cut"))))) == [U, U]


def test_who_approved():
    assert severities(check_approvals(records(replace(GOOD, permission=Read("read"))))) == [M]
    assert severities(check_approvals(records(replace(GOOD, permission=Read("admin"))))) == []
    assert severities(check_approvals(records(replace(GOOD, permission=Read(None, "404"))))) == [U]
    own = replace(GOOD, row=replace(ROW, requester=WAS.reviewer))
    assert severities(check_approvals(records(own))) == [L]


def test_the_log():
    assert severities(check_log(records(broken_at=3))) == [H]
    assert severities(check_log(records(landed_without=("task:1:6:1",)))) == [H]
    assert severities(check_log(snapshot(records=Read(Records(), "the store cannot serve now")))) == [U]


@pytest.mark.parametrize(
    ("times", "jumps"),
    [
        (["10:00", "10:01", "10:00"], 0),
        (["10:00", "09:54"], 1),
        (["10:00", "09:00", "09:01", "10:01"], 2),
        (["10:00", "nonsense", "10:01"], 1),
        ([], 0),
    ],
)
def test_a_clock_that_goes_back(times: list[str], jumps: int):
    moments = tuple(f"2026-01-01T{one}:00+00:00" for one in times)
    assert severities(check_log(records(received=moments))) == [L] * jumps


def person(login: str = "ada", **changes: Any) -> list[Finding]:
    return list(check_media(snapshot(people=(PersonFacts(login, **changes),))))


def shown(name: str, paths: tuple[str, ...] | None = None, fault: str = "") -> Read[tuple[PublicRepository, ...]]:
    return Read((PublicRepository(replace(HOME, full_name=f"ada/{name}", private=False), Read(paths, fault)),))


@pytest.mark.parametrize(
    ("name", "paths", "found"),
    [
        ("notes", None, []),
        ("notes", ("a.md", "b.png"), []),
        ("notes", (), []),
        ("notes", ("README.md",), []),
        ("notes", ("README.md", "b.png"), [M]),
        ("notes", ("a.PNG", "b.mp4"), [M]),
        ("screenshots", None, [M]),
        ("my-screenshots-2", None, [M]),
        ("assets-1234", None, [M]),
        ("pr-77", None, [M]),
        ("pr77", None, [M]),
        ("assets", None, []),
        ("print", None, []),
    ],
)
def test_repositories_that_look_like_a_store_of_pictures(
    name: str, paths: tuple[str, ...] | None, found: list[Severity]
):
    assert severities(person(repositories=shown(name, paths))) == found


def test_gists_and_what_was_not_read():
    assert severities(person(gists=Read((Gist("1", ("text/plain",)), Gist("2", ("text/plain", "image/png")))))) == [M]
    assert severities(person(repositories=Read((), "x"), gists=Read((), "x"))) == [U, U]
    assert severities(person(repositories=shown("notes", (), "cut"))) == [U]
    assert severities(check_media(snapshot(members=Read((), "403")))) == [U]


def fork(name: str, *, private: bool) -> Repository:
    return replace(HOME, full_name=name, private=private)


@pytest.mark.parametrize(
    ("of", "other", "found"),
    [
        (True, fork("ada/hello", private=True), []),
        (True, fork("ada/hello", private=False), [H]),
        (True, fork("gone/hello", private=True), [M]),
        (False, fork("ada/hello", private=False), []),
        (False, fork("gone/hello", private=False), [M]),
    ],
)
def test_forks(of: bool, other: Repository, found: list[Severity]):
    here = facts(repository=replace(HOME, private=of), forks=Read((other,)))
    assert severities(check_forks(snapshot(here, operator=OPERATOR))) == found
    assert severities(check_forks(snapshot(facts(forks=Read((), "x"))))) == [U]


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        (LogEntry("repo.access", "ada", "o/x", "public", 1), [H]),
        (LogEntry("repo.access", "ada", "o/x", "private", 1), [L]),
        (LogEntry("repo.create", "ada", "o/x", "", 1), []),
        (LogEntry("repo.create", "Helper", "o/x", "", 1), [M]),
        (LogEntry("repo.create", "other[bot]", "o/x", "", 1), [M]),
        (LogEntry("repo.rename", "helper", "o/x", "", 1), []),
    ],
)
def test_visibility(entry: LogEntry, found: list[Severity]):
    assert severities(check_visibility(snapshot(operator=OPERATOR, log=Read((entry,))))) == found
    assert severities(check_visibility(snapshot(log=Read((), "404")))) == [U]


def test_what_people_who_left_still_hold():
    keys = Read(
        (DeployKey("a", "gone", read_only=True), DeployKey("b", "ada", read_only=False), DeployKey("c", "", True))
    )
    seen = snapshot(
        facts(keys=keys),
        operator=OPERATOR,
        members=Read(("ada", "GONE")),
        collaborators=Read(("gone", "bob")),
        credentials=Read((Credential("gone", "SSH key"), Credential("ada", "SSH key"))),
    )
    assert severities(check_departed(seen)) == [H] * 4
    assert severities(check_departed(replace(seen, operator=Operator()))) == []
    blind = snapshot(
        facts(keys=Read((), "x")), members=Read((), "x"), collaborators=Read((), "x"), credentials=Read((), "x")
    )
    assert severities(check_departed(blind)) == [U] * 4


@pytest.mark.parametrize(
    ("author", "body", "found"),
    [
        ("pullwright[bot]", "All tests pass.", []),
        ("pullwright[bot]", "See [the log](https://example.org/log.txt).", []),
        ("pullwright[bot]", "![shot](https://example.org/a)", [M]),
        ("helper", "<img src=x>", [M]),
        ("Helper", "https://github.com/user-attachments/assets/1", [M]),
        ("helper", "https://example.org/a.png", [M]),
        ("helper", "![shot][1]", [M]),
        ("ada", "![shot](https://example.org/a.png)", []),
    ],
)
def test_pictures_of_agents(author: str, body: str, found: list[Severity]):
    said = facts(posts=Read((Post("x", author, body),)))
    assert severities(check_posts(snapshot(said, operator=OPERATOR))) == found
    assert severities(check_posts(snapshot(facts(posts=Read((), "x"))))) == [U]
