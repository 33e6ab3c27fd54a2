"""The words of a gate decision: check run, sticky comment, status. One value, three renderings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from textwrap import shorten

from bot.domain.decision import Decision, Outcome, Reason
from bot.domain.ids import short
from bot.domain.pull import Approval

MAX_SUMMARY = 65_000
LET_GO = "The task ended. Nobody compares any more what would land with what was approved; its comment on the issue says what helps."
RECEIPT = "pullwright-approval-v1"

_SIGN = {Outcome.PASSED: "✓", Outcome.WAITING: "…", Outcome.REFUSED: "✗"}
_NEXT = {
    "approval": "Read the diff. Approve it with a review, or type the command above.",
    "flags": "Have a look at the files named here. If that is meant, approve (again) with the words above in the review.",
    "head": "Something was pushed after the review. Look at what is new and approve again.",
    "merge_base": "The branch's starting point changed. Look again and approve again.",
    "digest": "The change is not the approved one. Look again and approve again.",
    "base_branch": "Change the base branch back, or approve for this one.",
    "merge": "Merge the base branch into this one and resolve the conflict; the new head is checked and gets a digest of its own.",
    "verified": "I run the checks on what would land; nothing to do for you.",
    "no_objection": "Once the person who asked for changes approves or is answered, I look again.",
    "reviewer": "Somebody else with write permission has to approve.",
    "shown_digest": "The base branch was rewritten or changed, so this is another change now. Look again and approve again.",
    "approvals": "Somebody else with write permission has to approve, too.",
    "code_owners": "Ask the named code owners for a review; the file is read from the base branch.",
    "policy": "The operator's rules decide here; `pullwright policy explain` shows which.",
}
_NEXT_REFUSED = {**_NEXT, "verified": "Push a correction, or ask me for one with `/agent fix …`."}
_MARKUP = re.compile(r"([\\\[\]*_#|!])")


def title(decision: Decision) -> str:
    """One line: what stands in the way, or that nothing does."""
    against = _against(decision)
    if decision.allowed:
        return "Exactly the approved change would land"
    if not against:
        return "Nothing was decided"
    more = f" (and {len(against) - 1} more)" if len(against) > 1 else ""
    return shorten(f"{against[0].text}{more}".replace("`", ""), 200, placeholder=" …")


def summary(decision: Decision, digest: str) -> str:
    """Every reason, what to do next, and how to check the digest without us."""
    lines = [f"Change digest `{digest}`", "", *_reasons(decision.reasons)]
    steps = next_steps(decision)
    if steps:
        lines += ["", "**What helps**", "", *(f"- {step}" for step in steps)]
    return "\n".join(lines)[:MAX_SUMMARY] + "\n"


def comment(decision: Decision, *, digest: str, approval: Approval | None = None) -> str:
    """The gate's paragraph in the sticky comment: only what stands in the way, and the next step."""
    if decision.allowed:
        by = f" @{approval.reviewer.login} approved it." if approval else ""
        return f"**Gate: open.** Exactly the change `{short(digest)}` lands.{by}\n"
    head = "**Gate: closed.**" if _outcome(decision) is Outcome.REFUSED else "**Gate: waiting.**"
    lines = [f"{head} Change `{short(digest)}`.", "", *_reasons(_against(decision))]
    steps = next_steps(decision)
    return "\n".join([*lines, *(["", *steps] if steps else [])]) + "\n"


def receipt(approval: Approval) -> str:
    """The approval record for machines: a fenced JSON block in which no value can close the fence or break a line."""
    record = {
        "format": RECEIPT,
        "repository_id": approval.repository,
        "pull_request": {"number": approval.pull_number, "node_id": approval.pull_node_id},
        "review": {"id": approval.review_id, "commit": approval.review_commit},
        "reviewer": {"id": approval.reviewer.id, "login": approval.reviewer.login, "permission": approval.permission},
        "received_at": approval.received_at,
        "delivery": approval.delivery,
        "head": approval.head_sha,
        "base": {"ref": approval.base_ref, "sha": approval.base_sha, "merge_base": approval.merge_base},
        "digest": approval.digest,
        "trees": {"head": approval.head_tree, "merge": approval.merge_tree},
        "policy_digest": approval.policy_digest,
        "flags": list(approval.flags),
    }
    text = json.dumps(record, indent=1, ensure_ascii=True).replace("`", "\\u0060").replace("<", "\\u003c")
    return f"<details><summary>Approval record</summary>\n\n```json\n{text}\n```\n\n</details>\n"


def status(decision: Decision) -> str:
    """One word and one sentence, for `/agent status`."""
    word = {Outcome.PASSED: "open", Outcome.WAITING: "waiting", Outcome.REFUSED: "closed"}[_outcome(decision)]
    return f"gate {word}: {title(decision)}"


def landed_title(*, alarm: bool) -> str:
    """The check's title after the merge."""
    return "What landed is not what was approved" if alarm else "The approved change landed"


def next_steps(decision: Decision) -> tuple[str, ...]:
    """What a person can do, once for each kind of obstacle."""
    steps = {Outcome.WAITING: _NEXT, Outcome.REFUSED: _NEXT_REFUSED}
    return tuple(
        dict.fromkeys(steps[each.outcome][each.rule] for each in _against(decision) if each.rule in steps[each.outcome])
    )


def _against(decision: Decision) -> tuple[Reason, ...]:
    """What is wrong before what is only awaited: nobody should approve what cannot land."""
    return tuple(sorted(decision.against(), key=lambda reason: reason.outcome is not Outcome.REFUSED))


def _outcome(decision: Decision) -> Outcome:
    return Outcome.PASSED if decision.allowed else (decision.outcome if decision.reasons else Outcome.REFUSED)


def _reasons(reasons: tuple[Reason, ...], depth: int = 0) -> Iterator[str]:
    for reason in reasons:
        yield f"{'  ' * depth}- {_SIGN[reason.outcome]} {_plain(reason.text)}"
        yield from _reasons(reason.children, depth + 1)


def _plain(text: str) -> str:
    """Names from outside stand inside sentences; none of them may format, link or break a line."""
    parts = " ".join(text.split()).split("`")
    return "`".join(part if index % 2 else _escaped(part) for index, part in enumerate(parts))


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text).replace("<", "&lt;").replace(">", "&gt;")
