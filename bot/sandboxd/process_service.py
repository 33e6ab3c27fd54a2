"""envd's process service: the messages and the server class are the SDK's own, the commands are ours."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator
from typing import Any

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.request import Headers, RequestContext
from e2b.envd.process import process_connect
from e2b.envd.process import process_pb as pb
from protobuf import Oneof

from bot.sandboxd.errors import AgentRefused, SandboxGone
from bot.sandboxd.processes import Command, Event, Kind, Process, Subscriber, TerminalSize
from bot.sandboxd.registry import Registry
from bot.sandboxd.sandbox import Sandbox

_KEEPALIVE_SECONDS = 50
_MOST_CELLS = 1 << 16
_USERS = frozenset({"user", "root"})
_GONE = "the connection to the sandbox ended before the stream completed"


def sandbox_of(registry: Registry, headers: Headers) -> Sandbox:
    """The sandbox that a request names; the front has checked its token."""
    sandbox = registry.running(headers.get("e2b-sandbox-id", ""))
    if sandbox is None:
        raise ConnectError(Code.UNAVAILABLE, _GONE)
    return sandbox


class ProcessService(process_connect.Process):
    """Commands, with pipes or on a terminal."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def start(
        self,
        request: pb.StartRequest,
        ctx: RequestContext[pb.StartRequest, pb.StartResponse],
        /,
    ) -> AsyncIterator[pb.StartResponse]:
        sandbox, headers = sandbox_of(self._registry, ctx.request_headers), ctx.request_headers
        _check_user(headers)
        try:
            process, subscriber = await sandbox.spawn(_command(request))
        except AgentRefused as refusal:
            raise ConnectError(_start_code(refusal), str(refusal)) from None
        except SandboxGone:
            raise ConnectError(Code.UNAVAILABLE, _GONE) from None
        if ctx.timeout_ms is not None:
            sandbox.expire(process, max(0.0, ctx.timeout_ms / 1000))
        async for event in _events(process, subscriber, keepalive_of(headers)):
            yield pb.StartResponse(event=event)

    async def connect(
        self,
        request: pb.ConnectRequest,
        ctx: RequestContext[pb.ConnectRequest, pb.ConnectResponse],
        /,
    ) -> AsyncIterator[pb.ConnectResponse]:
        sandbox = sandbox_of(self._registry, ctx.request_headers)
        process = _find(sandbox, request.process, finished=True)
        subscriber = process.subscribe()
        async for event in _events(process, subscriber, keepalive_of(ctx.request_headers)):
            yield pb.ConnectResponse(event=event)

    async def list(
        self,
        request: pb.ListRequest,
        ctx: RequestContext[pb.ListRequest, pb.ListResponse],
        /,
    ) -> pb.ListResponse:
        del request
        sandbox = sandbox_of(self._registry, ctx.request_headers)
        return pb.ListResponse(processes=[_info(process) for process in sandbox.processes.values()])

    async def send_signal(
        self,
        request: pb.SendSignalRequest,
        ctx: RequestContext[pb.SendSignalRequest, pb.SendSignalResponse],
        /,
    ) -> pb.SendSignalResponse:
        sandbox = sandbox_of(self._registry, ctx.request_headers)
        process = _find(sandbox, request.process)
        try:
            await sandbox.signal(process, int(request.signal))
        except AgentRefused as refusal:
            raise ConnectError(Code.NOT_FOUND, str(refusal)) from None
        except SandboxGone:
            raise ConnectError(Code.UNAVAILABLE, _GONE) from None
        return pb.SendSignalResponse()

    async def update(
        self,
        request: pb.UpdateRequest,
        ctx: RequestContext[pb.UpdateRequest, pb.UpdateResponse],
        /,
    ) -> pb.UpdateResponse:
        process = _find(sandbox_of(self._registry, ctx.request_headers), request.process)
        if request.pty is not None:
            try:
                process.resize(_size(request.pty))
            except OSError as error:
                raise ConnectError(Code.FAILED_PRECONDITION, f"the terminal's size cannot be set: {error}") from None
        return pb.UpdateResponse()

    async def send_input(
        self,
        request: pb.SendInputRequest,
        ctx: RequestContext[pb.SendInputRequest, pb.SendInputResponse],
        /,
    ) -> pb.SendInputResponse:
        sandbox = sandbox_of(self._registry, ctx.request_headers)
        await _feed(_find(sandbox, request.process), request.input)
        return pb.SendInputResponse()

    async def stream_input(
        self,
        request: AsyncIterator[pb.StreamInputRequest],
        ctx: RequestContext[pb.StreamInputRequest, pb.StreamInputResponse],
        /,
    ) -> pb.StreamInputResponse:
        sandbox, process = sandbox_of(self._registry, ctx.request_headers), None
        async for message in request:
            match message.event:
                case Oneof(value=pb.StreamInputRequest.StartEvent() as start):
                    process = _find(sandbox, start.process)
                case Oneof(value=pb.StreamInputRequest.DataEvent() as data) if process is not None:
                    await _feed(process, data.input)
                case Oneof(value=pb.StreamInputRequest.DataEvent()):
                    raise ConnectError(Code.INVALID_ARGUMENT, "input came before the process was named")
        return pb.StreamInputResponse()

    async def close_stdin(
        self,
        request: pb.CloseStdinRequest,
        ctx: RequestContext[pb.CloseStdinRequest, pb.CloseStdinResponse],
        /,
    ) -> pb.CloseStdinResponse:
        _find(sandbox_of(self._registry, ctx.request_headers), request.process).close_stdin()
        return pb.CloseStdinResponse()


