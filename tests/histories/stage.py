"""Where a history plays: the stand-in of GitHub with git in memory, the product's real review loop on it, one task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

import httpx

from bot.custody.digest import change_digest
from bot.custody.upstream import Upstream
from bot.domain.change import Change, FileMode, TreeEntry
from bot.domain.errors import CustodyError, Transient, UserError
from bot.domain.event import Actor, Subject
from bot.domain.ids import BlobId, CommitId, InstallationId, RepositoryId, StepId, TaskId, TreeId, UserId
from bot.domain.money import ZERO, MicroUsd
from bot.domain.plan import Plan, PlannedFile, Step
from bot.domain.pull import Approval
from bot.domain.repository import LandingMode, RepositoryRef, RepositorySettings
from bot.domain.spending import LedgerTotals, Tally
from bot.domain.task import Ending, Stage, TaskSpec
from bot.domain.verdict import Failure, FailureKind, TestReport, Verdict
from bot.emulators.github.birth import create_world, key_pair
from bot.emulators.github.config import Config, RepositorySeed, Seed, UserSeed
from bot.emulators.github.handlers import HANDLERS
from bot.emulators.github.records import Pull
from bot.emulators.github.service import Service
from bot.emulators.github.webhooks.courier import HOLD
from bot.emulators.github.world import World
from bot.policy.engine import Policies
from bot.providers.forge.githubkit import AppCredentials, GithubForges
from bot.providers.forge.port import Forge, ForgeGone, ForgeRefused, Forges
from bot.providers.store.port import TaskRecord
from bot.settings import load_policies
from bot.stages.approving import gate
from bot.workflow import records, review, showing
from bot.workflow.building import Progress
from bot.workflow.context import TaskContext
from bot.workflow.journal import TaskEnded, ending_of
from bot.workflow.services import ModelChoice, Services
from tests.histories.memory_git import MemoryBare, MemoryGit, MemoryMirror

T = TypeVar("T")

REPOSITORY = "corner-shop/bookshop"
BASE = "http://stand-in"
PEOPLE = {"rosa": "write", "robin": "write", "carl": "admin", "rudi": "read"}
ROOT_FILES = {"README.md": "# shop\n", "shop.py": "price = 1\n", "stock.py": "stock = 1\n"}
RUNS = TestReport("pytest", 0, 1.0, ())
POLICIES = Path(__file__).parents[2] / "policies"
_TRIES = 4


class RememberedPolicies(Policies):
    """Rules that answer a question once: the decision is a function of both, and Cedar reads its texts anew for each."""

    decide = lru_cache(maxsize=20_000)(Policies.decide)


@cache
def shipped() -> Policies:
    """The operator's rules as they are delivered, read once."""
    read = load_policies(POLICIES)
    return RememberedPolicies(**{one.name: getattr(read, one.name) for one in fields(read)})


@dataclass(frozen=True, slots=True)
class Mutant:
    """How a gate can be broken; the one without any change is the product as it is."""

    name: str = "none"
    rule: gate.Rule = gate.decide
    forge: Callable[[Forge], Forge] = lambda forge: forge
    envelope: Callable[[records.Envelope, Pull], records.Envelope] = lambda envelope, _: envelope
    landed: Callable[[records.Landed], records.Landed] = lambda landed: landed
    blind: bool = False
    """Takes whatever stands there for what the reviewer was shown."""


class Journal:
    """Carries acts out at once; faults end the task as the durable journal ends it."""

    async def step(self, _name: str, act: Callable[[], Awaitable[T]], _kind: type[T]) -> T:
        for _ in range(_TRIES):
            try:
                return await act()
            except Transient:
                continue
            except (UserError, CustodyError, ForgeGone, ForgeRefused) as fault:
                raise TaskEnded(ending_of(fault)) from fault
        raise TaskEnded(ending_of(Transient("it does not answer")))


@dataclass
class Books:
    """The store's part: the one task, its pull request, its approvals."""

    spec: TaskSpec
    number: int | None = None
    ending: Ending | None = None
    approvals: list[Approval] = field(default_factory=list)
    asked: dict[str, UserId] = field(default_factory=dict)
    spent: MicroUsd = ZERO

    async def published(self, _task: TaskId, number: int, _head: str) -> None:
        self.number = number

    async def record(self, _task: TaskId, approval: Approval) -> None:
        self.approvals.append(approval)

    async def note(self, key: str, *, user: UserId, repository: RepositoryId, at: int) -> None:
        self.asked[key] = user

    async def tally(self, user: UserId, repository: RepositoryId, *, at: int, but: str = "") -> Tally:
        return Tally(by_user_hour=sum(who == user and key != but for key, who in self.asked.items()))

    async def totals(self, _task: TaskId) -> LedgerTotals:
        return LedgerTotals(self.spent)

    async def live(self, _repository: RepositoryId, number: int) -> TaskRecord | None:
        mine = self.ending is None and number in {self.spec.subject.number, self.number}
        return TaskRecord(self.spec, Stage.IN_REVIEW, "", self.number, None, None) if mine else None

    async def living(self) -> tuple[TaskRecord, ...]:
        found = await self.live(self.spec.subject.repository.id, self.spec.subject.number)
        return () if found is None else (found,)

    async def latest(self, repository: RepositoryId, number: int) -> TaskRecord | None:
        return await self.live(repository, number)

    async def triggered(self, _repository: RepositoryId, _trigger: str) -> bool:
        return False


