"""`pullwright eval`: one task cut from three commits, solved by one model and not by the other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from bot.commands.evaluate import Request, run
from bot.domain.money import from_dollars
from bot.emulators.anthropic import server as anthropic
from bot.emulators.anthropic.brain import BrainAnswer, BrainRequest
from bot.emulators.anthropic.state import Config
from bot.settings import Settings
from tests.scenarios.brains import FILES, GOOD, TRIPLE, Call, StepBrain, append, finish, plan
from tests.scenarios.test_local_run import git

SOLVES, FAILS = "claude-sonnet-5-5", "claude-opus-5-5"
HIDDEN = "\n    def test_threefold_of_a_word(self):\n        self.assertEqual(calc.triple('ab'), 'ababab')\n"
ALREADY = "\n    def test_add_words(self):\n        self.assertEqual(calc.add('a', 'b'), 'ab')\n"
WRONG: Sequence[Sequence[Call]] = (
    [append("calc.py", "    return a + a\n", TRIPLE.replace("3 * a", "a + 2 * int(a)")), finish("triple is there.")],
)
GATED = FILES[".github/pullwright.toml"] + "plan_gate = true\n"
MESSAGE = "Add calc.triple\n\nThree times its argument.\n\nSigned-off-by: Ann <ann@example.org>"


@dataclass
class TwoModels:
    """The planner and one coder know what to do, the other coder thinks of numbers only. Each looks at what `home` could answer from."""

    home: Path
    objects: set[str] = field(default_factory=set)
    good: StepBrain = field(default_factory=lambda: StepBrain(GOOD, plan("calc.py", "test_calc.py")))
    bad: StepBrain = field(default_factory=lambda: StepBrain(WRONG))

    def answer(self, request: BrainRequest) -> BrainAnswer:
        for store in self.home.glob("trial-*/mirrors/*/objects"):
            listed = git(store.parent, "--git-dir=.", "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
            self.objects |= set(listed.split())
        planning = bool(request.output_config.get("format"))
        return (self.good if planning or request.model == SOLVES else self.bad).answer(request)

    @property
    def heard(self) -> str:
        """Everything that any model was ever shown."""
        return repr((self.good.heard, self.bad.heard))


def committed(clone: Path, files: Mapping[str, str], message: str) -> str:
    for name, text in files.items():
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_text(text)
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", message)
    return git(clone, "rev-parse", "HEAD").strip()


def history(root: Path) -> tuple[Path, str, str]:
    """A root, a commit with code and its test, one whose test passes without it, one without a test; the second and third by id. Only
    the last one has settings, which hold for all, but that nobody is there to approve a plan."""
    clone = root / "shop"
    clone.mkdir()
    git(clone, "init", "-q", "-b", "main")
    committed(clone, {name: FILES[name] for name in ("calc.py", "test_calc.py")}, "Begin with calc")
    tests = FILES["test_calc.py"] + HIDDEN
    task = committed(clone, {"calc.py": FILES["calc.py"] + TRIPLE, "test_calc.py": tests}, MESSAGE)
    proves_nothing = committed(
        clone, {"NOTES": "words\n", "test_calc.py": tests + ALREADY}, "Say that words can be added"
    )
    committed(clone, {"NOTES": "words and lists\n", ".github/pullwright.toml": GATED}, "Mention lists in the notes")
    return clone, task, proves_nothing


async def test_tasks_of_a_history_are_worked_by_two_models_and_judged_by_tests_they_never_saw(tmp_path: Path):
    clone, task, proves_nothing = history(tmp_path)
    brain, keep, offers = TwoModels(tmp_path / "data"), tmp_path / "kept", list[str]()
    async with anthropic.running(Config(brain=brain)) as model:
        settings = Settings(
            home=tmp_path / "data", anthropic_api_key=SecretStr(model.api_key), anthropic_base_url=model.url
        )

        async def evaluated(**more: Any) -> tuple[int, dict[str, Any]]:
            lines = list[str]()

            def agreed(offer: str) -> bool:
                offers.append(offer)
                return True

            asked = Request(clone, lines.append, agreed, keep=keep, as_json=True, **more)
            code = await asyncio.to_thread(run, settings, asked)
            return code, json.loads(lines[-1])

        code, first = await evaluated(budget=from_dollars("0.50"))
        assert code == 1
        assert [(pair["model"], pair["outcome"]) for pair in first["pairs"]] == [(SOLVES, "solved")]
        assert [(one["commit"], one["model"]) for one in first["not_run"]] == [(task, FAILS)]

        code, found = await evaluated()
    assert code == 0
    assert found["pairs"][0] == first["pairs"][0]
    solved, failed = found["pairs"]
    assert failed["outcome"] == "not_solved"
    assert failed["missing"] == ["test_calc.CalcTest.test_threefold_of_a_word"]
    assert failed["broken"] == []
    assert solved["files"] == solved["wanted"] == ["calc.py"]
    assert 0 < solved["cost_usd"] < failed["cost_usd"] <= 0.5
    assert [one["commit"] for one in found["tasks"]] == [task]
    assert found["tasks"][0]["words"] == "Add calc.triple\n\nThree times its argument."
    assert found["invalid"][0]["commit"] == proves_nothing
    assert found["invalid"][0]["reason"] == "its tests pass without it"
    assert found["unfit"] == {"no_test": 1, "root": 1}
    totals = {one["model"]: one for one in found["totals"]}
    assert (totals[SOLVES]["solved"], totals[FAILS]["solved"]) == (1, 0)
    assert totals[FAILS]["usd_per_solved"] is None
    assert offers[0] == "2 pairs of task and model to run, at most $0.5000 each. All of it costs at most $0.5000."
    assert offers[1].startswith("1 pairs")
    assert "return a + a" in brain.heard
    assert "test_threefold" not in brain.heard
    assert "Signed-off-by" not in brain.heard
    known, unknown = (git(clone, "rev-list", "--objects", names).split() for names in (f"{task}^", f"{task}^..HEAD"))
    assert known[0] in brain.objects
    assert brain.objects.isdisjoint(unknown)
    assert git(clone, "status", "--porcelain") == ""
