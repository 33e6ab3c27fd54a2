"""What people read on GitHub: the pull request's body, the one sticky comment, the message of the commit."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.egress import Attempt
from bot.domain.ids import CommitId, Digest, StepId, TaskId, TreeId, short
from bot.domain.money import MicroUsd, show
from bot.domain.plan import Plan
from bot.domain.task import Ending, Stage
from bot.domain.verdict import TestOutcome, TestReport, Verdict
from bot.policy.flags import Flag, Weight, denied, to_name
from bot.prompting.flagged import told

LONGEST_LIST = 12


@dataclass(frozen=True, slots=True)
class Cost:
    """What a task cost so far, in money and tokens."""

    spent: MicroUsd
    budget: MicroUsd
    calls: int
    uncached: int
    written: int
    read: int
    output: int

    @property
    def hit_rate(self) -> float:
        """Share of prompt tokens read from the cache, 0 to 1."""
        prompt = self.uncached + self.written + self.read
        return self.read / prompt if prompt else 0.0


@dataclass(frozen=True, slots=True)
class StatusView:
    """Everything the sticky comment shows. `plan_text` and `note` are already safe to post."""

    task: TaskId
    stage: Stage
    plan: Plan | None = None
    plan_titles: tuple[str, ...] = ()
    done: tuple[StepId, ...] = ()
    working: StepId | None = None
    pull_number: int | None = None
    note: str = ""
    cost: Cost | None = None
    ending: Ending | None = None
    egress: tuple[Attempt, ...] = ()


HEADLINES = {
    Stage.QUEUED: "Waiting for a free place.",
    Stage.PREPARING: "Getting the code and running the tests once, to know what passes today.",
    Stage.PLANNING: "Planning the change.",
    Stage.AWAITING_PLAN_APPROVAL: "The plan is ready and waits for an approval.",
    Stage.CODING: "Making the change.",
    Stage.VERIFYING: "Checking the whole change in a fresh sandbox.",
    Stage.PUBLISHING: "Opening the draft pull request.",
    Stage.IN_REVIEW: "The draft pull request is open and waits for a review.",
    Stage.REVISING: "Working on the review.",
    Stage.LANDING: "Landing the approved change.",
    Stage.READY: "Approved and ready to merge.",
    Stage.LANDED: "Merged.",
    Stage.NEEDS_HUMAN: "Stopped: this needs a person.",
    Stage.OVER_BUDGET: "Stopped: the budget does not allow the next step.",
    Stage.POLICY_DENIED: "Stopped: the policy does not allow this change.",
    Stage.CANCELLED: "Stopped on request.",
    Stage.INFRASTRUCTURE: "Stopped: something outside the task failed.",
}


def marker(task: TaskId) -> str:
    """The hidden line by which our own comment is found again."""
    return f"<!-- pullwright:task:{task} -->"


def status(view: StatusView) -> str:
    """The sticky comment."""
    lines = [marker(view.task), f"**{HEADLINES[view.stage]}**"]
    if view.pull_number is not None:
        lines += ["", f"Pull request: #{view.pull_number}"]
    if view.plan is not None:
        lines += ["", *_progress(view, view.plan)]
    if view.note:
        lines += ["", view.note]
    if view.ending is not None:
        lines += ["", view.ending.reason]
        if view.ending.next_step:
            lines += ["", view.ending.next_step]
    if view.egress:
        lines += ["", ways_out(view.egress)]
    if view.cost is not None and view.cost.calls:
        lines += ["", f"<sub>{cost_line(view.cost)} · task `{view.task}`</sub>"]
    return "\n".join(lines)


def _progress(view: StatusView, plan: Plan) -> list[str]:
    lines = []
    for step, title in zip(plan.steps, view.plan_titles, strict=True):
        mark = "x" if step.id in view.done else " "
        lines.append(f"- [{mark}] {title}" + (" ← now" if step.id == view.working else ""))
    return lines


def cost_line(cost: Cost) -> str:
    """One line: money, calls, tokens by kind."""
    return (
        f"{show(cost.spent)} of {show(cost.budget)} · {cost.calls} model calls · "
        f"{_thousands(cost.read)} tokens from cache ({cost.hit_rate:.0%}), {_thousands(cost.written)} written, "
        f"{_thousands(cost.uncached)} uncached, {_thousands(cost.output)} out"
    )


def _thousands(count: int) -> str:
    return f"{count / 1000:.1f}K" if count >= 1000 else str(count)


@dataclass(frozen=True, slots=True)
class PullView:
    """Everything the pull request's body shows. `plan_text` is sanitised already."""

    task: TaskId
    issue_number: int
    issue_is_pull: bool
    plan_text: str
    verdict: Verdict
    cost: Cost
    digest: Digest
    base_ref: str
    base: CommitId
    tree: TreeId
    changed_files: int
    digest_command: str
    isolation: str = ""
    notice: str = ""
    artefacts: str = ""
    egress: tuple[Attempt, ...] = ()
    flags: tuple[Flag, ...] = ()