async def _events(process: Process, subscriber: Subscriber, keepalive: float) -> AsyncIterator[pb.ProcessEvent]:
    """start, then data and keepalives, then end; or the error that says why there is no end."""
    try:
        yield _event("start", pb.ProcessEvent.StartEvent(pid=process.pid))
        while process.ending is None or not subscriber.empty:
            event = await subscriber.get(keepalive)
            if event is None:
                yield _event("keepalive", pb.ProcessEvent.KeepAlive())
                continue
            if event.kind is Kind.GONE:
                raise ConnectError(Code.UNAVAILABLE, _GONE)
            if event.kind is Kind.END:
                break
            yield _data(event)
        yield _end(process)
    finally:
        process.unsubscribe(subscriber)


def _event(name: str, value: object) -> pb.ProcessEvent:
    chosen: Any = Oneof(name, value)
    return pb.ProcessEvent(event=chosen)


def _data(event: Event) -> pb.ProcessEvent:
    output: Any = Oneof(event.kind.value, event.data)
    return _event("data", pb.ProcessEvent.DataEvent(output=output))


def _end(process: Process) -> pb.ProcessEvent:
    ending = process.ending
    if process.timed_out or ending is None:
        raise ConnectError(Code.DEADLINE_EXCEEDED, "the command's time was up")
    fields: Any = {"exit_code": ending.exit_code, "exited": ending.exited, "status": ending.status}
    if ending.error is not None:
        fields["error"] = ending.error
    return _event("end", pb.ProcessEvent.EndEvent(**fields))


def _info(process: Process) -> pb.ProcessInfo:
    command = process.command
    config = pb.ProcessConfig(cmd=command.program, args=[*command.args], envs=command.env, cwd=command.cwd)
    return pb.ProcessInfo(config=config, pid=process.pid, tag=command.tag)


def _command(request: pb.StartRequest) -> Command:
    config = request.process
    if config is None or not config.cmd:
        raise ConnectError(Code.INVALID_ARGUMENT, "no command")
    return Command(
        program=config.cmd,
        args=tuple(config.args),
        env=dict(config.envs),
        cwd=config.cwd if config.has_field("cwd") else None,
        stdin=request.stdin if request.has_field("stdin") else True,
        tag=request.tag if request.has_field("tag") else None,
        terminal=_size(request.pty) if request.pty is not None else None,
    )


def _size(terminal: pb.PTY) -> TerminalSize:
    size = terminal.size
    if size is None or not (0 < size.rows < _MOST_CELLS and 0 < size.cols < _MOST_CELLS):
        raise ConnectError(Code.INVALID_ARGUMENT, "a terminal has a size")
    return TerminalSize(size.rows, size.cols)


def _find(sandbox: Sandbox, selector: pb.ProcessSelector | None, *, finished: bool = False) -> Process:
    chosen = selector.selector if selector is not None else None
    if chosen is None:
        raise ConnectError(Code.INVALID_ARGUMENT, "no process named")
    candidates: list[Process] = [*sandbox.processes.values()]
    if finished:
        candidates += sandbox.finished.values()
    for process in candidates:
        if chosen.value == (process.pid if chosen.field == "pid" else process.command.tag):
            return process
    raise ConnectError(Code.NOT_FOUND, "process not found")


async def _feed(process: Process, given: pb.ProcessInput | None) -> None:
    match given.input if given is not None else None:
        case Oneof(field="stdin" | "pty" as kind, value=bytes(data)):
            pass
        case _:
            raise ConnectError(Code.INVALID_ARGUMENT, "no input given")
    if (kind == "pty") is not (process.command.terminal is not None):
        raise ConnectError(Code.FAILED_PRECONDITION, f"the process does not take input by {kind}")
    try:
        await process.write(data)
    except (ValueError, BrokenPipeError) as error:
        raise ConnectError(Code.INTERNAL, f"standard input is closed: {error}") from None


def _check_user(headers: Headers) -> None:
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme != "Basic":
        return
    try:
        user = base64.b64decode(value, validate=True).decode().partition(":")[0]
    except (binascii.Error, UnicodeDecodeError):
        user = ""
    if user not in _USERS:
        raise ConnectError(Code.UNAUTHENTICATED, f"invalid username: '{user}'")


def keepalive_of(headers: Headers) -> float:
    try:
        return max(1.0, float(headers.get("keepalive-ping-interval", "")))
    except ValueError:
        return _KEEPALIVE_SECONDS


def _start_code(refusal: AgentRefused) -> Code:
    return Code.RESOURCE_EXHAUSTED if refusal.kind == "BlockingIOError" else Code.INVALID_ARGUMENT
