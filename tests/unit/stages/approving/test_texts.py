from __future__ import annotations

import json
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from bot.domain.decision import Decision, Outcome, Reason
from bot.stages.approving import texts
from bot.stages.approving.gate import decide
from tests.unit.stages.approving.builders import DIGEST, TERMS, approval, snapshot, with_pull
from tests.unit.stages.approving.ways import WAYS

DECISIONS = {
    "open": decide(approval(), snapshot(), TERMS),
    "waiting for an approval": decide(None, snapshot(reviews=(), flags=("workflows", "binary")), TERMS),
    "nothing decided": Decision("x", ()),
    **{way.name: decide(way.then, way.now, way.terms) for way in WAYS if way.name[0] in "16cA2"},
}


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision_in_words(name: str, snapshot: SnapshotAssertion) -> None:
    decision = DECISIONS[name]
    assert texts.title(decision) == snapshot(name="title")
    assert texts.summary(decision, digest=DIGEST) == snapshot(name="summary")
    assert texts.comment(decision, digest=DIGEST, approval=approval()) == snapshot(name="comment")
    assert texts.status(decision) == snapshot(name="status")


def test_what_landed_in_words() -> None:
    assert texts.landed_title(alarm=False) == "The approved change landed"
    assert texts.landed_title(alarm=True) == "What landed is not what was approved"


def test_names_from_outside_cannot_format_or_break_a_line() -> None:
    decision = decide(approval(), with_pull(base_ref="x\n## `[y](http://z) <img src=w> @t"), TERMS)
    assert "`x ## '[y](http://z) <img src=w> @t`" in texts.comment(decision, digest=DIGEST)
    loose = Decision("x", (Reason("r", Outcome.REFUSED, "a\n# b [c](d) <e>"),))
    assert r"✗ a \# b \[c\](d) &lt;e&gt;" in texts.comment(loose, digest=DIGEST)


@pytest.mark.parametrize("ref", ["main", "a`b```\u202e", "</details><img src=x>@everyone", 'x"\\n```'])
def test_the_receipt_says_the_record_and_no_value_leaves_its_place(ref: str) -> None:
    record = replace(approval(), base_ref=ref, flags=("lockfile",))
    text = texts.receipt(record)
    assert text.count("```") == 2
    assert "<img" not in text
    told = json.loads(text.split("```json\n")[1].split("\n```")[0])
    assert told["base"]["ref"] == ref
    assert told["digest"] == record.digest
    assert told["reviewer"]["login"] == record.reviewer.login
    assert told["flags"] == ["lockfile"]


def test_children_are_shown_below_their_reason() -> None:
    inner = Reason("inner", Outcome.REFUSED, "Not on Fridays.")
    shown = texts.summary(Decision("x", (Reason("policy", Outcome.REFUSED, "No.", (inner,)),)), digest=DIGEST)
    assert "- ✗ No.\n  - ✗ Not on Fridays." in shown


def test_a_long_decision_fits_into_a_check_run() -> None:
    many = Decision("x", tuple(Reason(f"r{i}", Outcome.REFUSED, "word " * 100) for i in range(1000)))
    assert len(texts.summary(many, digest=DIGEST)) <= 65_535
    assert len(texts.title(many)) <= 200