Watch = Callable[[str, tuple[Any, ...], Any], Awaitable[None]]
"""Called before a forge's method (result None) and, for acts, after it."""


class WatchedForge:
    """The real forge, with a moment before each call in which the world may move."""

    def __init__(self, forge: Forge, before: Watch, after: Watch) -> None:
        self._forge, self._before, self._after = forge, before, after

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._forge, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            await self._before(name, args, None)
            result = await method(*args, **kwargs)
            await self._after(name, args, result)
            return result

        return call


class WatchedForges:
    def __init__(self, forges: GithubForges, stage: HistoryStage) -> None:
        self._forges, self._stage = forges, stage
        self.bot, self.app_id = forges.bot, forges.app_id

    async def open(self, installation: InstallationId, repository: RepositoryId) -> Forge:
        forge = self._stage.mutant.forge(await self._forges.open(installation, repository))
        return cast("Forge", WatchedForge(forge, self._stage.before, self._stage.after))


class HistoryContext(TaskContext):
    """A task's view, with the mirror in memory."""

    def __init__(self, stage: HistoryStage) -> None:
        super().__init__(stage.services, stage.spec, Journal())
        self.mirror = stage.mirror

    async def upstream(self) -> Upstream:
        await (await self.forge()).repository()
        return Upstream("memory:")


async def _nothing(_name: str, _args: tuple[Any, ...], _result: Any) -> None:
    return None


class HistoryStage:
    """Everything of one history. Build it with `staged`."""

    def __init__(self, world: World, git: MemoryGit, service: Service, mutant: Mutant) -> None:
        self.world, self.git, self.mutant = world, git, mutant
        self.service = service
        self.people = httpx.AsyncClient(transport=httpx.ASGITransport(service), base_url=BASE)
        self.moment = 1_800_000_000
        self.repository = next(iter(world.registry.repositories.values()))
        self.installation = next(iter(world.registry.installations.values()))
        self.before: Watch = _nothing
        self.after: Watch = _nothing
        self.teams: dict[str, tuple[str, ...]] = {}
        self.mirror = MemoryMirror(world.root / "mirrors", RepositoryId(self.repository.id), git)

    def commit(self, files: dict[str, str], *parents: str) -> str:
        self.moment += 1
        return self.git.commit(files, parents, f"Change {self.moment}", self.moment)

    async def begin(self, policies: Policies, issue: int) -> None:
        """Join the product to the world; the task begins when `play` is awaited."""
        credentials = AppCredentials.from_pem(str(self.world.app.id), key_pair().private_pem)
        self.forges = GithubForges(credentials, base_url=BASE, pool=httpx.ASGITransport(self.service))
        reference = RepositoryRef(
            RepositoryId(self.repository.id), self.repository.full_name, InstallationId(self.installation.id)
        )
        rosa = self.world.user("rosa")
        self.spec = TaskSpec(
            TaskId(f"task:{self.repository.id}:{issue}:1"),
            Subject(reference, issue, is_pull=False),
            Actor(UserId(rosa.id), rosa.login, is_bot=False),
            "A shop that sells",
            "Please.",
            MicroUsd(500_000),
        )
        self.books = Books(self.spec)
        unused = cast("Any", None)
        self.services = Services(
            forges=cast("Forges", WatchedForges(self.forges, self)),
            hook_log=unused,
            model_for=unused,
            ledger=cast("Any", self.books),
            sandboxes=unused,
            scanner=unused,
            deliveries=unused,
            tasks=cast("Any", self.books),
            approvals=cast("Any", self.books),
            home=self.world.root,
            models=ModelChoice("planner", "coder"),
            budget=MicroUsd(500_000),
            label="agent",
            template="base",
            git_protocols="http",
            policies=policies,
            requests=self.books,
        )

    def passes(self, tree: str) -> bool:
        """The simulated tests: no file says `bad`, and two files that clash do not meet."""
        texts = [self.git.objects[sha][1] for _, sha in self.git.files(tree).values()]
        clash = sum(b"clash" in text for text in texts)
        return not any(b"bad" in text for text in texts) and clash < 2


