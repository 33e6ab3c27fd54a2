"""Sandboxes by the `e2b` SDK: E2B Cloud, or our own server when the two addresses point to it. Nothing else differs."""

from __future__ import annotations

import asyncio
import shlex
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
from e2b import (
    ALL_TRAFFIC,
    AsyncCommandHandle,
    AsyncSandbox,
    AuthenticationException,
    CommandExitException,
    FileNotFoundException,
    InvalidArgumentException,
    NotEnoughSpaceException,
    RateLimitException,
    SandboxException,
    SandboxNetworkOpts,
    SandboxNetworkUpdate,
    SandboxNotFoundException,
    SandboxNotRunningException,
    SandboxQuery,
    TimeoutException,
)
from e2b.connection_config import ApiParams
from e2b.exceptions import SandboxUnreachableException, ServiceBusyException

from bot.domain.egress import Attempt
from bot.domain.errors import Transient, UserError
from bot.domain.ids import SandboxId
from bot.providers.sandbox.clip import Clip
from bot.providers.sandbox.port import WORK, CommandResult, Sandbox, SandboxLost

TIMED_OUT = 124
"""The exit code reported for a command that its deadline killed, as coreutils' `timeout` has it."""

NOT_RUN = 126
"""The exit code of a command that could not be started, as a shell has it."""

_COMMAND_LINE_BYTES = 100_000
_REQUEST_SECONDS = 30
_CREATE_SECONDS = 60
_SNAPSHOT_SECONDS = 300
_BYTES_PER_SECOND = 1 << 20
_BUSY_SECONDS = 10
_OF_CONTENT = (SandboxException, InvalidArgumentException)
"""Of exactly these types are errors that nothing but the sandbox's own content causes."""

_SAID = 200

_COUNTED, _COUNT_PAGES, _COUNT_SECONDS = 1_000, 10, 3
"""So many sandboxes are counted at most, in so many requests, each answered within so many seconds."""
_TASK_LABEL = "pullwright-task"


