"""Where visual proof goes: an orphan branch of the bot in the same repository, when the policy allows it, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tests.histories.history import History, Playing, playing

BRANCH = "refs/heads/agent/artefacts-1-1"
FORBIDS = """@id("no-pictures")
@reason("We do not keep pictures here.")
forbid (principal, action == Pullwright::Action::"StoreArtefacts", resource);
"""


def showing(root: Path, files: Mapping[str, str] = MappingProxyType({})) -> Playing:
    def before(history: History) -> None:
        history.conductor.left = {"shot.png": b"one"}
        history.conductor.not_kept = ("`evil.svg`: no.",)

    return playing(root, files=files, before=before)


async def test_it_is_an_orphan_commit_that_holds_nothing_else_and_is_linked(tmp_path: Path):
    async with showing(tmp_path) as history:
        git = history.stage.git
        commit = git.refs[BRANCH]
        assert git.parents(commit) == []
        assert set(git.files(git.tree_of(commit))) == {"shot.png"}
        body = history.issue.body or ""
        assert f"/corner-shop/bookshop/blob/{commit}/shot.png)" in body
        assert "Not kept: `evil.svg`: no." in body
        assert "shot.png" not in git.files(history.pull.head_sha)


async def test_the_next_round_adds_to_its_own_branch_and_never_forces(tmp_path: Path):
    async with showing(tmp_path) as history:
        git = history.stage.git
        first = git.refs[BRANCH]
        history.conductor.left = {"shot.png": b"two"}
        path = f"{history.here}/issues/{history.issue.number}/comments"
        await history.ask("rosa", "POST", path, {"body": "/agent fix more"})
        await history.deliver_all()
        assert git.parents(git.refs[BRANCH]) == [first]
        assert f"/blob/{git.refs[BRANCH]}/shot.png" in (history.issue.body or "")


async def test_a_repository_that_wants_none_gets_none_and_the_task_goes_on(tmp_path: Path):
    async with showing(tmp_path, {".github/pullwright.cedar": FORBIDS}) as history:
        assert BRANCH not in history.stage.git.refs
        assert "Not kept: We do not keep pictures here." in (history.issue.body or "")
        assert history.alive
