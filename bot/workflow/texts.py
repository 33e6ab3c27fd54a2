"""Endings that belong to no stage: what the person reads when the outside, or we, failed."""

from __future__ import annotations

from bot.domain.decision import Decision
from bot.domain.event import Closing
from bot.domain.ids import CommitId, Digest, short
from bot.domain.pull import Approval
from bot.domain.task import Ending, Stage
from bot.domain.verdict import Failure, TestReport

_RETRY = "Reply `/agent retry` to try again."


def custody(rule: str, meaning: str) -> Ending:
    """Something crossed the line that must not."""
    return Ending(
        Stage.POLICY_DENIED,
        f"What came out of the sandbox was refused. {meaning} (`{rule}`)",
        f"Nothing of it was used. {_RETRY}",
    )


def upstream(rule: str, meaning: str) -> Ending:
    """The repository does not hold what it should, or tries to pass one thing for another."""
    return Ending(Stage.NEEDS_HUMAN, f"The repository cannot be worked on: {meaning} (`{rule}`)", _RETRY)


def gone(reason: str) -> Ending:
    """The repository, branch or our right to it."""
    return Ending(Stage.CANCELLED, f"GitHub no longer lets us work here: {reason}", "")


def github_refused(status: int, message: str) -> Ending:
    """A refusal we have no answer to."""
    return Ending(Stage.NEEDS_HUMAN, f"GitHub refused with {status}: {message}", _RETRY)


def infrastructure(reason: str) -> Ending:
    """Patience used up."""
    return Ending(
        Stage.INFRASTRUCTURE, f"A service failed again and again: {reason}", f"What is on GitHub stays. {_RETRY}"
    )


def unexpected() -> Ending:
    """A fault of ours; details are in the log under the task's id."""
    return Ending(
        Stage.INFRASTRUCTURE, "An unexpected error stopped the task; the operator finds it in the log.", _RETRY
    )


def stopped(login: str) -> Ending:
    return Ending(Stage.CANCELLED, f"Stopped by {login}.", f"What is on GitHub stays. {_RETRY}")


_CLOSED = {
    Closing.ISSUE_CLOSED: ("The issue was closed while the task was running.", "Reopen it"),
    Closing.ISSUE_DELETED: ("The issue was deleted while the task was running.", ""),
    Closing.ISSUE_TRANSFERRED: ("The issue was moved to another repository.", "Label it there"),
    Closing.LABEL_REMOVED: ("The label was taken off before I began; nothing was spent.", "Put it on again"),
    Closing.ARCHIVED: ("The repository was archived, so nothing can be written there.", "Unarchive it"),
    Closing.DELETED: ("The repository was deleted.", ""),
    Closing.TRANSFERRED: ("The repository was transferred to another owner.", "Ask again there"),
    Closing.PUBLICIZED: ("The repository was made public; the task began while it was private.", "Ask again"),
    Closing.REMOVED: ("The repository was taken out of the App's installation.", "Add it again"),
    Closing.UNINSTALLED: ("The App was uninstalled.", "Install it again"),
    Closing.SUSPENDED: ("The App's installation was suspended.", "Lift the suspension"),
}


def closed(why: Closing, login: str) -> Ending:
    """What the task stood on is gone; who did it, and what brings it back."""
    said, again = _CLOSED[why]
    return Ending(Stage.CANCELLED, f"{said} ({login})", f"{again}, then `/agent retry` starts anew." if again else "")


def base_gone(branch: str) -> Ending:
    """The branch the task began on does not exist any more: deleted, or renamed."""
    return Ending(
        Stage.CANCELLED,
        f"The base branch `{branch}` does not exist any more; it was deleted or renamed. Nothing was published.",
        "`/agent retry` starts anew on the default branch of today.",
    )


def pull_closed() -> Ending:
    return Ending(
        Stage.CANCELLED,
        "The pull request was closed without merging.",
        "Opening it again does not bring me back; reply `/agent retry` here to start anew.",
    )


def stale() -> Ending:
    return Ending(Stage.CANCELLED, "Nobody reviewed the pull request for 30 days.", _RETRY)


def plan_waits(digest: str, plan: str, *, other: str = "") -> str:
    """The plan and the words that approve exactly it; `other` is a hash somebody typed that is not its."""
    wrong = f"`{short(other)}` is not this plan's hash. " if other else ""
    return (
        f"{wrong}Nothing is spent on coding before somebody with write permission comments "
        f"`/agent approve {short(digest)}`. `/agent stop` ends it here.\n\n{plan}"
    )


def plan_stale() -> Ending:
    return Ending(Stage.CANCELLED, "Nobody approved the plan for 30 days.", _RETRY)


def no_tests(path: str) -> Ending:
    """Without tests nothing can be proved."""
    return Ending(
        Stage.NEEDS_HUMAN,
        "No test command is known for this repository, so nothing could be verified.",
        f'Add `test = "…"` to `{path}` on the default branch, then reply `/agent retry`.',
    )