@dataclass(frozen=True, slots=True)
class E2BSandboxes:
    """Makes and reaps sandboxes of one account. The addresses are None for E2B Cloud."""

    api_key: str = field(repr=False)
    api_url: str | None = None
    sandbox_url: str | None = None

    async def create(
        self, *, template: str, labels: Mapping[str, str], lifetime_seconds: int, egress: Sequence[str] = ()
    ) -> Sandbox:
        """See the port. Nothing else gets out of the sandbox, and nobody gets into it by a public address."""
        network: SandboxNetworkOpts = {"allow_public_traffic": False}
        if egress:  # without denying everything else, naming some would open all
            network |= {"allow_out": _hosts(egress), "deny_out": [ALL_TRAFFIC]}
        with _told(f"no sandbox of template '{template}'"):
            try:
                sandbox = await AsyncSandbox.create(
                    template,
                    timeout=lifetime_seconds,
                    metadata=dict(labels),
                    allow_internet_access=None if egress else False,
                    network=network,
                    idempotency_key=str(uuid.uuid4()),
                    api_key=self.api_key,
                    api_url=self.api_url,
                    sandbox_url=self.sandbox_url,
                    request_timeout=_CREATE_SECONDS,
                    debug=False,
                )
            except SandboxException as error:
                if "template" in str(error).lower() and error.status_code in {400, 403, 404}:
                    hint = "Name one that the sandbox service has in `.github/pullwright.toml`."
                    raise UserError(f"There is no sandbox template '{template}'.", hint) from error
                raise
        return _E2BSandbox(sandbox, self)

    async def reap(self, labels: Mapping[str, str]) -> int:
        """See the port. Without labels it would end everybody's sandboxes, so that is refused."""
        if not labels:
            raise ValueError("reap needs at least one label")
        with _told("the sandboxes cannot be listed"):
            pages = AsyncSandbox.list(query=SandboxQuery(metadata=dict(labels)), **self._control())
            found = []
            while pages.has_next:
                found += [info.sandbox_id for info in await pages.next_items()]
            ended = await asyncio.gather(*(self._end(sandbox_id) for sandbox_id in found))
        return sum(ended)

    async def live(self) -> int:
        """How many sandboxes of tasks there are now, counted up to a bound. Raises Transient when the service does not answer soon."""
        with _told("the sandboxes cannot be counted"):
            quick: ApiParams = {**self._control(), "request_timeout": _COUNT_SECONDS}
            pages = AsyncSandbox.list(limit=_COUNTED // _COUNT_PAGES, **quick)
            count, asked = 0, 0
            try:
                while pages.has_next and asked < _COUNT_PAGES:
                    count += sum(_TASK_LABEL in info.metadata for info in await pages.next_items())
                    asked += 1
            except SandboxException as error:
                if type(error) is not SandboxException:
                    raise
                raise Transient(f"the sandboxes cannot be counted: {error}") from error
        return count

    async def snapshot_of(self, name: str) -> str | None:
        """See the port."""
        with _told("the snapshots cannot be listed"):
            return next((found for found, names in await self._snapshots(name) if name in names), None)

    async def forget(self, prefix: str, *, but: str) -> None:
        """See the port."""
        if not prefix:
            raise ValueError("forget needs a prefix")
        with _told("the snapshots cannot be forgotten"):
            for found, names in await self._snapshots(None):
                if names and all(name.startswith(prefix) and name != but for name in names):
                    await AsyncSandbox.delete_snapshot(found, **self._control())

    async def _snapshots(self, name: str | None) -> list[tuple[str, list[str]]]:
        """Ids and plain names: E2B puts the project before a name and a tag behind it."""
        pages, found = AsyncSandbox.list_snapshots(name=name, **self._control()), []
        while pages.has_next:
            found += [
                (each.snapshot_id, [full.rpartition("/")[2].partition(":")[0] for full in each.names])
                for each in await pages.next_items()
            ]
        return found

    def _control(self) -> ApiParams:
        return {
            "api_key": self.api_key,
            "api_url": self.api_url,
            "request_timeout": _REQUEST_SECONDS,
            "debug": False,
        }

    async def _end(self, sandbox_id: str) -> bool:
        return await AsyncSandbox.kill(sandbox_id, **self._control())


class _E2BSandbox:
    """One sandbox of the SDK, with its errors told as the port's."""

    def __init__(self, sandbox: AsyncSandbox, account: E2BSandboxes) -> None:
        self._sandbox = sandbox
        self._account = account

    @property
    def id(self) -> SandboxId:
        return SandboxId(self._sandbox.sandbox_id)

    async def run(
        self,
        command: str,
        *,
        timeout_seconds: float,
        cwd: str = WORK,
        env: Mapping[str, str] | None = None,
        output_bytes: int = 200_000,
    ) -> CommandResult:
        """See the port. The deadline is the server's; leaving early, for whatever reason, kills the command."""
        stdout, stderr, begun = Clip(output_bytes), Clip(output_bytes), time.monotonic()
        timed_out = False
        with _inside("the command could not be run"):
            try:
                handle = await self._sandbox.commands.run(
                    await self._short(command),
                    background=True,
                    envs=dict(env or {}),
                    cwd=cwd,
                    timeout=timeout_seconds,
                    request_timeout=_REQUEST_SECONDS,
                    on_stdout=stdout.add,
                    on_stderr=stderr.add,
                    retain_output=False,
                )
            except InvalidArgumentException as refused:  # such as a work directory that a command before has removed
                return CommandResult(NOT_RUN, "", f"{refused}\n", time.monotonic() - begun)
            try:
                exit_code = await _exit_code(handle)
            except TimeoutException as error:
                if isinstance(error, SandboxNotRunningException | SandboxUnreachableException):
                    raise
                exit_code, timed_out = TIMED_OUT, True
        return CommandResult(exit_code, stdout.text(), stderr.text(), time.monotonic() - begun, timed_out)

    async def allow(self, egress: Sequence[str]) -> None:
        """See the port."""
        network: SandboxNetworkUpdate = {"allow_out": _hosts(egress), "deny_out": [ALL_TRAFFIC]}
        with _told("the allowed hosts could not be set"):
            await self._sandbox.update_network(network, request_timeout=_REQUEST_SECONDS)

    async def attempts(self) -> tuple[Attempt, ...]:
        """See the port. Our server's own call: where there is none nothing is known, which is no fault."""
        where = f"{self._account.api_url or ''}/sandboxes/{self.id}/egress"
        if not self._account.api_url:
            return ()
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=_REQUEST_SECONDS) as client:
                answer = await client.get(where, headers={"X-API-KEY": self._account.api_key})
            noted = answer.json() if answer.status_code == httpx.codes.OK else []
        except (httpx.HTTPError, ValueError):
            return ()
        return tuple(_attempt(each) for each in noted if isinstance(each, dict)) if isinstance(noted, list) else ()

    async def write(self, path: str, data: bytes) -> None:
        """See the port."""
        seconds = _REQUEST_SECONDS + len(data) / _BYTES_PER_SECOND
        with _inside(f"{path} could not be written"):
            await self._sandbox.files.write(path, data, use_octet_stream=True, request_timeout=seconds)

    async def read(self, path: str, *, limit: int) -> bytes:
        """See the port."""
        data = bytearray()
        with _inside(f"{path} could not be read"):
            try:
                stream = await self._sandbox.files.read(path, format="stream", stream_idle_timeout=_REQUEST_SECONDS)
            except FileNotFoundException as error:
                raise FileNotFoundError(path) from error
            except SandboxException as error:
                if type(error) not in _OF_CONTENT:
                    raise
                raise ValueError(f"{path} is not a file that can be read: {error}") from error
            async with stream:
                async for chunk in stream:
                    data += chunk
                    if len(data) > limit:
                        raise ValueError(f"{path} is larger than {limit} bytes")
        return bytes(data)

    async def snapshot(self, name: str) -> bool:
        """See the port. E2B refuses with 400 or 409 where a team or a node has no snapshots of files alone."""
        with _told("no snapshot was made"):
            try:
                await self._sandbox.create_snapshot(name=name, mode="filesystem", request_timeout=_SNAPSHOT_SECONDS)
            except SandboxException as error:
                if error.status_code in {400, 409}:
                    return False
                raise
        return True

    async def kill(self) -> None:
        """See the port."""
        with _told("the sandbox could not be ended"):
            await self._sandbox.kill(request_timeout=_REQUEST_SECONDS)

    async def _short(self, command: str) -> str:
        """The kernel takes 128 KiB for one argument: anything near it goes through a file."""
        if len(command.encode()) <= _COMMAND_LINE_BYTES:
            return command
        script = f"/tmp/.command-{uuid.uuid4().hex}"  # noqa: S108 - in the sandbox, under a name nobody can guess
        await self._sandbox.files.write(script, command, use_octet_stream=True, request_timeout=_REQUEST_SECONDS)
        return f"bash -l {script}; code=$?; rm -f {shlex.quote(script)}; exit $code"


