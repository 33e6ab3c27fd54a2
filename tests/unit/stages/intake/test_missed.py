from datetime import UTC, datetime, timedelta

from bot.domain.event import FailedDelivery
from bot.domain.ids import DeliveryId
from bot.stages.intake.missed import MOST_AT_ONCE, MOST_ATTEMPTS, candidates, missed

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def failed(attempt: int, delivery: str, status: int = 502, minutes: int = 0) -> FailedDelivery:
    return FailedDelivery(attempt, DeliveryId(delivery), "issues", status, NOON + timedelta(minutes=minutes))


def wanted(*items: FailedDelivery) -> list[str]:
    return [item.delivery for item in candidates(items)]


def test_what_met_nobody_is_asked_for_oldest_first():
    assert wanted(failed(3, "c", 0, 3), failed(2, "b", 504, 2), failed(1, "a", 502, 1)) == ["a", "b", "c"]


def test_what_we_refused_stays_refused():
    assert wanted(failed(1, "a", 401), failed(2, "b", 413)) == []


def test_a_delivery_is_asked_for_once_however_often_it_failed():
    assert wanted(failed(2, "a"), failed(1, "a")) == ["a"]


def test_after_enough_attempts_it_is_left_to_people():
    tries = [failed(number, "a") for number in range(MOST_ATTEMPTS)]
    assert wanted(*tries[:-1]) == ["a"]
    assert wanted(*tries) == []


def test_what_is_stored_here_is_not_asked_for_and_there_is_a_bound():
    items = [failed(number, f"d{number}") for number in range(MOST_AT_ONCE + 2)]
    assert [item.delivery for item in missed(items[:3], {DeliveryId("d1")})] == ["d0", "d2"]
    assert len(missed(items, set())) == MOST_AT_ONCE
