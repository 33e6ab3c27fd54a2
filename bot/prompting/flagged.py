"""What people read of a change's flags: the pull request's body, the gate's words and refusals say it alike."""

from __future__ import annotations

from collections.abc import Iterable

from bot.domain.decision import Outcome, Reason
from bot.policy.flags import Flag, Weight
from bot.prompting.inert import code

SHOWN_PATHS = 8
LONGEST_PATH = 160
_OUTCOMES = {Weight.NAMED: Outcome.WAITING, Weight.DENIED: Outcome.REFUSED}


def told(flag: Flag) -> str:
    """Which files it is about, as code spans, and why it matters: one line."""
    shown = [code(_plain(path)) for path in flag.paths[:SHOWN_PATHS]]
    more = f" and {len(flag.paths) - SHOWN_PATHS} more" if len(flag.paths) > SHOWN_PATHS else ""
    return ": ".join(part for part in (", ".join(shown) + more, flag.why) if part)


def findings(flags: Iterable[Flag]) -> tuple[Reason, ...]:
    """What people have to know before they decide: a reason for each flag that is to be named or denied, by the flag's name."""
    return tuple(
        Reason(flag.name, _OUTCOMES[flag.weight], f"{flag.name}: {told(flag)}")
        for flag in flags
        if flag.weight in _OUTCOMES
    )


def _plain(path: str) -> str:
    flat = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in path)
    return flat if len(flat) <= LONGEST_PATH else f"…{flat[-LONGEST_PATH:]}"
