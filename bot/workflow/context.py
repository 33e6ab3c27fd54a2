"""One task's view of the collaborators: its repository, its mirror, its metered model, its sandboxes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from hashlib import sha256

from bot.custody.mirror import Mirror
from bot.custody.upstream import Upstream
from bot.custody.workbench import BenchSettings, Workbench
from bot.domain.event import Actor
from bot.domain.ids import CommitId
from bot.domain.money import MicroUsd
from bot.domain.repository import SETTINGS_PATH, RepositorySettings
from bot.domain.task import TaskSpec
from bot.providers.forge.port import Forge
from bot.providers.journal.port import Journal
from bot.providers.llm.port import LanguageModel
from bot.stages.publishing.texts import Cost
from bot.workflow.services import Services

SANDBOX_SECONDS = 3600


class TaskContext:
    """Made anew for each segment run; opens things when they are first needed, inside a step."""

    def __init__(self, services: Services, spec: TaskSpec, journal: Journal) -> None:
        self.services = services
        self.spec = spec
        self.journal = journal
        self.mirror = Mirror(services.home / "mirrors", spec.subject.repository.id)
        self._forge: Forge | None = None
        self._opening = asyncio.Lock()

    def nonce(self) -> str:
        """A mark the author of a text could not know beforehand, and the same on every replay."""
        asked = f"{self.spec.id}:{self.spec.requester.id}:{self.services.policies.digest}"
        return sha256(asked.encode()).hexdigest()[:12]

    async def forge(self) -> Forge:
        """The repository on GitHub."""
        async with self._opening:
            if self._forge is None:
                repository = self.spec.subject.repository
                self._forge = await self.services.forges.open(repository.installation_id, repository.id)
            return self._forge

    async def publisher(self) -> Actor:
        """In whose name the change is shown."""
        return await self.services.forges.bot()

    async def pin(self) -> tuple[str, CommitId] | None:
        """Name and tip of the branch to work on, now in the mirror. None when the repository takes no work."""
        forge = await self.forge()
        repository = await forge.repository()
        base = await forge.branch_head(repository.default_branch)
        if repository.archived or base is None:
            return None
        await self.mirror.fetch(await self.upstream(), commits=(base,))
        return repository.default_branch, base

    async def settings_at(self, base: CommitId) -> bytes | None:
        """The repository's settings as they stand in the base; None when it has none."""
        return await self.mirror.file_at(base, SETTINGS_PATH, limit=100_000)

    async def upstream(self) -> Upstream:
        """Where to fetch from, with a token that can only read this repository."""
        forge = await self.forge()
        repository = await forge.repository()
        return self.services.upstream(repository.clone_url, await forge.fetch_token())

    def model(self, allowed: MicroUsd | None = None) -> LanguageModel:
        """The model, metered against this task's budget, or what it may have spent in all by now."""
        return self.services.model_for(self.spec.id, self.spec.budget if allowed is None else allowed)

    def bench(self, base: CommitId, settings: RepositorySettings, purpose: str) -> Workbench:
        """A sandbox of this task for one purpose; an orphan of the same purpose is ended before a new one is made."""
        labels: Mapping[str, str] = {"pullwright-task": self.spec.id, "pullwright-purpose": purpose}
        bench = BenchSettings(
            template=settings.template or self.services.template,
            labels=labels,
            lifetime_seconds=SANDBOX_SECONDS,
            setup=settings.setup,
            setup_files=settings.setup_files,
            owner=self.spec.subject.repository.full_name.lower(),
            setup_egress=self.services.setup_egress,
            egress=self.services.egress,
        )
        return Workbench(self.services.sandboxes, self.mirror, base, bench)

    async def cost(self, allowed: MicroUsd | None = None) -> Cost:
        """What the task has cost by the ledger."""
        totals = await self.services.ledger.totals(self.spec.id)
        usage = totals.usage
        return Cost(
            spent=totals.spent,
            budget=self.spec.budget if allowed is None else allowed,
            calls=totals.calls,
            uncached=usage.input,
            written=usage.write_5m + usage.write_1h,
            read=usage.read,
            output=usage.output,
        )