def pull_body(view: PullView) -> str:
    """The pull request's body: why, plan, what was verified, cost, and the digest an approval will stand for."""
    closes = "" if view.issue_is_pull else f"Closes #{view.issue_number}.\n"
    return f"""{marker(view.task)}
{closes}{view.notice and chr(10) + view.notice + chr(10)}
## Plan

{view.plan_text}

## What was checked

{evidence(view.verdict, closed=not any(attempt.allowed for attempt in view.egress))}{_after(ways_out(view.egress))}

{view.artefacts}{to_look_at(view.flags)}## Approve exactly this

| | |
| --- | --- |
| change digest | `{view.digest}` |
| base | `{view.base_ref}` at `{short(view.base)}` |
| tested tree | `{view.tree}` |
| files changed | {view.changed_files} |

Approve with a normal review{_words(view.flags)}. The approval holds for this digest only: any later push or retarget voids it. To recompute the digest in a clone that has both commits:

```sh
{view.digest_command}
```

## Cost

{cost_line(view.cost)}{_after(view.isolation)}
"""


def to_look_at(flags: tuple[Flag, ...]) -> str:
    """What is easily overlooked in the change, and what a reviewer has to name to allow; empty when there is nothing."""
    if not flags:
        return ""
    names = {
        Weight.DENIED: "**{}** (nobody can allow this)",
        Weight.NAMED: "**{}**",
        Weight.SHOWN: "{}",
    }
    lines = [f"- {names[flag.weight].format(flag.name)}: {told(flag)}" for flag in flags]
    return "\n".join(["## Look closely at", "", *lines, "", ""])


def _words(flags: tuple[Flag, ...]) -> str:
    words = " ".join(f"allow:{name}" for name in to_name(flags) if not denied(flags))
    return f" that holds the words `{words}`, if you agree to what is in bold above" if words else ""


def _after(paragraph: str) -> str:
    return f"\n\n{paragraph}" if paragraph else ""


def artefact_section(page: str, commit: CommitId, names: tuple[str, ...], not_kept: tuple[str, ...]) -> str:
    """Links to what the checks left to be seen. It lies in the same repository, so whoever sees this sees that, and nobody else."""
    if not names and not not_kept:
        return ""
    lines = [f"- [{name}]({page}/blob/{commit}/{name})" for name in names]
    lines += [f"- Not kept: {why}" for why in not_kept[:LONGEST_LIST]]
    return "\n".join(["## What the checks show", "", *lines, "", ""])


