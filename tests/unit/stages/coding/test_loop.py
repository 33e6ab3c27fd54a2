import pytest

from bot.domain.money import MicroUsd
from bot.domain.verdict import Failure, FailureKind
from bot.providers.llm.port import Message, ModelTurn, StopReason, ToolCall, Usage
from bot.stages.coding.loop import (
    GiveUp,
    Limits,
    Nudge,
    Progress,
    Resume,
    UseTools,
    Widen,
    after_check,
    grouped,
    next_move,
)

LIMITS = Limits(calls=5, attempts=3)


def turn(stop: StopReason = StopReason.TOOL_USE, *names: str) -> ModelTurn:
    calls = tuple(ToolCall(f"t{number}", name, "{}") for number, name in enumerate(names))
    return ModelTurn(Message("{}"), "msg", stop, "text", calls, Usage(), MicroUsd(0))


def failure(signature: str) -> Failure:
    return Failure(FailureKind.BROKE_TEST, "test_a", "boom", signature)


def test_tools_are_used():
    move = next_move(turn(StopReason.TOOL_USE, "read"), Progress(), LIMITS)
    assert isinstance(move, UseTools)


def test_an_answer_cut_at_its_cap_is_asked_again_once_and_its_tools_are_not_run():
    cut = turn(StopReason.MAX_TOKENS, "edit")
    assert isinstance(next_move(cut, Progress(), LIMITS), Widen)
    assert isinstance(next_move(cut, Progress(capped=1), LIMITS), GiveUp)


def test_a_silent_turn_is_nudged_and_then_given_up():
    silent = turn(StopReason.END_TURN)
    assert isinstance(next_move(silent, Progress(), LIMITS), Nudge)
    assert isinstance(next_move(silent, Progress(silent=2), LIMITS), GiveUp)


def test_a_paused_turn_is_sent_back_as_it_is():
    assert isinstance(next_move(turn(StopReason.PAUSE_TURN), Progress(), LIMITS), Resume)


@pytest.mark.parametrize("stop", [StopReason.REFUSAL, StopReason.CONTEXT_EXCEEDED, StopReason.UNKNOWN])
def test_stops_that_nothing_here_can_answer_end_the_step(stop: StopReason):
    assert isinstance(next_move(turn(stop, "read"), Progress(), LIMITS), GiveUp)


def test_calls_are_bounded():
    assert isinstance(next_move(turn(StopReason.TOOL_USE, "read"), Progress(calls=5), LIMITS), GiveUp)


def test_every_stop_reason_has_a_move():
    for stop in StopReason:
        assert next_move(turn(stop, "read"), Progress(), LIMITS) is not None


def test_the_same_failure_twice_stops():
    progress = Progress(attempts=1, signatures=(frozenset({"a"}),))
    stop = after_check((failure("a"),), progress, LIMITS)
    assert stop is not None
    assert "twice" in stop.reason


def test_another_failure_is_another_attempt():
    progress = Progress(attempts=1, signatures=(frozenset({"a"}),))
    assert after_check((failure("b"),), progress, LIMITS) is None


def test_attempts_are_bounded():
    assert after_check((failure("c"),), Progress(attempts=2), LIMITS) is not None


def test_neighbours_of_a_family_go_together_and_order_is_kept():
    calls = turn(StopReason.TOOL_USE, "read", "search", "edit", "edit", "read", "run", "run").tool_calls
    groups = grouped(calls, (frozenset({"read", "search"}), frozenset({"edit"})))
    names = [[call.name for call in group] for group in groups]
    assert names == [["read", "search"], ["edit", "edit"], ["read"], ["run"], ["run"]]
