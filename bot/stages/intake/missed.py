"""Which deliveries GitHub should bring again: those that met nobody (a crash, a restart, a proxy without a server behind it)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from bot.domain.event import FailedDelivery
from bot.domain.ids import DeliveryId

MOST_ATTEMPTS = 20
"""More than a service that starts again and again makes; fewer than a delivery that can never be taken would."""
MOST_AT_ONCE = 100


def candidates(failed: Sequence[FailedDelivery]) -> tuple[FailedDelivery, ...]:
    """One attempt of each delivery that nobody answered, oldest first.

    GitHub never tries again by itself. What we refused with a 4xx stays refused, and what failed `MOST_ATTEMPTS` times is left to people.
    """
    attempts = Counter(item.delivery for item in failed)
    met_nobody = {item.delivery: item for item in failed if not 400 <= item.status_code < 500}
    tired = {delivery for delivery, count in attempts.items() if count >= MOST_ATTEMPTS}
    wanted = [item for delivery, item in met_nobody.items() if delivery not in tired]
    return tuple(sorted(wanted, key=lambda item: (item.delivered_at, item.attempt)))


def missed(wanted: Sequence[FailedDelivery], stored: AbstractSet[DeliveryId]) -> tuple[FailedDelivery, ...]:
    """Those that are not stored here: an answer can be lost after the delivery was taken."""
    return tuple(item for item in wanted if item.delivery not in stored)[:MOST_AT_ONCE]
