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
    await history.move_base(draw.choice(WRITERS), _files(draw), draw.choice([None, None, "main", "decoy"]))


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


async def _button(history: History, draw: random.Random) -> None:
    who = draw.choice(EVERYBODY)
    match draw.randrange(7):
        case 0:
            await history.state(who, "closed")
            await history.state(who, "open")
        case 1:
            await history.flip(who, draft=history.pull.draft is False)
        case 2:
            await history.update_branch(who)
        case 3:
            await history.ask_again(who, draw.choice(WRITERS))
        case 4:
            await history.rebase(who)
        case 5:
            name = f"bookshop-{draw.randrange(100)}"
            await history.ask("carl", "PATCH", f"/repos/{history.stage.repository.full_name}", {"name": name})
        case _:
            await history.merge(who)


RACES: tuple[Act, ...] = (_push, _rewrite, _retarget, _move_base, _rewind, _dismiss, _grade, _review)


async def _race(history: History, draw: random.Random) -> None:
    """Arms one: it goes off when the product makes that call."""
    act = draw.choice(RACES)
    history.races.append(Race(draw.choice(_METHODS), lambda: act(history, draw)))


async def _deliver(history: History, draw: random.Random) -> None:
    await history.deliver(0 if draw.random() < 0.6 else draw.randrange(100), keep=draw.random() < 0.1)


async def _lose(history: History, draw: random.Random) -> None:
    history.lose(draw.randrange(100))


ACTS: tuple[tuple[Act, int], ...] = (
    (_push, 3),
    (_rewrite, 2),
    (_move_base, 3),
    (_rewind, 2),
    (_merge_other, 1),
    (_review, 5),
    (_approve, 5),
    (_say, 5),
    (_dismiss, 2),
    (_retarget, 3),
    (_grade, 2),
    (_button, 3),
    (_race, 5),
    (_deliver, 22),
    (_lose, 2),
)


async def calm(history: History) -> None:
    """Put right whatever stands in the way, approve, and see it land."""
    history.races.clear()
    history.story.append("-- calm --")
    await history.deliver_all()
    history.check()
    if not history.alive or history.issue.state != "open":
        return
    for login in WRITERS:
        await history.grade(login, "write")
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
