"""The one engine for "may this happen?" (design D3): Cedar over facts, with reasons out. Anything unclear denies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import cedarpy

from bot.domain.decision import Decision, Outcome, Reason
from bot.policy.facts import Question, ask
from bot.policy.limits import Limits, LimitsFault, parse_limits
from bot.policy.sources import (
    PolicyFault,
    Source,
    Statement,
    check_named,
    check_only_forbids,
    check_schema,
    read_statements,
)

REPOSITORY_POLICY_PATH = ".github/pullwright.cedar"


@dataclass(frozen=True, slots=True)
class Policies:
    """A checked set of rules. With a fault in it, every question is denied with the fault as reason."""

    sources: tuple[Source, ...]
    schema: str
    limits: Limits
    statements: tuple[Statement, ...] = ()
    faults: tuple[PolicyFault, ...] = ()
    limits_text: str = field(default="", repr=False)

    @property
    def digest(self) -> str:
        """Identifies the rules in approval records: sha256 over all their texts."""
        whole = hashlib.sha256()
        for part in (self.schema, self.limits_text, *(text for one in self.sources for text in (one.name, one.text))):
            whole.update(len(part.encode()).to_bytes(8, "big") + part.encode())
        return whole.hexdigest()

    def decide(self, question: Question) -> Decision:
        """Allowed only when a permit holds, no forbid does, and nothing went wrong on the way."""
        asked = ask(question)
        if self.faults:
            return Decision(asked.action, tuple(_refused("policy-invalid", str(fault)) for fault in self.faults))
        result = cedarpy.is_authorized(asked.request, _joined(self.sources), json.dumps(asked.entities), self.schema)
        if result.diagnostics.errors:
            wrong = tuple(_refused("policy-error", _short(str(error))) for error in result.diagnostics.errors)
            return Decision(asked.action, wrong)
        held = [self.statements[int(name.removeprefix("policy"))] for name in result.diagnostics.reasons]
        outcome = Outcome.PASSED if result.allowed else Outcome.REFUSED
        reasons = tuple(
            Reason(statement.name or statement.place, outcome, statement.reason or f"{statement.place} says so.")
            for statement in sorted(held, key=lambda one: (one.file, one.line))
        )
        return Decision(asked.action, reasons or (_refused("default-deny", "No rule permits this."),))

    def tightened(self, text: str, name: str = REPOSITORY_POLICY_PATH) -> Policies:
        """These rules and a repository's own, which may only forbid. A fault in the latter denies everything."""
        source = Source(name, text)
        statements = read_statements(source)
        if isinstance(statements, PolicyFault):
            return replace(self, faults=(*self.faults, statements))
        fault = check_only_forbids(statements) or check_schema(source, statements, self.schema)
        return replace(
            self,
            sources=(*self.sources, source),
            statements=(*self.statements, *statements),
            faults=(*self.faults, fault) if fault else self.faults,
        )


def _short(error: str) -> str:
    """What went wrong, without the entities that cedar puts before it."""
    return f"The rules could not be applied: {error.rpartition(']: ')[2][:300]}"


def _refused(rule: str, text: str) -> Reason:
    return Reason(rule, Outcome.REFUSED, text)


def _joined(sources: Sequence[Source]) -> str:
    """One text whose policies Cedar numbers in the order of `Policies.statements`."""
    return "\n".join(source.text for source in sources)


def check(sources: Sequence[Source], schema: str, limits: str) -> Policies:
    """The rules in these texts, checked against the schema; what is wrong with them is in `faults`."""
    faults: list[PolicyFault] = []
    statements: list[Statement] = []
    ordered = tuple(sorted(sources, key=lambda source: source.name))
    for source in ordered:
        found = read_statements(source)
        if isinstance(found, PolicyFault):
            faults.append(found)
            continue
        statements += found
        fault = check_schema(source, found, schema)
        if fault:
            faults.append(fault)
    named = check_named(tuple(statements))
    if named:
        faults.append(named)
    if not statements and not faults:
        faults.append(PolicyFault("policies", None, "there is no rule at all"))
    read = parse_limits(limits)
    if isinstance(read, LimitsFault):
        faults.append(PolicyFault("limits.toml", read.line, read.message))
        read = Limits()
    return Policies(ordered, schema, read, tuple(statements), tuple(faults), limits)
