"""Runs the tests and the scan in a sandbox and judges what they say. The only place that builds a VerifiedChange."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.custody.mirror import Mirror
from bot.custody.workbench import Workbench
from bot.domain.change import Change, FileMode, TreeEntry
from bot.domain.ids import TreeId
from bot.domain.repository import RepositorySettings
from bot.domain.verdict import Failure, FailureKind, TestReport, Verdict, VerifiedChange
from bot.policy import artefacts
from bot.policy.limits import Limits
from bot.prompting import mask_secrets
from bot.providers.sandbox.port import Sandbox
from bot.providers.scanner.port import ScanFailed, Scanner, ScanResult
from bot.stages.verifying import suppressions
from bot.stages.verifying.compare import aligned, compare, from_findings, signature
from bot.stages.verifying.reports import report

JUNIT_PATH = "/home/user/.pullwright/junit.xml"
PYTEST_CACHE = "/home/user/.pullwright/pytest"
"""Outside the files; switched off it would break plugins that keep something there."""

_JUNIT_LIMIT = 64_000_000
_OUTPUT_LIMIT = 16_000_000
_SCANNED_SIZE = 5_000_000


@dataclass(frozen=True, slots=True)
class Checks:
    """What a change is judged by: the test command, its time limit, the baseline it is compared with."""

    settings: RepositorySettings
    baseline: TestReport


async def run_tests(sandbox: Sandbox, command: str, timeout_seconds: int) -> TestReport:
    """One run of the repository's test command on the files as they stand in the sandbox."""
    await sandbox.run(f"rm -f {JUNIT_PATH}; mkdir -p {JUNIT_PATH.rsplit('/', 1)[0]}", timeout_seconds=30)
    result = await sandbox.run(
        command,
        timeout_seconds=timeout_seconds,
        env={
            "PYTEST_ADDOPTS": f"--junitxml={JUNIT_PATH} -o cache_dir={PYTEST_CACHE}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "CI": "true",
        },
        output_bytes=_OUTPUT_LIMIT,
    )
    try:
        junit: bytes | None = await sandbox.read(JUNIT_PATH, limit=_JUNIT_LIMIT)
    except (FileNotFoundError, ValueError):
        junit = None
    return report(command, result, junit)


async def baseline(bench: Workbench, tree: TreeId, settings: RepositorySettings) -> TestReport:
    """The tests on the untouched base: what "broke nothing" is measured against."""

    async def work(sandbox: Sandbox) -> TestReport:
        return await run_tests(sandbox, settings.test or "true", settings.test_timeout_seconds)

    outcome = await bench.act(tree, work)
    bench.disturbed()
    return outcome


@dataclass(frozen=True, slots=True)
class Artefacts:
    """What the checks left to be seen, by name, and why others of it are not kept."""

    kept: tuple[tuple[str, bytes], ...] = ()
    not_kept: tuple[str, ...] = ()


async def collect(sandbox: Sandbox, settings: RepositorySettings, limits: Limits) -> Artefacts:
    """What lies in the artefact directory after the checks and the repository's own `proof` command; everything in it is untrusted."""
    not_kept: list[str] = []
    if settings.proof:
        result = await sandbox.run(settings.proof, timeout_seconds=settings.test_timeout_seconds)
        if result.exit_code != 0 or result.timed_out:
            how = "ran out of time" if result.timed_out else f"ended with {result.exit_code}"
            not_kept.append(f"The command for visual proof {how}.")
    listing = (
        f"find {artefacts.DIRECTORY} -mindepth 1 -maxdepth 1 -type f -printf '%s %P\\0' 2>/dev/null | head -c 100000"
    )
    found = artefacts.listed((await sandbox.run(listing, timeout_seconds=30, cwd="/home/user")).stdout)
    chosen, refused = artefacts.wanted(found, limits)
    kept: list[tuple[str, bytes]] = []
    for one in chosen:
        try:
            data = await sandbox.read(f"{artefacts.DIRECTORY}/{one.name}", limit=limits.artefact_bytes)
        except (FileNotFoundError, ValueError):
            not_kept.append(f"`{one.name}`: it changed while it was read.")
            continue
        wrong = artefacts.against(one.name, data, mask_secrets(data.decode("utf-8", "replace")))
        if wrong:
            not_kept.append(wrong)
        else:
            kept.append((one.name, data))
    return Artefacts(tuple(kept), (*not_kept, *refused[:20]))


