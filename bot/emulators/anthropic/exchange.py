"""One request, from accepted to answered: cache accounting, the brain's turn, the message, the charge."""

import uuid
from dataclasses import dataclass

from bot.emulators.anthropic import binding
from bot.emulators.anthropic.answers import PREWARM, Answer, compose
from bot.emulators.anthropic.bill import Charge
from bot.emulators.anthropic.cache import Account, Prompt
from bot.emulators.anthropic.diagnosis import fingerprint, miss_reason
from bot.emulators.anthropic.hearing import heard
from bot.emulators.anthropic.prefix import breakpoints, chain, render
from bot.emulators.anthropic.ruler import FRAMING
from bot.emulators.anthropic.rules.table import validate
from bot.emulators.anthropic.state import State
from bot.emulators.anthropic.wire import Draft, Json, Surface, spoken

_BINDING_BETA = "thinking-binding-controls-2026-08-01"


@dataclass(frozen=True, slots=True)
class Exchange:
    """An accepted request with everything its response needs."""

    message: Json
    answer: Answer
    charge: Charge
    account: Account

    def finished(self) -> Json:
        """The whole message, its output billed."""
        self.charge.output = self.answer.output_tokens
        self.charge.thinking = self.answer.thinking_tokens
        return {**self.message, "content": self.answer.content, "usage": self.charge.usage()}


def count(draft: Draft) -> int:
    """What `count_tokens` answers."""
    validate(draft)
    return sum(p.tokens for p in _prompt(draft, binding.examine(draft)).positions) + FRAMING


def _prompt(draft: Draft, examination: binding.Examination) -> Prompt:
    dropped = {f.placed.where for f in examination.dropped(draft)}
    positions = render(draft, dropped=dropped)
    return Prompt(positions, chain(draft, positions), breakpoints(draft, positions))


def accept(state: State, draft: Draft, *, request_id: str, path: str, index: int) -> Exchange:
    """Validate, account, ask the brain, and put the request on the bill. Raises Refusal or BrainError, billing nothing."""
    validate(draft)
    started = state.clock.now()
    examination = binding.examine(draft)
    prompt = _prompt(draft, examination)
    model = draft.model
    least = model.min_prefix_strict if state.policy.strict_minimum else model.min_prefix
    account = state.cache.account(prompt, at=started, min_prefix=least)
    answer = PREWARM if draft.body["max_tokens"] == 0 else _ask(state, draft, examination, account, index)
    state.cache.write(account, at=started)
    charge = _charge(draft, account, request_id=request_id, path=path)
    state.bill.charges.append(charge)
    state.bill.saw(zip(prompt.hashes, (p.tokens for p in prompt.positions), strict=True))
    _remember(state, answer)
    if answer.stop_reason == "pause_turn":
        state.paused.add(spoken(answer.content))
    message = _message(draft, answer, charge)
    if draft.body.get("diagnostics") is not None:
        message["diagnostics"] = _diagnose(state, draft, prompt, account, charge.message_id)
    if _BINDING_BETA in draft.betas:
        message["input_transformations"] = binding.transformations(draft, examination)
    return Exchange(message, answer, charge, account)


def _ask(state: State, draft: Draft, examination: binding.Examination, account: Account, index: int) -> Answer:
    said = state.config.brain.answer(heard(draft, index))
    return compose(said, draft, examination.sealer, prompt_tokens=account.prompt)


def _charge(draft: Draft, account: Account, *, request_id: str, path: str) -> Charge:
    return Charge(
        request_id=request_id,
        model=draft.model,
        path=path,
        input=account.uncached,
        read=account.read,
        write_5m=account.write_5m,
        write_1h=account.write_1h,
        speed=draft.body.get("speed") or "standard",
        batch=draft.surface is Surface.BATCH_ITEM,
        message_id=f"msg_{uuid.uuid4().hex[:24]}",
    )


def _remember(state: State, answer: Answer) -> None:
    signatures = tuple(b["signature"] for b in answer.content if b["type"] == "thinking")
    for block in answer.content:
        if block["type"] == "tool_use":
            state.remembered[block["id"]] = signatures


def _message(draft: Draft, answer: Answer, charge: Charge) -> Json:
    return {
        "id": charge.message_id,
        "type": "message",
        "role": "assistant",
        "model": draft.model.name,
        "content": [],
        "stop_reason": answer.stop_reason,
        "stop_sequence": answer.stop_sequence,
        "stop_details": answer.stop_details,
        "container": None,
        "usage": {},
    }


def _diagnose(state: State, draft: Draft, prompt: Prompt, account: Account, message_id: str) -> Json | None:
    now = fingerprint(draft, prompt)
    state.fingerprints[message_id] = now
    previous = draft.body["diagnostics"].get("previous_message_id")
    if previous is None:
        return None
    reason = miss_reason(state.fingerprints.get(previous), now, account.read)
    return {"cache_miss_reason": reason} if reason is not None else None