def base_unrunnable(report: TestReport, lacking: str = "") -> Ending:
    """The base's own tests do not run to their end, or none is known to pass; `lacking` is the host that they may miss."""
    how, advice = (
        f"fail (exit code {report.exit_code}) on the untouched base, and the output names none that passes",
        "",
    )
    if report.timed_out:
        how = "do not finish in time on the untouched base"
    elif report.broke_off:
        how = f"break off (exit code {report.exit_code}) on the untouched base"
    else:
        advice = " Some tests may fail if the output names the others, as that of pytest or `unittest -v` does."
    return Ending(
        Stage.NEEDS_HUMAN,
        f"The tests {how}, so a change could not be judged. "
        f"`{report.command}` said:\n\n```\n{report.tail[-1200:]}\n```",
        f"Check `test`, `step_test`, `setup` and `template` in `.github/pullwright.toml`, then reply `/agent retry`.{advice}{lacking}",
    )


def still_failing(names: tuple[str, ...]) -> Ending:
    """The full check at the end."""
    listed = "".join(f"\n- {name}" for name in names[:8])
    return Ending(Stage.NEEDS_HUMAN, f"The whole change does not pass the checks:{listed}", _RETRY)


def branch_taken(branch: str) -> Ending:
    """A branch of the task's name holds what the task did not make."""
    return Ending(
        Stage.NEEDS_HUMAN,
        f"The branch `{branch}` holds commits that are not ours; nothing was pushed over them.",
        f"Delete or rename the branch. {_RETRY}",
    )


def overtaken() -> str:
    """Somebody pushed while a review was worked in."""
    return "Somebody pushed to the branch while I worked in the review, so I pushed nothing. Ask again if it is still wanted."


def merged_elsewhere(who: str) -> Ending:
    """Past the gate; `who` is empty when what came does not say who merged."""
    return Ending(
        Stage.LANDED,
        f"It was merged on GitHub{f' by {who}' if who else ''} before the gate opened, so nobody compared what landed with an approval.",
        "Somebody should look at it. Where `pullwright/gate` is a required check, GitHub refuses such a merge.",
    )


def policy_denied(decision: Decision) -> Ending:
    """The operator's rules forbid it."""
    listed = "".join(
        f"\n- {reason.text}" + "".join(f"\n  - {about.text}" for about in reason.children)
        for reason in decision.against()
    )
    return Ending(Stage.POLICY_DENIED, f"The policy does not allow this change:{listed}", _RETRY)


def bad_settings(path: str, message: str) -> Ending:
    """The repository's own settings cannot be read."""
    return Ending(
        Stage.NEEDS_HUMAN, f"`{path}` on the default branch cannot be used: {message}", f"Correct it. {_RETRY}"
    )


def too_many_rounds(rounds: int) -> Ending:
    return Ending(
        Stage.NEEDS_HUMAN, f"{rounds} rounds of review were worked in; a person should take over now.", _RETRY
    )


def held(reason: str) -> str:
    """A loop breaker: the request is not lost, it only has to be made again later."""
    return f"Not now: {reason} Nothing was spent. Ask again later, or ask the operator to raise the limit."


def not_counted(decision: Decision) -> str:
    """A later message was no approval that counts; the one before still stands."""
    return f"The {decision.subject} does not count: {' '.join(reason.text for reason in decision.against())}"


def adopted(head: CommitId, digest: Digest, failures: tuple[Failure, ...]) -> str:
    """Somebody else's push was looked at."""
    if not failures:
        return (
            f"Somebody pushed `{short(head)}`. It passes the checks. An earlier approval no longer counts; "
            f"the digest to approve now is `{digest}`."
        )
    return (
        f"Somebody pushed `{short(head)}`, and it does not pass the checks. It cannot be approved as it is."
        f"{_listed(failures)}"
    )


def merge_fails(branch: str, failures: tuple[Failure, ...]) -> str:
    """The change passed by itself, and does not together with what the base branch holds by now."""
    return f"`{branch}` moved on, and together with it the change does not pass the checks.{_listed(failures)}"


def _listed(failures: tuple[Failure, ...]) -> str:
    named = [f"{failure.kind.value}: {failure.subject}" for failure in failures[:8]]
    more = [f"and {len(failures) - 8} more"] if len(failures) > 8 else []
    return "\n" + "".join(f"\n- {line}" for line in (*named, *more))


def ready(gate: str, approval: Approval) -> str:
    """The gate is open, in its own words, and nobody merged yet."""
    return f"{gate}. Merge the pull request on GitHub, or comment `/agent merge {short(approval.digest)}` there."


def other_digest(approval: Approval | None) -> str:
    """The merge command named something else than what was approved."""
    if approval is None:
        return "Nothing is approved now, so there is nothing to merge."
    return f"The approved digest is `{short(approval.digest)}`; the command named another one. Nothing was merged."