@dataclass(frozen=True, slots=True)
class Verifier:
    """Judges changes of one repository."""

    mirror: Mirror
    scanner: Scanner
    checks: Checks

    async def check(
        self, sandbox: Sandbox, change: Change, *, command: str | None = None, aside: Sandbox | None = None
    ) -> Verdict:
        """Tests, scan and suppressions on the files as they stand in this sandbox, which must hold `change.tree`.

        The scan runs `aside` where there is such a sandbox, because tests could reach for what it reads and writes.
        """
        settings = self.checks.settings
        test = command or settings.test or "true"
        before, after = await self._contents(change)
        (scan, scan_failures), tests = await asyncio.gather(
            self._scan(aside or sandbox, before, after), run_tests(sandbox, test, settings.test_timeout_seconds)
        )
        tests = aligned(self.checks.baseline, tests)
        failures = (
            *compare(self.checks.baseline, tests),
            *from_findings(scan.introduced()),
            *suppressions.added(before, after),
            *scan_failures,
            *await self._lint(sandbox),
        )
        return Verdict(change.tree, self.checks.baseline, tests, scan.introduced(), failures)

    async def verify(
        self, bench: Workbench, change: Change, after: Callable[[Sandbox], Awaitable[None]] | None = None
    ) -> tuple[Verdict, VerifiedChange | None]:
        """The full check in a sandbox of its own that was filled from `change.tree`, the scan in a second one; the proof only when all passed.

        `after` is run in it once everything passed.
        """

        async def work(sandbox: Sandbox) -> Verdict:
            async with bench.aside() as aside:
                verdict = await self.check(sandbox, change, aside=aside)
            if verdict.passed and after is not None:
                await after(sandbox)
            return verdict

        verdict = await bench.act(change.tree, work)
        bench.disturbed()
        if change.empty:
            empty = Failure(FailureKind.EMPTY, "no file changed", "The tree is the base's.", "empty:change")
            return Verdict(
                verdict.tree, verdict.before, verdict.after, verdict.findings, (*verdict.failures, empty)
            ), None
        return verdict, VerifiedChange(change, verdict) if verdict.passed else None

    async def _contents(self, change: Change) -> tuple[dict[str, bytes], dict[str, bytes]]:
        before = await self._side({path.path: path.old for path in change.paths})
        after = await self._side({path.path: path.new for path in change.paths})
        return before, after

    async def _side(self, entries: dict[str, TreeEntry | None]) -> dict[str, bytes]:
        wanted = {
            path: entry.blob
            for path, entry in entries.items()
            if entry is not None and entry.mode in {FileMode.REGULAR, FileMode.EXECUTABLE}
        }
        blobs = await self.mirror.blobs(tuple(sorted(set(wanted.values()))))
        return {path: blobs[blob] for path, blob in wanted.items() if len(blobs[blob]) <= _SCANNED_SIZE}

    async def _scan(
        self, sandbox: Sandbox, before: dict[str, bytes], after: dict[str, bytes]
    ) -> tuple[ScanResult, tuple[Failure, ...]]:
        if not after:
            return ScanResult((), ()), ()
        scan = self.scanner.command(before, after)
        root = scan.report_path.rsplit("/", 1)[0]
        await sandbox.run(f"rm -rf {root}", timeout_seconds=30, cwd="/home/user")
        for path, data in scan.files:
            await sandbox.write(path, data)
        result = await sandbox.run(scan.command, timeout_seconds=300, cwd="/home/user")
        try:
            data = await sandbox.read(scan.report_path, limit=_JUNIT_LIMIT)
            return self.scanner.read(data, result.exit_code, before, after), ()
        except (ScanFailed, FileNotFoundError, ValueError) as fault:
            said = f"{fault}\n{(result.stderr or result.stdout)[-800:]}"
            failure = Failure(
                FailureKind.FINDING,
                "the security scan did not finish",
                said,
                signature(FailureKind.FINDING, "scan", said),
            )
            return ScanResult((), ()), (failure,)

    async def _lint(self, sandbox: Sandbox) -> tuple[Failure, ...]:
        command = self.checks.settings.lint
        if not command:
            return ()
        result = await sandbox.run(command, timeout_seconds=self.checks.settings.test_timeout_seconds)
        if result.exit_code == 0 and not result.timed_out:
            return ()
        said = (result.stdout + result.stderr)[-1500:]
        return (Failure(FailureKind.COMMAND, command, said, signature(FailureKind.COMMAND, command, said)),)
