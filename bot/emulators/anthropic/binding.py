"""Thinking binding: a thinking block is valid while everything before it is what it was."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from bot.emulators.anthropic.refusals import Refusal
from bot.emulators.anthropic.seals import FIRST, Prefix, Sealer, genuine, parse, secret_of
from bot.emulators.anthropic.wire import THOUGHTS, Draft, Json, Placed, Surface, Turn


class Verdict(Enum):
    """How a thinking block that came back stands."""

    GOOD = "good"
    FORGED = "forged"
    OTHER_MODEL = "model_binding_mismatch"
    MOVED = "prefix_binding_mismatch"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thinking block and its verdict."""

    placed: Placed
    verdict: Verdict
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Examination:
    """All thinking blocks of a request, and the hash and tag that the answer's own blocks continue from."""

    findings: tuple[Finding, ...]
    sealer: Sealer

    def dropped(self, draft: Draft) -> tuple[Finding, ...]:
        """Blocks the model is not shown: another model's, and moved ones where that is not an error."""
        gone = {Verdict.OTHER_MODEL, Verdict.MOVED} if not refuses_moved(draft) else {Verdict.OTHER_MODEL}
        return tuple(f for f in self.findings if f.verdict in gone and not _shown_anyway(draft, f))


def _behaviour(draft: Draft) -> str | None:
    value = (draft.thinking.get("block_binding") or {}).get("prefix_mismatch_behavior")
    return str(value) if value is not None else None


def drops_moved(draft: Draft) -> bool:
    """Asked to drop, or a batch item that left the choice open."""
    asked = _behaviour(draft)
    return asked == "drop_block" or (asked is None and draft.surface is Surface.BATCH_ITEM)


def refuses_moved(draft: Draft) -> bool:
    """An old account is only held to the rule when it opts in."""
    if drops_moved(draft):
        return False
    return draft.policy.enforce_binding or _behaviour(draft) == "error"


def _shown_anyway(draft: Draft, finding: Finding) -> bool:
    return finding.verdict is Verdict.MOVED and not drops_moved(draft)


def examine(draft: Draft) -> Examination:
    """Walk the conversation once, hashing as the answers' signatures did."""
    secret, prefix = secret_of(draft.key), Prefix(draft)
    findings: list[Finding] = []
    last = ""
    for turn in draft.turns:
        for placed in turn.placed:
            if placed.kind not in THOUGHTS:
                prefix.add(turn.role, placed.block)
                continue
            finding = _judge(draft, placed, secret, prefix.value, last)
            findings.append(finding)
            if finding.verdict is Verdict.GOOD:
                last = finding.tag
    return Examination(tuple(findings), Sealer(secret, draft.model.name, prefix, last or FIRST))


def _judge(draft: Draft, placed: Placed, secret: bytes, prefix: str, last: str) -> Finding:
    seal = parse(str(placed.block.get("signature", "")))
    if seal is None or not genuine(seal, secret, str(placed.block.get("thinking", ""))):
        return Finding(placed, Verdict.FORGED)
    if seal.model != draft.model.name:
        return Finding(placed, Verdict.OTHER_MODEL, seal.tag)
    follows = not last or seal.previous == last
    return Finding(placed, Verdict.GOOD if follows and seal.prefix == prefix else Verdict.MOVED, seal.tag)


def signatures(draft: Draft) -> None:
    """V23."""
    for finding in examine(draft).findings:
        if finding.verdict is Verdict.FORGED:
            raise Refusal(f"{finding.placed.where}: Invalid `signature` in `thinking` block")


def prefixes(draft: Draft) -> None:
    """V24."""
    if not refuses_moved(draft):
        return
    for finding in examine(draft).findings:
        if finding.verdict is Verdict.MOVED:
            raise Refusal(
                f"{finding.placed.where}: Invalid `signature` in `thinking` block. The block is bound to a different "
                "conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "
                '"drop_block". Something before the block (tools, system or an earlier message) is not what it was.'
            )


def latest_intact(draft: Draft) -> None:
    """V25: the latest assistant turn comes back with the thinking it was given."""
    latest = next((t for t in reversed(draft.turns) if t.role == "assistant"), None)
    if latest is None or not draft.policy.strict_latest or drops_moved(draft):
        return
    given = [p.block.get("signature") for p in latest.placed if p.kind in THOUGHTS]
    for expected in _remembered(draft, latest):
        if [s for s in given if s in expected] != list(expected):
            raise Refusal(
                f"messages.{latest.first}: `thinking` or `redacted_thinking` blocks in the latest assistant message "
                "cannot be modified. These blocks must remain as they were in the original response."
            )


def _remembered(draft: Draft, turn: Turn) -> Iterator[tuple[str, ...]]:
    for call in turn.of("tool_use"):
        expected = draft.remembered.get(call.block["id"], ())
        seals = [parse(s) for s in expected]
        if all(s is not None and s.model == draft.model.name for s in seals):
            yield expected


def transformations(draft: Draft, examination: Examination) -> list[Json]:
    """What `input_transformations` reports to a request that may set the controls."""
    dropped = {f.placed.where for f in examination.dropped(draft)}
    return [
        {
            "type": "thinking_dropped" if f.placed.where in dropped else "thinking_mismatch_allowed",
            "path": f.placed.where,
            "reason": f.verdict.value,
        }
        for f in examination.findings
        if f.verdict in {Verdict.OTHER_MODEL, Verdict.MOVED}
    ]
