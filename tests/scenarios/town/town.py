"""One running product for many stories: each takes a repository of its own, so that they do not start a process each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bot.emulators.anthropic.brain import Brain, BrainAnswer, BrainRequest
from tests.scenarios.brains import FILES, StepBrain
from tests.world import World

PLAIN = tuple(f"corner-shop/story-{number:02}" for number in range(40))
MERGING = "corner-shop/merging"
UNTESTED = "corner-shop/untested"
GATED = "corner-shop/gated"
SETTINGS = ".github/pullwright.toml"

REPOSITORIES = {
    **dict.fromkeys(PLAIN, FILES),
    MERGING: {**FILES, SETTINGS: FILES[SETTINGS] + 'landing = "merge"\n'},
    GATED: {**FILES, SETTINGS: FILES[SETTINGS] + "plan_gate = true\n"},
    UNTESTED: {"notes.txt": "hello\n"},
}


@dataclass
class RoutingBrain:
    """A brain for each repository, told apart by the name that every brief carries."""

    of: dict[str, Brain] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def answer(self, request: BrainRequest) -> BrainAnswer:
        said = f"{request.system}\n{request.first}"
        name = next(name for name in REPOSITORIES if f"Repository {name}," in said)
        self.asked.append(name)
        return self.of.setdefault(name, StepBrain()).answer(request)

    def heard(self, name: str) -> int:
        """How often a model was asked about this repository."""
        return self.asked.count(name)


@dataclass
class Town:
    """The product, its stand-ins, and repositories nobody has used yet."""

    world: World
    brain: RoutingBrain
    free: Iterator[str] = field(default_factory=lambda: iter(PLAIN))

    def at(self, name: str) -> World:
        return self.world.at(name)

    def next(self) -> World:
        return self.world.at(next(self.free))
