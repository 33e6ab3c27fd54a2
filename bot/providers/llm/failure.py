"""How an attempt fails, told by status, type and code alone, and what that means for money and for trying again."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

import anthropic
import httpx2

from bot.domain.spending import Usage
from bot.providers.llm.attempt import AttemptFailed, Charged, Next

_SPEND_CODES = frozenset(
    {
        "enforced_spend_limit_reached",
        "contract_spend_limit_reached",
        "linked_organization_spend_limit_reached",
        "linked_organization_billing_unavailable",
        "organization_on_hold",
    }
)
_RAMP = "ramp_limit_exceeded"
_RAMP_WAIT = 60.0
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


def of_status(error: anthropic.APIStatusError, started: Usage | None) -> AttemptFailed:
    """An error answer, or an error event inside an answer that had begun (status 200, input billed)."""
    outcome = f"{error.status_code} {error.type or 'unknown'}" + (f" {error.error_code}" if error.error_code else "")
    begun = started is not None or error.status_code < 400
    charged = Charged.INPUT_KNOWN if started is not None else Charged.UNKNOWN if begun else _charged(error.status_code)
    after = retry_after(error.response)
    return AttemptFailed(
        outcome=outcome,
        next=_next(error, after),
        charged=charged,
        retry_after=_RAMP_WAIT if error.error_code == _RAMP and after is None else after,
        usage=started or Usage(),
        request_id=error.request_id or "",
    )


def _charged(status: int) -> Charged:
    """A time-out on their side may come after the work was done."""
    return Charged.UNKNOWN if status in {408, 504} else Charged.NOTHING


def _next(error: anthropic.APIStatusError, after: float | None) -> Next:
    if error.error_code in _SPEND_CODES:
        return Next.UNAVAILABLE
    if error.status_code < 400:
        return Next.RETRY if error.type in {"overloaded_error", "api_error", "timeout_error", None} else Next.REJECTED
    match error.status_code:
        case 401 | 402 | 403:
            return Next.UNAVAILABLE
        case 429:
            # No retry-after on a 429 means a spending cap, not a rate: waiting does not help.
            return Next.LATER if error.error_code == _RAMP else Next.RETRY if after is not None else Next.UNAVAILABLE
        case 408 | 409:
            return Next.RETRY
        case status if status >= 500:
            return Next.RETRY
        case _:
            return Next.REJECTED


def of_connection(error: anthropic.APIConnectionError, started: Usage | None) -> AttemptFailed:
    """The line broke: harmless before the request was sent, of unknown fate after."""
    never_sent = isinstance(error.__cause__, _NEVER_SENT)
    outcome = "timeout" if isinstance(error, anthropic.APITimeoutError) else "connection"
    return _broken("connect" if never_sent else outcome, started, never_sent=never_sent)


def of_stream(error: Exception, started: Usage | None) -> AttemptFailed:
    """The answer broke off, or was not what the protocol says."""
    outcome = "timeout" if isinstance(error, TimeoutError | httpx2.TimeoutException) else "stream"
    return _broken(f"{outcome} ({type(error).__name__})", started)


def _broken(outcome: str, started: Usage | None, *, never_sent: bool = False) -> AttemptFailed:
    if started is not None:
        return AttemptFailed(outcome, Next.RETRY, Charged.INPUT_KNOWN, usage=started)
    return AttemptFailed(outcome, Next.RETRY, Charged.NOTHING if never_sent else Charged.UNKNOWN)


def retry_after(response: httpx2.Response) -> float | None:
    """Seconds from `retry-after-ms` or `retry-after` (number or date); None when absent or unreadable."""
    millis, value = response.headers.get("retry-after-ms"), response.headers.get("retry-after")
    try:
        if millis is not None:
            return max(0.0, float(millis) / 1000)
        return max(0.0, float(value)) if value is not None else None
    except ValueError:
        return _until(value or "")


def _until(value: str) -> float | None:
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (moment - type(moment).now(moment.tzinfo)).total_seconds())
