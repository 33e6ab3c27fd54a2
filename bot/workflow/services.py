"""The bundle a task works with. `wiring.py` builds it once; nothing here is looked up from anywhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bot.custody.upstream import Upstream
from bot.domain.ids import RepositoryId, TaskId
from bot.domain.money import ZERO, MicroUsd
from bot.policy.engine import Policies
from bot.policy.loops import LoopLimits
from bot.providers.embedding.port import Embedder
from bot.providers.forge.port import Forges, HookLog
from bot.providers.llm.batches import Batches
from bot.providers.llm.port import Effort, LanguageModel, Ledger
from bot.providers.sandbox.port import Sandboxes
from bot.providers.scanner.port import Scanner
from bot.providers.store.port import Approvals, Deliveries, Requests, Summaries, Tasks
from bot.retrieval.service import Meaning
from bot.retrieval.summarise import Pace


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model does what, with effort and thinking sent on every call (D6)."""

    planner: str
    coder: str
    planner_effort: Effort = Effort.HIGH
    coder_effort: Effort = Effort.MEDIUM
    planner_thinking: str = "adaptive"
    coder_thinking: str = "adaptive"
    planner_tokens: int = 8_000
    coder_tokens: int = 6_000


@dataclass(frozen=True, slots=True)
class Services:
    """Collaborators and the operator's choices. `model_for` gives the metered model of one task."""

    forges: Forges
    hook_log: HookLog
    model_for: Callable[[TaskId, MicroUsd], LanguageModel]
    ledger: Ledger
    sandboxes: Sandboxes
    scanner: Scanner
    deliveries: Deliveries
    tasks: Tasks
    approvals: Approvals
    home: Path
    models: ModelChoice
    budget: MicroUsd
    label: str
    template: str
    git_protocols: str
    policies: Policies
    requests: Requests
    git_proxy: str | None = field(default=None, repr=False)
    loops: LoopLimits = field(default_factory=LoopLimits)
    egress: tuple[str, ...] = ()
    setup_egress: tuple[str, ...] = ()
    """host:port pairs that a sandbox may reach always, and only while the repository's setup runs."""
    embedder: Embedder | None = None
    """Makes summaries count in ranking; None without a key."""
    summaries_of: Callable[[RepositoryId], Summaries] | None = None
    """Where summaries of a repository's files are kept."""
    summaries: Batches | None = None
    """Summarises the files of a repository the App comes to, up to `summary_budget`; None when nothing may be spent on that."""
    summary_budget: MicroUsd = ZERO
    summary_pace: Pace = field(default_factory=Pace)
    preload: Callable[[], None] = lambda: None
    """Begins to load what the first model call needs; returns at once."""
    isolation: str = ""
    """A sentence for every approval summary when isolation is weaker than the default; empty otherwise."""

    def upstream(self, url: str, token: str) -> Upstream:
        """Where to fetch a repository from, with a token that may read it."""
        return Upstream(url, token, self.git_protocols, self.git_proxy)

    def meaning(self, repository: RepositoryId) -> Meaning | None:
        """What makes summaries of this repository count in ranking; None without a key."""
        if self.embedder is None or self.summaries_of is None:
            return None
        return Meaning(self.embedder, self.summaries_of(repository))
