"""Every payload becomes one of our events, or is ignored with a reason; none raises."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.event import (
    Actor,
    Closing,
    CommentDeleted,
    Commented,
    Event,
    GroundGained,
    GroundLost,
    Ignored,
    IssueClosed,
    Labelled,
    PullActivity,
    PullChanged,
    Reviewed,
    ReviewState,
    Unlabelled,
)
from bot.domain.ids import CommentId, InstallationId, RepositoryId, ReviewId, UserId
from bot.stages.intake.extract import extract
from tests.unit.stages.intake.builders import (
    ANA,
    ISSUE,
    PULL,
    comment,
    commented,
    examples,
    issue,
    labelled,
    payload,
    pull,
    pull_changed,
    review,
    reviewed,
    user,
)


def ignored(event: Event) -> str:
    assert isinstance(event, Ignored)
    return event.reason


def test_a_label_on_an_issue_keeps_the_text_of_that_moment():
    made = extract("issues", payload("labeled", issue=issue(), label={"name": "agent"}))
    assert made == labelled()


def test_a_label_on_a_pull_request_is_told_apart():
    made = extract("pull_request", payload("labeled", pull_request=pull(), label={"name": "agent"}))
    assert made == labelled(subject=PULL)


def test_an_empty_body_is_null_on_the_wire():
    made = extract("issues", payload("labeled", issue=issue(body=None, state="closed"), label={"name": "x"}))
    assert made == labelled(body="", open=False, label="x")


def test_a_comment_says_where_and_by_whom():
    assert extract("issue_comment", payload("created", issue=issue(), comment=comment())) == commented()
    on_pull = payload("created", issue=issue(number=12, pull_request={"url": "x"}, locked=True), comment=comment(None))
    assert extract("issue_comment", on_pull) == commented("", subject=PULL, locked=True)
    via = payload("created", issue=issue(), comment=comment(performed_via_github_app={"id": 4242}))
    assert extract("issue_comment", via) == commented(by_app=4242)


def test_the_sender_counts_not_the_author_of_the_comment():
    made = extract("issue_comment", payload("created", issue=issue(), comment=comment(user=user("eve", 66))))
    assert isinstance(made, Commented)
    assert made.actor == ANA


@pytest.mark.parametrize(
    "sender",
    [user("x[bot]", 3, "Bot"), user("x[bot]", 3, "User"), user("org", 3, "Organization"), {"login": "x", "id": 3}],
)
def test_whoever_does_not_say_to_be_a_person_is_a_bot(sender: dict[str, Any]):
    made = extract("issue_comment", payload("created", issue=issue(), comment=comment(), sender=sender))
    assert isinstance(made, Commented)
    assert made.actor == Actor(UserId(3), sender["login"], is_bot=True)


def test_a_review_keeps_the_commit_as_received():
    rob = Actor(UserId(8), "rob", is_bot=False)
    made = extract("pull_request_review", payload("submitted", pull_request=pull(), review=review()))
    assert made == reviewed(reviewer=rob)
    other = review(state="CHANGES_REQUESTED", commit_id=None, body="no")
    made = extract("pull_request_review", payload("submitted", pull_request=pull(), review=other))
    assert made == reviewed(reviewer=rob, state=ReviewState.CHANGES_REQUESTED, commit_id=None, body="no")
    made = extract("pull_request_review", payload("dismissed", pull_request=pull(), review=review(state="dismissed")))
    assert made == reviewed(reviewer=rob, state=ReviewState.DISMISSED)


def test_a_comment_on_a_line_is_a_comment_with_its_review():
    told = pull(title="Sum is wrong", body="1 + 1 = 3", locked=False)
    made = extract(
        "pull_request_review_comment",
        payload("created", pull_request=told, comment=comment(pull_request_review_id=41, path="a.py", line=3)),
    )
    assert made == commented(subject=PULL, review_id=ReviewId(41), on_line=True)
    alone = payload("created", pull_request=told, comment=comment(pull_request_review_id=None))
    assert extract("pull_request_review_comment", alone) == commented(subject=PULL, on_line=True)


@pytest.mark.parametrize("activity", list(PullActivity))
def test_a_changed_pull_request_is_a_hint(activity: PullActivity):
    changes = {"base": {"ref": {"from": "main"}}}
    made = extract("pull_request", payload(activity.value, pull_request=pull(), changes=changes))
    assert made == pull_changed(activity=activity)


@pytest.mark.parametrize("action", ["closed", "deleted", "transferred"])
def test_an_issue_that_is_gone_stops_its_task(action: str):
    assert extract("issues", payload(action, issue=issue())) == IssueClosed(ISSUE, ANA, Closing(f"issue_{action}"))


@pytest.mark.parametrize("action", ["archived", "deleted", "transferred", "publicized"])
def test_what_happens_to_a_repository_concerns_its_tasks(action: str):
    made = extract("repository", payload(action))
    assert isinstance(made, GroundLost)
    assert (made.repositories, made.why) == ((ISSUE.repository.id,), Closing(action))


def test_what_happens_to_the_installation_concerns_what_it_covers():
    made = extract("installation", payload("suspend", repository=None))
    assert isinstance(made, GroundLost)
    assert (made.installation, made.repositories, made.why) == (9, (), Closing.SUSPENDED)
    removed = payload("removed", repositories_removed=[{"id": 3}, {"id": 4}], repository=None)
    made = extract("installation_repositories", removed)
    assert isinstance(made, GroundLost)
    assert (made.repositories, made.why) == ((3, 4), Closing.REMOVED)
    for listed in ([], None, [{"id": 0}], ["x"]):
        broken = payload("removed", repositories_removed=listed)
        assert "repositories_removed" in ignored(extract("installation_repositories", broken))


def test_a_label_taken_off_and_a_deleted_comment_are_told():
    made = extract("issues", payload("unlabeled", issue=issue(), label={"name": "agent"}))
    assert made == Unlabelled(ISSUE, ANA, "agent")
    gone = extract("issue_comment", payload("deleted", issue=issue(), comment=comment(body=None)))
    assert gone == CommentDeleted(ISSUE, ANA, CommentId(31))


@pytest.mark.parametrize(
    ("event", "body", "reason"),
    [
        ("ping", {"zen": "x"}, "`ping`"),
        ("star", payload("created"), "`star`"),
        ("x" * 500, {}, "x" * 60 + "`"),
        ("issues", payload("opened", issue=issue()), "`issues.opened`"),
        ("issues", payload("brand_new", issue=issue()), "`issues.brand_new`"),
        ("issue_comment", payload("edited", issue=issue(), comment=comment()), "edits"),
        ("issue_comment", payload("pinned", issue=issue(), comment=comment()), "`issue_comment.pinned`"),
        ("repository", payload("renamed"), "known by its number"),
        ("repository", payload("privatized"), "go on"),
        ("repository", payload("edited"), "go on"),
        ("repository", payload("created"), "`repository.created`"),
        ("installation", payload("unsuspend"), "`installation.unsuspend`"),
        ("installation_repositories", payload("paused"), "`installation_repositories.paused`"),
        ("pull_request", payload("opened", pull_request=pull()), "`pull_request.opened`"),
        ("pull_request", payload("edited", pull_request=pull(), changes={"title": {}}), "no part of what was approved"),
        ("pull_request", payload("edited", pull_request=pull()), "no part of what was approved"),
        (
            "pull_request_review",
            payload("edited", pull_request=pull(), review=review()),
            "edits of reviews do nothing",
        ),
        ("pull_request_review", payload("submitted", pull_request=pull(), review=review(state="odd")), "unknown state"),
        ("pull_request_review_comment", payload("edited"), "edits of comments do nothing"),
        ("pull_request_review_comment", payload("deleted"), "`pull_request_review_comment.deleted`"),
    ],
)
def test_what_does_not_concern_us_is_ignored_with_a_reason(event: str, body: dict[str, Any], reason: str):
    assert reason in ignored(extract(event, body))


@pytest.mark.parametrize("installation", [None, [], 9, "9"])
def test_a_delivery_without_installation_is_not_for_the_app(installation: object):
    body = payload("labeled", issue=issue(), label={"name": "agent"}, installation=installation)
    assert "not a delivery to the App" in ignored(extract("issues", body))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("action", None),
        ("action", ["labeled"]),
        ("sender", None),
        ("sender.id", "7"),
        ("sender.id", True),
        ("sender.id", 0),
        ("sender.id", 2**63),
        ("sender.login", None),
        ("repository", "acme/shop"),
        ("repository.full_name", "acme/shop/../x"),
        ("repository.full_name", 'acme/"><script>'),
        ("repository.id", 1.0),
        ("installation.id", "9"),
        ("issue", []),
        ("issue.number", -5),
        ("issue.title", None),
        ("issue.body", {"x": 1}),
        ("issue.updated_at", 5),
        ("label", None),
        ("label.name", 5),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(path: str, value: object):
    body: dict[str, Any] = payload("labeled", issue=issue(), label={"name": "agent"})
    *parents, last = path.split(".")
    place = body
    for parent in parents:
        place = place[parent]
    place[last] = value
    assert ignored(extract("issues", body)) == f"the payload has no usable `{path}`"


@pytest.mark.parametrize("sha", ["main", "1" * 39, "1" * 41, "G" * 40, "A" * 40, None])
def test_a_head_is_a_whole_commit_id(sha: object):
    body = payload("synchronize", pull_request=pull() | {"head": {"sha": sha}})
    assert "pull_request.head.sha" in ignored(extract("pull_request", body))


def test_all_examples_of_github_are_answered():
    kinds: dict[str, int] = {}
    cases = examples()
    for event, body in cases:
        made = extract(event, body)
        kinds[made.kind] = kinds.get(made.kind, 0) + 1
        given = extract(event, body | {"installation": {"id": 9}})
        if event == "issues" and body.get("action") == "labeled":
            assert isinstance(given, Labelled)
        if event == "issue_comment" and body.get("action") == "created":
            assert isinstance(given, Commented)
        if event == "pull_request_review" and body.get("action") in {"submitted", "dismissed"}:
            assert isinstance(given, Reviewed)
        if event == "pull_request" and body.get("action") in {"synchronize", "closed", "reopened"}:
            assert isinstance(given, PullChanged)
    assert len(cases) == 329
    assert kinds["ignored"] > 250


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
EVENTS = st.sampled_from(
    [
        "repository",
        "installation",
        "installation_repositories",
        "issues",
        "issue_comment",
        "pull_request",
        "pull_request_review",
        "pull_request_review_comment",
        "ping",
        "",
    ]
)
WHOLE: list[tuple[str, dict[str, Any]]] = [
    ("issues", payload("labeled", issue=issue(), label={"name": "agent"})),
    ("issues", payload("closed", issue=issue())),
    (
        "issue_comment",
        payload("created", issue=issue(pull_request={}), comment=comment(performed_via_github_app={"id": 1})),
    ),
    ("pull_request", payload("edited", pull_request=pull(), changes={"base": {}})),
    ("pull_request_review", payload("submitted", pull_request=pull(), review=review())),
    ("pull_request_review_comment", payload("created", pull_request=pull(), comment=comment(pull_request_review_id=4))),
]


@given(EVENTS, st.dictionaries(st.text(max_size=12), JSON, max_size=4))
def test_no_payload_makes_it_raise(event: str, body: dict[str, object]):
    assert isinstance(extract(event, body), Event)


@settings(max_examples=150)
@given(st.sampled_from(WHOLE), st.data())
def test_a_damaged_payload_never_raises(case: tuple[str, dict[str, Any]], data: st.DataObject):
    event, whole = case
    body = copy.deepcopy(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        place: Any = body
        while isinstance(place, dict) and place:
            key = data.draw(st.sampled_from(sorted(place)))
            if isinstance(place[key], dict) and place[key] and data.draw(st.booleans()):
                place = place[key]
                continue
            if data.draw(st.booleans()):
                place[key] = data.draw(JSON)
            else:
                del place[key]
            break
    assert isinstance(extract(event, body), Event)


def test_where_the_app_comes_to_is_known_by_number():
    made = extract("installation", payload("created", repositories=[{"id": 3}, {"id": 4}], repository=None))
    assert made == GroundGained(InstallationId(9), (RepositoryId(3), RepositoryId(4)), ANA)
    added = payload("added", repositories_added=[{"id": 5}], repository=None)
    assert extract("installation_repositories", added) == GroundGained(InstallationId(9), (RepositoryId(5),), ANA)
    assert ignored(extract("installation", payload("created", repositories=[], repository=None)))
    for listed in (None, [{"id": 0}], ["x"]):
        broken = payload("created", repositories=listed, repository=None)
        assert "repositories" in ignored(extract("installation", broken))