def ways_out(egress: tuple[Attempt, ...]) -> str:
    """Every host that sandboxes of the task asked for, and how one is opened, folded; empty when none was. Nothing is said twice."""
    if not egress:
        return ""
    let, denied = (len({each.target for each in egress if each.allowed is answer}) for answer in (True, False))
    shown = [_attempt(attempt) for attempt in egress[:LONGEST_LIST]]
    if len(egress) > LONGEST_LIST:
        shown.append(f"- and {len(egress) - LONGEST_LIST} more")
    lines = [f"<details><summary>Network: {let} reached, {denied} denied</summary>", "", *shown]
    unlisted = next((_target(attempt) for attempt in egress if attempt.unlisted), None)
    if unlisted is not None:
        setting = "`PULLWRIGHT_EGRESS`, or to `PULLWRIGHT_SETUP_EGRESS` for set-up alone"
        lines += ["", f"Whoever operates Pullwright can open one by adding it, such as {unlisted}, to {setting}."]
    return "\n".join([*lines, "", "</details>"])


def _attempt(attempt: Attempt) -> str:
    answer = "reached" if attempt.allowed else "denied"
    often = "" if attempt.times == 1 else f" {attempt.times} times"
    why = "" if attempt.allowed or attempt.unlisted else f" (`{_plain(attempt.reason)}`)"
    return f"- {_target(attempt)}: {answer}{often} during {attempt.phase}{why}"


def _target(attempt: Attempt) -> str:
    return f"`{_plain(attempt.target)}`"


def _plain(text: str) -> str:
    """What a sandbox named is its own words: printable ASCII without markup, and short."""
    return "".join(c if " " <= c <= "~" and c not in "`<>|\\" else "·" for c in text[:100]) or "·"


def evidence(verdict: Verdict, *, closed: bool = True) -> str:
    """The tests before and after and the scan, as a short list; `closed`: no host was reached."""
    lines = [
        f"- Tests before: {_counts(verdict.before)}",
        f"- Tests after: {_counts(verdict.after)}",
    ]
    fixed = sorted(verdict.before.ids(TestOutcome.FAILED) & verdict.after.ids(TestOutcome.PASSED))
    known = {case.id for case in verdict.before.cases}
    new = [] if verdict.after.is_command else sorted(verdict.after.ids(TestOutcome.PASSED) - known)
    failing = sorted(verdict.after.ids(TestOutcome.FAILED))
    if fixed:
        lines.append(f"- Fixed: {_names(fixed)}")
    if new:
        lines.append(f"- New and passing: {_names(new)}")
    if failing:
        lines.append(f"- Failing as before: {_names(failing)}")
    lines.append(f"- {_UNNAMED if verdict.after.is_command else _NONE_LOST}")
    lines.append("- Semgrep: the change introduces no finding.")
    where = "a fresh sandbox without network" if closed else "a fresh sandbox with the network named below"
    lines.append(f"- Command: `{verdict.after.command}`, in {where} that held exactly the tree below.")
    return "\n".join(lines)


_NONE_LOST = "No test that passed before fails, is skipped or is missing now."
_UNNAMED = "The output of the command names no single tests, so nobody counted them: a test that no longer runs would not show."


def _counts(report: TestReport) -> str:
    if report.is_command:
        how = "succeeded" if report.exit_code == 0 else f"failed with exit code {report.exit_code}"
        return f"the command {how} in {report.seconds:.1f} s"
    passed, failed = report.count(TestOutcome.PASSED), report.count(TestOutcome.FAILED)
    skipped = report.count(TestOutcome.SKIPPED)
    return f"{passed} passed, {failed} failed, {skipped} skipped in {report.seconds:.1f} s"


def _names(names: list[str]) -> str:
    shown = ", ".join(f"`{name.replace('`', '')}`" for name in names[:LONGEST_LIST])
    return shown + (f" and {len(names) - LONGEST_LIST} more" if len(names) > LONGEST_LIST else "")


def commit_message(title: str, number: int, task: TaskId) -> str:
    """The message of a commit of the bot's branch."""
    return f"{title}\n\nFor #{number}, by Pullwright ({task}).\n"