def _attempt(told: Mapping[str, object]) -> Attempt:
    target, reason = (str(told.get(name) or "")[:_SAID] for name in ("target", "reason"))
    allowed, unlisted = told.get("allowed") is True, told.get("unlisted") is True
    return Attempt(target or "?", allowed, unlisted, "" if allowed or unlisted else reason)


def _hosts(egress: Sequence[str]) -> list[str]:
    """An allow-list as E2B has it, where a name stands for its port 443."""
    return [entry.removesuffix(":443") for entry in egress]


async def _exit_code(handle: AsyncCommandHandle[None]) -> int:
    over = False
    try:
        result = await handle.wait()
    except CommandExitException as ended:
        over = True
        return ended.exit_code
    else:
        over = True
        return result.exit_code
    finally:
        if not over:
            await _abandon(handle)


async def _abandon(handle: AsyncCommandHandle[None]) -> None:
    """Nobody waits for it any more, so it must not run on; what cannot be reached is dead or will expire."""
    try:
        await handle.kill()
        await handle.disconnect()
    except (SandboxException, AuthenticationException, ServiceBusyException, httpx.TransportError):
        return


@contextmanager
def _inside(what: str) -> Iterator[None]:
    """As `_told`. What runs inside may put anything in the way of a call, and a fresh sandbox has nothing there: it counts as lost."""
    with _told(what):
        try:
            yield
        except SandboxException as error:
            if type(error) not in _OF_CONTENT:
                raise
            raise SandboxLost(f"{what}: the sandbox cannot be used any more ({error})") from error


@contextmanager
def _told(what: str) -> Iterator[None]:
    """The SDK's errors as ours, by name: several of them share no base class that means anything."""
    try:
        yield
    except (SandboxNotRunningException, SandboxNotFoundException) as error:
        raise SandboxLost(f"{what}: the sandbox is gone ({error})") from error
    except (RateLimitException, ServiceBusyException) as error:
        raise Transient(f"{what}: the sandbox service is busy ({error})", _BUSY_SECONDS) from error
    except AuthenticationException as error:
        raise UserError(f"{what}: the sandbox service refused our key.", "Check `E2B_API_KEY`.") from error
    except NotEnoughSpaceException as error:
        raise UserError(f"{what}: the sandbox's disk is full.", "Use a template with a larger disk.") from error
    except (TimeoutException, httpx.TransportError, ConnectionError) as error:
        raise Transient(f"{what}: no answer from the sandbox service ({error})") from error
