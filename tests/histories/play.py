"""Random histories: a seed draws the verbs, the misfortunes and the calm at the end in which what is approved has to land."""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from bot.domain.repository import LandingMode
from bot.domain.task import Stage
from bot.policy.engine import Policies
from tests.histories.history import History, Race, Violation
from tests.histories.stage import PEOPLE, Mutant, staged

WRITERS = ("rosa", "robin", "carl")
EVERYBODY = tuple(PEOPLE)
_METHODS = ("merge", "merge", "merge", "mark_ready", "pull", "reviews", "permission", "branch_head", "repository")
Act = Callable[[History, random.Random], Awaitable[object]]


def _files(draw: random.Random) -> dict[str, str]:
    """A change to one file: good, failing, or good alone but not together with another one like it."""
    word = draw.choice(["good", "good", "good", "bad", "clash"])
    path = draw.choice(["feature.py", "shop.py", "stock.py", f"new{draw.randrange(3)}.py"])
    return {path: f"{word} = {draw.randrange(10_000)}\n"}


async def _push(history: History, draw: random.Random) -> None:
    await history.push(draw.choice(EVERYBODY), _files(draw))


async def _rewrite(history: History, draw: random.Random) -> None:
    """A force-push: other content, or a head that was there before."""
    git, pull = history.stage.git, history.pull
    if draw.random() < 0.5 and len(pull.heads) > 1:
        await history.move(draw.choice(WRITERS), pull.head_ref, draw.choice(pull.heads), force=True)
        return
    base = git.refs[f"refs/heads/{pull.base_ref}"]
    await history.push(draw.choice(WRITERS), _files(draw), parent=git.merge_base(base, pull.head_sha), force=True)


async def _move_base(history: History, draw: random.Random) -> None:
    there = [name for name in ("main", "decoy") if f"refs/heads/{name}" in history.stage.git.refs]
    await history.move_base(draw.choice(WRITERS), _files(draw), draw.choice([None, None, *there]))


async def _rewind(history: History, draw: random.Random) -> None:
    """Somebody forces the base branch back, or onto another history."""
    git, name = history.stage.git, history.pull.base_ref
    tip = git.refs[f"refs/heads/{name}"]
    below = git.parents(tip)
    if not below:
        return
    target = below[0]
    if draw.random() < 0.5:
        texts = {path: git.objects[sha][1].decode() for path, (_, sha) in git.files(target).items()}
        target = history.stage.commit({**texts, **_files(draw)}, target)
    await history.move("carl", name, target, force=True)


async def _merge_other(history: History, draw: random.Random) -> None:
    await history.merge_other(draw.choice(WRITERS), _files(draw))


async def _review(history: History, draw: random.Random) -> None:
    event = draw.choice(["APPROVE", "APPROVE", "APPROVE", "APPROVE", "COMMENT", "REQUEST_CHANGES"])
    commit = draw.choice([None, history.pull.head_sha, draw.choice(history.pull.heads)])
    await history.review(draw.choice(EVERYBODY), event, commit)


async def _approve(history: History, draw: random.Random) -> None:
    await history.review(draw.choice(WRITERS), "APPROVE", history.pull.head_sha)


async def _say(history: History, draw: random.Random) -> None:
    digest = draw.choice([history.oracle.current(history.pull), *(word.digest for word in history.oracle.words)])
    await history.say(draw.choice(EVERYBODY), draw.choice(["approve", "merge", "merge"]), digest)


async def _dismiss(history: History, draw: random.Random) -> None:
    await history.dismiss(draw.choice(WRITERS), draw.choice(WRITERS))


async def _retarget(history: History, draw: random.Random) -> None:
    away = history.pull.base_ref == "main"
    await history.retarget(draw.choice(WRITERS), "decoy" if away else "main")


async def _grade(history: History, draw: random.Random) -> None:
    await history.grade(draw.choice(EVERYBODY), draw.choice(["write", "write", "read", "none"]))


async def _close(history: History, draw: random.Random) -> None:
    """Most are opened again before anybody hears of it."""
    who = draw.choice(EVERYBODY)
    await history.state(who, "closed")
    if draw.random() < 0.8:
        await history.state(who, "open")


async def _reopen(history: History, draw: random.Random) -> None:
    await history.state(draw.choice(EVERYBODY), "open")


async def _flip(history: History, draw: random.Random) -> None:
    await history.flip(draw.choice(EVERYBODY), draft=history.pull.draft is False)


async def _update_branch(history: History, draw: random.Random) -> None:
    await history.update_branch(draw.choice(WRITERS))


async def _ask_again(history: History, draw: random.Random) -> None:
    await history.ask_again(draw.choice(EVERYBODY), draw.choice(WRITERS))


async def _rebase(history: History, draw: random.Random) -> None:
    await history.rebase(draw.choice(EVERYBODY))


async def _rename(history: History, draw: random.Random) -> None:
    await history.rename(f"bookshop-{draw.randrange(100)}")


async def _rename_base(history: History, draw: random.Random) -> None:
    await history.rename_base(f"trunk-{draw.randrange(100)}")


async def _merge(history: History, draw: random.Random) -> None:
    who = draw.choice(EVERYBODY)
    if history.pull.draft:
        await history.flip(who, draft=False)
    await history.merge(who)


