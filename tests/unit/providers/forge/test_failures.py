"""What a failed call means, case by case."""

from __future__ import annotations

import pytest

from bot.domain.errors import Transient
from bot.providers.forge.failures import Failure, Unauthorised, error_of, is_secondary_limit, pause_before_retry
from bot.providers.forge.port import ForgeGone, ForgeRefused, RepositoryMoved


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize(
    "failure", [Failure(None, "x"), Failure(502, "x"), Failure(429, "x", 1, limited=True), Failure(503, "x")]
)
def test_what_may_have_taken_effect_is_never_sent_again(method, failure):
    assert pause_before_retry(method, "/x", failure, 0) is None


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
def test_what_can_be_repeated_is_tried_three_times(method):
    for failure in (Failure(None, "x"), Failure(500, "x")):
        assert [pause_before_retry(method, "/x", failure, attempt) for attempt in range(3)] == [1.0, 3.0, None]


def test_a_merge_is_never_repeated():
    assert pause_before_retry("PUT", "/repos/o/r/pulls/1/merge", Failure(None, "x"), 0) is None


def test_refusals_are_not_retried():
    for status in (301, 400, 401, 403, 404, 405, 409, 410, 422):
        assert pause_before_retry("GET", "/x", Failure(status, "x"), 0) is None


@pytest.mark.parametrize(
    ("after", "attempt", "pause"), [(5, 0, 5), (0, 0, 0.1), (None, 0, 60), (61, 0, None), (5, 1, None)]
)
def test_short_rate_limits_are_waited_out_once(after, attempt, pause):
    assert pause_before_retry("GET", "/x", Failure(403, "x", after, limited=True), attempt) == pause


@pytest.mark.parametrize(
    ("method", "failure", "kind"),
    [
        ("GET", Failure(None, "ReadTimeout"), Transient),
        ("GET", Failure(500, "x"), Transient),
        ("GET", Failure(403, "x", 9, limited=True), Transient),
        ("GET", Failure(301, "x"), ForgeGone),
        ("POST", Failure(301, "x"), RepositoryMoved),
        ("PUT", Failure(307, "x"), RepositoryMoved),
        ("GET", Failure(401, "x"), Unauthorised),
        ("GET", Failure(404, "x"), ForgeGone),
        ("GET", Failure(410, "x"), ForgeGone),
        ("GET", Failure(403, "Resource not accessible by integration"), ForgeGone),
        ("GET", Failure(403, "This installation has been suspended"), ForgeGone),
        ("POST", Failure(403, "Unable to create comment because issue is locked."), ForgeRefused),
        ("PUT", Failure(405, "Pull Request is not mergeable"), ForgeRefused),
        ("PUT", Failure(409, "x"), ForgeRefused),
        ("POST", Failure(422, "x"), ForgeRefused),
    ],
)
def test_each_failure_has_one_meaning(method, failure, kind):
    assert type(error_of(method, failure)) is kind


def test_the_secondary_limit_is_known_by_its_words():
    assert is_secondary_limit(403, "You have exceeded a secondary rate limit. Please wait")
    assert not is_secondary_limit(404, "You have exceeded a secondary rate limit.")
    assert not is_secondary_limit(403, "Resource not accessible by integration")