class HistoryConductor:
    """The review loop's hands: the product's own segments, called directly."""

    def __init__(self, stage: HistoryStage, mode: LandingMode) -> None:
        self._stage, self._mode = stage, mode
        self.inbox: asyncio.Queue[records.Envelope | None] = asyncio.Queue()
        self.idle = asyncio.Event()
        self.rounds = 0
        self.goals: list[str] = []
        self.allowed: list[MicroUsd | None] = []
        self.notes: list[str] = []
        self.left: dict[str, bytes] = {}
        self.not_kept: tuple[str, ...] = ()
        """What the checks leave to be seen, and what of it is not kept."""
        self.landed: list[records.Landed] = []
        self.examined: list[records.Examined] = []

    def _context(self) -> HistoryContext:
        return HistoryContext(self._stage)

    async def prepare(self) -> records.Prepared:
        base = CommitId(self._stage.git.refs["refs/heads/main"])
        tree = await self._stage.mirror.tree_of(base)
        settings = RepositorySettings(landing=self._mode)
        rounds = self._stage.services.loops.rounds_per_pull
        return records.Prepared("main", base, tree, settings, RUNS, RUNS, rounds=rounds)

    async def plan(self, _prepared: records.Prepared) -> Plan:
        return Plan("Sell.", (Step(StepId("s1"), "Sell", "Sell.", (PlannedFile("feature.py", new=True),), (), ()),))

    async def code(self, order: records.CodeOrder) -> records.Coded:
        self.rounds += 1
        self.goals.append(order.step.goal)
        self.allowed.append(order.allowed)
        files = dict(self._stage.git.files(order.start))
        blob = self._stage.git.write("blob", f"feature = {self.rounds}\n".encode())
        files["feature.py"] = ("100644", blob)
        return records.Coded(TreeId(self._stage.git.tree(files)), "", 1, 1)

    async def verify(self, _key: str, order: records.VerifyOrder) -> records.Verified:
        mirror = self._stage.mirror
        base = await mirror.tree_of(order.prepared.base)
        change = Change(order.prepared.base, base, order.tree, await mirror.diff(base, order.tree))
        failed = () if self._stage.passes(order.tree) else (Failure(FailureKind.BROKE_TEST, "test_shop", "no", "no"),)
        names = sorted(self.left)
        blobs = [BlobId(self._stage.git.write("blob", self.left[name])) for name in names]
        left = tuple(TreeEntry(name, FileMode.REGULAR, blob) for name, blob in zip(names, blobs, strict=True))
        return records.Verified(change, Verdict(order.tree, RUNS, RUNS, (), failed), left, self.not_kept)

    async def publish(self, _key: str, order: records.PublishOrder) -> records.Published:
        return await review.publish(self._context(), order)

    async def examine(self, _key: str, order: records.ExamineOrder) -> records.Examined:
        pull = self._stage.repository.issues[order.state.published.number].pull
        assert pull is not None
        envelope = self._stage.mutant.envelope(order.envelope, pull)
        order = replace(order, envelope=envelope)
        if self._stage.mutant.blind:
            tip = CommitId(self._stage.git.refs[f"refs/heads/{pull.base_ref}"])
            change = await change_digest(self._stage.mirror, pull.base_ref, tip, CommitId(pull.head_sha))
            order = replace(order, state=order.state.showing(change.value))
        found = await review.examine(self._context(), order, self._stage.mutant.rule)
        self.examined.append(found)
        return found

    async def adopt(self, key: str, order: records.AdoptOrder) -> records.Adopted:
        """As the product adopts, but for the tests."""
        context = self._context()
        published = await context.journal.step("adopt", lambda: review.read_head(context, order), records.Published)
        return records.Adopted(published, await self.verify(key, records.VerifyOrder(order.prepared, published.tree)))

    async def land(self, _key: str, order: records.LandOrder) -> records.Landed:
        landed = await review.land(self._context(), order, self._stage.mutant.rule)
        landed = self._stage.mutant.landed(landed)
        self.landed.append(landed)
        return landed

    async def tell(self, stage: Stage, progress: Progress) -> None:
        self.notes.append(progress.note)

    async def report_gate(self, key: str, state: records.ReviewState, examined: records.Examined, note: str) -> None:
        context = self._context()
        await context.journal.step(key, lambda: showing.report_gate(context, state, examined, note), bool)

    async def receive(self) -> records.Envelope | None:
        self.idle.set()
        return await self.inbox.get()


@asynccontextmanager
async def staged(
    root: Path,
    mutant: Mutant = Mutant(),
    policies: Policies | None = None,
    files: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[HistoryStage]:
    """A world with one repository, its people and one issue; `files` are more files of its first commit."""
    git = MemoryGit()
    git.write("tree", b"")
    teams: dict[str, tuple[str, ...]] = {}
    seed = Seed(
        teams=teams,
        users=tuple(UserSeed(login, role, token=f"token-{login}") for login, role in PEOPLE.items()),
        repositories=(RepositorySeed(REPOSITORY),),
    )
    config = Config(seed=seed, webhook_url=HOLD, webhook_secret="secret")
    world = await create_world(config, root, lambda path: MemoryBare(path, git))
    stage = HistoryStage(world, git, Service(world, HANDLERS), mutant)
    stage.teams = teams
    first = stage.commit({**ROOT_FILES, **files})
    git.refs |= {"refs/heads/main": first, "refs/heads/decoy": first}
    await stage.begin(policies or shipped(), 1)
    try:
        yield stage
    finally:
        await stage.forges.close()
        await stage.people.aclose()
        await world.stop()