BUTTONS: tuple[Act, ...] = (
    _close, _reopen, _flip, _update_branch, _ask_again, _rebase, _rename, _rename_base, _merge, _merge_other
)  # fmt: skip
RACES: tuple[Act, ...] = (_push, _rewrite, _retarget, _move_base, _rewind, _dismiss, _grade, _review, *BUTTONS)


async def _button(history: History, draw: random.Random) -> None:
    await draw.choice(BUTTONS)(history, draw)


async def _race(history: History, draw: random.Random) -> None:
    """Arms one: it goes off when the product makes that call."""
    act = draw.choice(RACES)
    history.races.append(Race(draw.choice(_METHODS), lambda: act(history, draw), act.__name__.strip("_")))


async def _press(history: History, draw: random.Random) -> None:
    """Everybody it takes approves and the product hears of all of it, with something in between."""
    for login in draw.sample(WRITERS, draw.choice([1, 2, 3])):
        await history.review(login, "APPROVE", history.pull.head_sha)
    await _race(history, draw)
    while history.pending and history.alive and draw.random() < 0.95:
        await history.deliver()
        history.check()


async def _deliver(history: History, draw: random.Random) -> None:
    await history.deliver(0 if draw.random() < 0.6 else draw.randrange(100), keep=draw.random() < 0.1)


async def _lose(history: History, draw: random.Random) -> None:
    history.lose(draw.randrange(100))


ACTS: tuple[tuple[Act, int], ...] = (
    (_push, 3),
    (_rewrite, 2),
    (_move_base, 3),
    (_rewind, 2),
    (_review, 5),
    (_approve, 5),
    (_say, 5),
    (_dismiss, 2),
    (_retarget, 3),
    (_grade, 2),
    (_button, 6),
    (_race, 5),
    (_press, 3),
    (_deliver, 22),
    (_lose, 2),
)


async def calm(history: History) -> None:
    """Put right whatever stands in the way, approve, and see it land."""
    history.races.clear()
    history.story.append("-- calm --")
    await history.deliver_all()
    history.check()
    if not history.alive or history.pull.merged:
        return
    for login in WRITERS:
        await history.grade(login, "write")
    if history.issue.state != "open":
        await history.state("rosa", "open")
    await history.found_main()
    await history.retarget("rosa", "main")
    for login in EVERYBODY:
        await history.dismiss("carl", login)
    git = history.stage.git
    base = git.refs["refs/heads/main"]
    texts = {path: git.objects[sha][1].decode() for path, (_, sha) in git.files(base).items()}
    mended = {path: "fine = 1\n" if "bad" in text or "clash" in text else text for path, text in texts.items()}
    mended["feature.py"] = f"feature = {history.stage.moment}\n"
    await history.move("rosa", history.pull.head_ref, history.stage.commit(mended, base), force=True)
    await history.deliver_all()
    for login in ("carl", "robin")[-history.oracle.needed :]:
        await history.review(login, "APPROVE", history.pull.head_sha)
        await history.deliver_all()
        history.check()
    if history.mode is LandingMode.READY and history.alive:
        await history.say("robin", "merge", history.oracle.current(history.pull))
        await history.deliver_all()
        history.check()
    if history.ending is None or history.ending.stage is not Stage.LANDED:
        said = history.ending or (
            history.conductor.examined[-1].decision.against() if history.conductor.examined else ""
        )
        raise Violation(f"approved and unobstructed, but it did not land: {said}\n" + "\n".join(history.story))
    history.counts["calm_landings"] += 1


async def play(seed: int, policies: Policies, mutant: Mutant = Mutant(), *, steps: int = 24) -> Counter[str]:  # noqa: B008
    """One history of this seed; counts of what happened in it. Raises Violation."""
    draw = random.Random(seed)
    mode = draw.choice([LandingMode.READY, LandingMode.MERGE])
    acts, weights = zip(*ACTS, strict=True)
    needed, owners = draw.choice([(1, ""), (1, ""), (2, ""), (1, "* @robin\n"), (2, "* @rosa @robin\n")])
    limits = replace(policies.limits, approvals=needed, code_owners=bool(owners))
    files = {"CODEOWNERS": owners} if owners else {}
    with tempfile.TemporaryDirectory(prefix="history-") as root:
        async with staged(Path(root), mutant, replace(policies, limits=limits), files) as stage:
            history = History(stage, mode)
            history.counts[f"with_{needed}_approvals{'_and_owners' if owners else ''}"] += 1
            history.oracle.needed = needed
            history.oracle.owners = frozenset(re.findall(r"@(\w+)", owners))
            try:
                await history.begin()
                for _ in range(draw.randrange(4, steps)):
                    if not history.alive:
                        break
                    await draw.choices(acts, weights)[0](history, draw)
                    history.counts["steps"] += 1
                    history.check()
                await calm(history)
                ended = history.ending
                history.counts[f"ended_{ended.stage.value}" if ended else "left_open"] += 1
            except Violation as violation:
                raise Violation(f"seed {seed}, {mode.value}: {violation}") from violation
            finally:
                await history.close()
    return history.counts
