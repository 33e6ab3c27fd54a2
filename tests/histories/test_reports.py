"""Faults people reported of systems like ours (`cases/reports.md`), as histories: each test names its case."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.action import Answer, Nothing, StartTask, TellTask
from bot.domain.decision import Decision
from bot.domain.ids import CommentId, DeliveryId, StepId, UserId
from bot.domain.plan import Plan, PlannedFile, Step
from bot.domain.pull import Permission
from bot.domain.repository import LandingMode
from bot.domain.task import Stage
from bot.emulators.github.records import Repository
from bot.prompting import publishable, publishable_line
from bot.providers.store.port import Delivery
from bot.stages.approving import texts as gate_texts
from bot.stages.approving.gate import decide
from bot.stages.intake import texts as intake_texts
from bot.stages.intake.commands import find_command
from bot.stages.intake.decide import IntakeFacts, IntakeSettings
from bot.stages.intake.decide import decide as decide_intake
from bot.stages.intake.run import decide_delivery
from bot.stages.landing.texts import squash_message
from bot.workflow import judging, segments, texts
from bot.workflow.journal import TaskEnded
from tests.histories.history import History, Race, playing
from tests.histories.mutants import base_rewound_before_it_is_heard
from tests.histories.stage import HistoryConductor, HistoryContext, Mutant, staged
from tests.histories.test_ground import office
from tests.unit.stages.approving.builders import approval, snapshot
from tests.unit.stages.intake.builders import PULL, commented

WRITER = IntakeFacts(UserId(1), 2, permission=Permission.WRITE)


async def heard(history: History) -> list[object]:
    """What the product would do about each delivery that waits."""
    found: list[object] = []
    for one in history.pending:
        stored = Delivery(DeliveryId(one.guid), one.event, one.body, "")
        books = history.stage.books
        found.append(
            await decide_delivery(stored, forges=history.stage.forges, tasks=books, settings=IntakeSettings())  # type: ignore[arg-type]
        )
    return found


async def test_e1_the_products_own_words_command_nothing(tmp_path: Path):
    async with playing(tmp_path) as history:
        forge = await history.stage.services.forges.open(
            history.stage.spec.subject.repository.installation_id, history.stage.spec.subject.repository.id
        )
        await forge.create_comment(1, "/agent run everything again")
        await forge.create_comment(history.issue.number, "/agent merge 000000000000")
        history.collect()
        assert history.pending
        assert not [act for act in await heard(history) if isinstance(act, StartTask | TellTask | Answer)]


async def test_e2_fifty_comments_of_a_bot_start_nothing(tmp_path: Path):
    async with playing(tmp_path) as history:
        bot = history.stage.world.user("rudi")
        bot.type, history.stage.repository.roles["rudi"] = "Bot", "write"
        for number in range(50):
            await history.ask("rudi", "POST", f"{history.here}/issues/1/comments", {"body": f"/agent run {number}"})
        assert len(history.pending) == 50
        assert not [act for act in await heard(history) if isinstance(act, StartTask | TellTask | Answer)]


@pytest.mark.parametrize(
    "body",
    [
        "> /agent merge 000000000000\n\nI would not.",
        "```\n/agent merge 000000000000\n```",
        "    /agent stop",
        "- /agent stop",
    ],
)
async def test_e5_a_quoted_command_runs_nothing(body: str, tmp_path: Path):
    async with playing(tmp_path) as history:
        await history.ask("rosa", "POST", f"{history.here}/issues/{history.issue.number}/comments", {"body": body})
        assert not [act for act in await heard(history) if isinstance(act, TellTask | Answer)]


def test_e4_none_of_our_own_texts_is_a_command():
    said = [
        intake_texts.HELP,
        intake_texts.no_task(),
        gate_texts.comment(snapshot_decision(), digest=approval().digest),
        gate_texts.receipt(approval()),
        texts.plan_waits("f" * 64, "A plan."),
        texts.overtaken(),
        *(
            ending.reason + "\n\n" + ending.next_step
            for ending in (texts.stale(), texts.unexpected(), texts.plan_stale())
        ),
    ]
    assert [text for text in said if find_command(text) is not None] == []


def snapshot_decision() -> Decision:

    return decide(None, snapshot(reviews=()))


def test_e7_the_squash_commit_says_nothing_of_the_editable_body():
    assert squash_message("A title", 7, "d" * 64, "ada").splitlines()[0] == "A title (#7)"


async def test_e10_a_comment_on_an_item_without_labels_is_understood(tmp_path: Path):
    async with playing(tmp_path) as history:
        await history.ask("rosa", "POST", f"{history.here}/issues/1/comments", {"body": "/agent status"})
        assert json.loads(history.pending[-1].body)["issue"]["labels"] == []
        assert isinstance((await heard(history))[-1], TellTask)


async def test_e13_a_label_on_a_pull_request_has_a_defined_answer(tmp_path: Path):
    async with playing(tmp_path) as history:
        history.stage.books.ending = texts.stale()
        await history.ask("rosa", "POST", f"{history.here}/issues/{history.issue.number}/labels", {"labels": ["agent"]})
        answers = [act.topic for act in await heard(history) if isinstance(act, Answer)]
        assert answers == ["label_on_pull"]


async def test_e14_one_request_for_work_under_two_ids_is_worked_in_once(tmp_path: Path):
    async with playing(tmp_path) as history:
        await history.review("robin", "REQUEST_CHANGES")
        await history.deliver(keep=True)
        await history.deliver_all()
        assert history.conductor.rounds == 2
        assert len(history.pull.heads) == 2


async def test_a1_approve_force_push_merge_is_refused_with_the_reason_on_the_pull_request(tmp_path: Path):
    async with playing(tmp_path) as history:
        await history.review("robin", "APPROVE", history.pull.head_sha)
        digest = history.oracle.current(history.pull)
        await history.deliver_all()
        base = history.stage.git.refs["refs/heads/main"]
        await history.push("carl", {"feature.py": "evil = 1\n"}, parent=base, force=True)
        await history.deliver_all()
        await history.say("rosa", "merge", digest)
        await history.deliver_all()
        assert not history.pull.merged
        assert history.pull.draft
        assert any("Gate: waiting" in one.body or "Gate: closed" in one.body for one in history.issue.comments)


async def test_a2_a_push_nobody_heard_of_is_found_when_it_counts(tmp_path: Path):
    async with playing(tmp_path, LandingMode.MERGE) as history:
        old = history.pull.head_sha
        await history.push("carl", {"feature.py": "evil = 1\n"})
        history.pending.clear()
        await history.review("robin", "APPROVE", old)
        await history.deliver_all()
        assert not history.pull.merged


async def test_a4_a_merge_that_is_answered_with_500_is_not_made_twice(tmp_path: Path):
    async with playing(tmp_path, LandingMode.MERGE) as history:
        history.stage.world.faults.add(
            {"kind": "status", "method": "PUT", "path": "/merge$", "when": "after", "status": 500}
        )
        await history.review("robin", "APPROVE", history.pull.head_sha)
        await history.deliver_all()
        merges = [one for one in history.stage.world.journal.entries(0) if one["path"].endswith("/merge")]
        assert len(merges) == 1
        assert history.ending is not None
        assert history.ending.stage is Stage.LANDED


async def test_a6_a_conflict_is_said_and_the_task_lives_on(tmp_path: Path):
    async with playing(tmp_path) as history:
        await history.move_base("rosa", {"feature.py": "other = 1\n"})
        await history.review("robin", "APPROVE", history.pull.head_sha)
        await history.deliver_all()
        assert history.alive
        assert not history.pull.merged
        assert any("conflicts" in one.body for one in history.issue.comments)


async def test_an_archived_or_renamed_repository_ends_or_goes_on_and_never_crashes(tmp_path: Path):
    async with playing(tmp_path / "renamed", LandingMode.MERGE) as history:
        await history.ask("carl", "PATCH", history.here, {"name": "renamed"})
        await history.review("robin", "APPROVE", history.pull.head_sha)
        await history.deliver_all()
        assert history.pull.merged
    async with playing(tmp_path / "archived") as history:
        await history.review("robin", "APPROVE", history.pull.head_sha)
        history.stage.repository.archived = True
        await history.deliver_all()
        history.stage.repository.archived = False
        assert not history.pull.merged


async def test_a_base_rewound_between_the_review_and_its_webhook_is_noticed(tmp_path: Path):
    async with playing(tmp_path, LandingMode.MERGE) as history:
        await base_rewound_before_it_is_heard(history)
        history.check()
        assert not history.pull.merged
        assert any("was shown. Look at it and approve again." in one.body for one in history.issue.comments)
        await history.review("robin", "APPROVE", history.pull.head_sha)
        await history.deliver_all()
        history.check()
        assert history.pull.merged


async def test_a_base_rewound_between_the_last_reading_and_the_merge_is_an_alarm_or_nothing(tmp_path: Path):
    async with playing(tmp_path, LandingMode.MERGE) as history:
        await history.move_base("carl", {"stock.py": "stock = 5\n"})
        await history.update_branch("carl")
        await history.deliver_all()
        git = history.stage.git
        below = git.parents(git.refs["refs/heads/main"])[0]
        history.races.append(Race("merge", lambda: history.move("carl", "main", below, force=True)))
        await history.review("robin", "APPROVE", history.pull.head_sha)
        await history.deliver_all()
        history.check()


def test_e8_one_parser_reads_commands_and_what_is_none_says_why():
    product = Path(intake_texts.__file__).parents[2]
    readers = [path.name for path in product.rglob("*.py") if "find_command(" in path.read_text("utf-8")]
    assert sorted(set(readers)) == ["commands.py", "decide.py"]
    told = decide_intake(commented("/exp fix it"), WRITER)
    assert told == Nothing("no command")


async def test_e11_the_configured_label_starts_once_and_another_one_says_why(tmp_path: Path):
    async with office(tmp_path) as made:
        await made.ask("rosa", "PATCH", f"{made.here}/issues/1", {"state": "closed"})
        await made.deliver()
        made.services = replace(made.services, label="robot")
        await made.ask("rosa", "POST", f"{made.here}/issues", {"title": "More"})
        await made.ask("rosa", "POST", f"{made.here}/issues/2/labels", {"labels": ["agent"]})
        assert any("the label `agent` is not `robot`" in note for note in await made.deliver())
        await made.ask("rosa", "POST", f"{made.here}/issues/2/labels", {"labels": ["robot"]})
        await made.deliver()
        made.seen = 0
        await made.deliver()
        assert len(made.started) == 2


async def test_r1_a_branch_name_is_an_argument_whatever_it_holds(tmp_path: Path):
    async with playing(tmp_path, LandingMode.MERGE) as history:
        name = "feat(x)/#12-a+b"
        tip = history.stage.git.refs["refs/heads/main"]
        await history.ask("carl", "POST", f"{history.here}/git/refs", {"ref": f"refs/heads/{name}", "sha": tip})
        await history.retarget("rosa", name)
        await history.deliver_all()
        await history.review("robin", "APPROVE", history.pull.head_sha)
        await history.deliver_all()
        history.check()
        assert history.pull.merged
        assert history.pull.base_ref == name


async def test_r8_the_pull_request_opens_from_the_pinned_base_although_others_merged(tmp_path: Path):
    async with staged(tmp_path, Mutant()) as stage:
        history = History(stage, LandingMode.MERGE)
        pinned = stage.git.refs["refs/heads/main"]

        async def others_merge() -> None:
            texts_ = {"README.md": "# shop\n", "shop.py": "price = 1\n", "stock.py": "stock = 7\n"}
            tip = stage.commit(texts_, pinned)
            await history.ask("carl", "PATCH", f"{history.here}/git/refs/heads/main", {"sha": tip, "force": False})

        history.races.append(Race("create_branch", others_merge))
        await history.begin()
        await history.deliver_all()
        assert stage.git.parents(history.pull.head_sha) == [pinned]
        assert stage.git.refs["refs/heads/main"] != pinned
        await history.review("robin", "APPROVE", history.pull.head_sha)
        await history.deliver_all()
        history.check()
        assert history.pull.merged
        await history.close()


@pytest.mark.parametrize("path", ["/git/refs$", "/git/commits$", "/pulls$"])
async def test_r10_a_push_that_fails_is_said_and_never_reported_as_done(path: str, tmp_path: Path):
    async with staged(tmp_path, Mutant()) as stage:
        stage.world.faults.add({"kind": "status", "method": "POST", "path": path, "status": 403, "message": "No."})
        history = History(stage, LandingMode.READY)
        await history.begin()
        assert history.ending is not None
        assert history.ending.stage is Stage.NEEDS_HUMAN
        assert "GitHub refused with 403: No." in history.ending.reason
        assert stage.books.number is None
        await history.close()


async def test_r11_a_plan_that_touches_workflows_ends_before_anything_is_coded(tmp_path: Path):
    async with staged(tmp_path, Mutant()) as stage:
        context = HistoryContext(stage)
        prepared = await HistoryConductor(stage, LandingMode.READY).prepare()

        def planned(path: str) -> Plan:
            return Plan("Do.", (Step(StepId("s"), "Do", "Do.", (PlannedFile(path, new=True),), (), ()),))

        denied = await judging.may_plan(context, prepared, planned(".github/workflows/ci.yml"))
        assert [reason.rule for reason in denied.against()] == ["no-workflow-drafts"]
        assert "  - workflows: `.github/workflows/ci.yml`: " in texts.policy_denied(denied).reason
        assert (await judging.may_plan(context, prepared, planned("shop.py"))).allowed


async def test_r12_without_drafts_a_label_and_the_check_say_that_it_is_not_ready(tmp_path: Path):
    async with staged(tmp_path, Mutant()) as stage:
        stage.repository.drafts_supported = False
        history = History(stage, LandingMode.READY)
        await history.begin()
        await history.deliver_all()
        assert not history.pull.draft
        assert [label.name for label in history.issue.labels] == ["not ready"]
        await history.review("robin", "APPROVE", history.pull.head_sha)
        await history.deliver_all()
        assert history.issue.labels == []
        await history.push("carl", {"feature.py": "feature = 9\n"})
        await history.deliver_all()
        assert history.alive
        assert [label.name for label in history.issue.labels] == ["not ready"]
        check = [one for one in stage.repository.checks if one.head_sha == history.pull.head_sha]
        assert {one.conclusion for one in check} <= {"failure", "action_required"}
        await history.close()


async def test_d1_d3_a_rename_and_a_missing_last_newline_land_as_approved(tmp_path: Path):
    async with playing(tmp_path, LandingMode.MERGE) as history:
        git = history.stage.git
        files = {path: git.objects[sha][1].decode() for path, (_, sha) in git.files(history.pull.head_sha).items()}
        files["till.py"] = files.pop("shop.py")
        files["feature.py"] = "feature = 1"
        await history.move("rosa", history.pull.head_ref, history.stage.commit(files, history.pull.head_sha))
        await history.deliver_all()
        await history.review("robin", "APPROVE", history.pull.head_sha)
        await history.deliver_all()
        history.check()
        assert history.pull.merged
        landed = git.files(git.refs["refs/heads/main"])
        assert git.objects[landed["till.py"][1]][1] == b"price = 1\n"
        assert git.objects[landed["feature.py"][1]][1] == b"feature = 1"
        assert "shop.py" not in landed


async def test_d10_a_change_of_more_files_than_github_shows_is_digested_from_git_and_has_to_be_named(tmp_path: Path):
    async with playing(tmp_path, LandingMode.MERGE) as history:
        await history.push("rosa", {f"data/{number}.txt": f"{number}\n" for number in range(400)})
        await history.deliver_all()
        await history.review("robin", "APPROVE", history.pull.head_sha)
        await history.deliver_all()
        assert not history.pull.merged
        assert any("allow:large" in comment.body for comment in history.issue.comments)
        assert any(" files change, more than 100." in comment.body for comment in history.issue.comments)
        await history.say("robin", "approve", f"{history.oracle.current(history.pull)} allow:large")
        await history.deliver_all()
        history.check()
        asked = [one["path"] for one in history.stage.world.journal.entries(0)]
        assert not [path for path in asked if path.endswith("/files") or "/compare/" in path]
        assert history.pull.merged


def test_m9_a_secret_in_what_is_told_is_masked_where_people_read_it():
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    token = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
    said = f"assert '{key}' == '{token}'"
    shown = [publishable(said), publishable(f"```\n{said}\n```"), publishable_line(said)]
    assert not [text for text in shown if key in text or token in text]


async def test_r3_a_pull_request_from_a_fork_is_left_alone_with_a_reason(tmp_path: Path):
    async with playing(tmp_path) as history:
        history.pull.head_repository = replace_repository(history)
        await history.review("robin", "APPROVE", history.pull.head_sha)
        await history.deliver_all()
        assert history.pull.draft
        assert any("The branch is in another repository." in one.body for one in history.issue.comments)
    told = decide_intake(commented("/agent fix it", subject=PULL), WRITER)
    assert told == Answer(PULL, "pull_without_task", comment_id=CommentId(31))


def replace_repository(history: History) -> Repository:
    """The pull request's branch, in somebody's fork."""
    fork = replace(history.stage.repository, id=history.stage.repository.id + 1, name="fork")
    history.stage.world.registry.repositories[fork.id] = fork
    return fork


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("See https://hub.example/corner-shop/bookshop/blob/dev/shop.py#L3 please.", "points at `dev`"),
        ("https://hub.example/corner-shop/bookshop/tree/main/src", ""),
        (f"https://hub.example/corner-shop/bookshop/blob/{'a' * 40}/shop.py", ""),
        ("https://hub.example/elsewhere/bookshop/blob/dev/shop.py", ""),
    ],
)
async def test_r5_an_issue_that_points_at_another_branch_is_told_where_the_work_starts(
    text: str, said: str, tmp_path: Path
):
    async with staged(tmp_path, Mutant(), files={".github/pullwright.toml": 'test = "true"\n'}) as stage:
        stage.spec = replace(stage.spec, request=text)
        prepared = await segments.pin(HistoryContext(stage))
        assert said in prepared.notice
        assert bool(prepared.notice) == bool(said)


async def test_r7_the_base_is_the_default_branch_that_github_names(tmp_path: Path):
    async with staged(tmp_path, Mutant(), files={".github/pullwright.toml": 'test = "true"\n'}) as stage:
        other = stage.commit({"README.md": "# other\n"})
        stage.git.refs["refs/heads/trunk"] = other
        stage.repository.default_branch = "trunk"
        prepared = await segments.pin(HistoryContext(stage))
        assert (prepared.base_ref, prepared.base) == ("trunk", other)


async def test_d9_an_instruction_file_that_is_a_link_is_not_followed_out_of_the_tree(tmp_path: Path):
    async with staged(tmp_path, Mutant(), files={"CONTRIBUTING.md": "Be kind.\n"}) as stage:
        git = stage.git
        files = git.files(git.refs["refs/heads/main"])
        files = {**files, "AGENTS.md": ("120000", git.write("blob", b"/etc/passwd"))}
        who = "Somebody <somebody@users.noreply.github.com> 1800000000 +0000"
        commit = f"tree {git.tree(files)}\nauthor {who}\ncommitter {who}\n\nA link\n"
        git.refs["refs/heads/main"] = git.write("commit", commit.encode())
        prepared = await segments.pin(HistoryContext(stage))
        assert (prepared.conventions_path, prepared.conventions) == ("CONTRIBUTING.md", "Be kind.\n")


async def test_an_empty_repository_ends_with_a_sentence(tmp_path: Path):
    async with staged(tmp_path, Mutant()) as stage:
        stage.git.refs.clear()
        with pytest.raises(TaskEnded) as ended:
            await segments.pin(HistoryContext(stage))
        assert ended.value.ending.stage is Stage.CANCELLED
        assert "archived or empty" in ended.value.ending.reason


async def test_a_base_that_is_gone_before_publishing_ends_with_a_sentence(tmp_path: Path):
    async with staged(tmp_path, Mutant()) as stage:
        history = History(stage, LandingMode.READY)

        async def gone() -> None:
            stage.repository.default_branch = "decoy"
            await history.ask("carl", "DELETE", f"{history.here}/git/refs/heads/main")

        history.races.append(Race("branch_head", gone))
        await history.begin()
        assert history.ending is not None
        assert history.ending.stage is Stage.CANCELLED
        assert "The base branch `main` does not exist any more" in history.ending.reason
        assert stage.books.number is None
        await history.close()
