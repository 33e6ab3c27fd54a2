"""What the product and its users may ask of E2B's SDK: one suite for our own server and, by `make test-live`, for E2B Cloud.

Nothing here knows which of the two answers. With PULLWRIGHT_TEST_LIVE set the account is that of E2B_API_KEY (E2B_API_URL, E2B_SANDBOX_URL).
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from e2b import (
    ALL_TRAFFIC,
    AsyncSandbox,
    AuthenticationException,
    CommandExitException,
    FileNotFoundException,
    FilesystemEventType,
    FileType,
    InvalidArgumentException,
    NotFoundException,
    PtySize,
    Sandbox,
    SandboxException,
    SandboxNotFoundException,
    SandboxNotRunningException,
    SandboxQuery,
    SandboxState,
    TimeoutException,
)
from e2b.sandbox.filesystem.watch_handle import FilesystemEvent

from bot.sandboxd.serve import Config, running
from tests.contracts.sandbox_server import KEY, connection, eventually, longer, negated, output

pytestmark = pytest.mark.asyncio(loop_scope="module")
LIVE = os.environ.get("PULLWRIGHT_TEST_LIVE") == "1"
TEMPLATE = "base"


@dataclass(frozen=True)
class Service:
    """Who is asked: `control` for calls about sandboxes, `all` also for those that go into one."""

    control: dict[str, Any]
    all: dict[str, Any]

    @asynccontextmanager
    async def made(self, template: str = TEMPLATE, **options: Any) -> AsyncIterator[AsyncSandbox]:
        sandbox = await AsyncSandbox.create(template, timeout=options.pop("timeout", 120), **options, **self.all)
        try:
            yield sandbox
        finally:
            await sandbox.kill()

    async def listed(self, **query: Any) -> list[str]:
        pages, found = AsyncSandbox.list(query=SandboxQuery(**query), **self.control), []
        while pages.has_next:
            found += [info.sandbox_id for info in await pages.next_items()]
        return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    if LIVE:
        key = {"api_key": os.environ["E2B_API_KEY"]}
        yield Service(key, key)
        return
    async with running(Config(tmp_path_factory.mktemp("home"), KEY)) as end:
        yield Service({"api_url": end.api_url, "api_key": end.api_key}, connection(end))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(service: Service) -> AsyncIterator[AsyncSandbox]:
    """One for every test that only looks or works in a directory of its own."""
    async with service.made(timeout=600, envs={"FROM": "creation"}) as made:
        yield made


@pytest.fixture
def place() -> str:
    return f"/home/user/{uuid.uuid4().hex}"


# sandboxes


async def test_metadata_and_times_are_told(service: Service) -> None:
    mark = {"task": "t 1&=ü/%", "empty": ""}
    async with service.made(metadata=mark) as made:
        info = await made.get_info()
        assert (info.sandbox_id, info.state, info.metadata) == (made.sandbox_id, SandboxState.RUNNING, mark)
        assert 100 < (info.end_at - info.started_at).total_seconds() < 140
        assert info.cpu_count >= 1
        assert info.memory_mb > 0
        assert await made.is_running() is True


async def test_a_lease_is_set_longer_and_shorter_and_connecting_only_lengthens(service: Service) -> None:
    async with service.made() as made:
        before = (await made.get_info()).end_at
        await AsyncSandbox.connect(made.sandbox_id, timeout=5, **service.all)
        assert (await made.get_info()).end_at == before
        await made.set_timeout(300)
        assert (await made.get_info()).end_at > before
        await made.set_timeout(60)
        assert (await made.get_info()).end_at < before


async def test_a_lease_ends(service: Service) -> None:
    async with service.made() as made:
        await made.set_timeout(1)
        await eventually(lambda: negated(made.is_running()))
        with pytest.raises(SandboxNotRunningException):
            await made.commands.run("true")
        with pytest.raises(SandboxNotFoundException):
            await made.get_info()


async def test_killing_is_told_once_and_nothing_answers_any_more(service: Service) -> None:
    async with service.made() as made:
        assert await made.kill() is True
        assert await made.kill() is False
        with pytest.raises(SandboxNotFoundException):
            await made.get_info()
        with pytest.raises(SandboxNotFoundException):
            await made.set_timeout(5)
        with pytest.raises(SandboxNotFoundException):
            await made.pause()
        with pytest.raises(SandboxNotFoundException):
            await AsyncSandbox.connect(made.sandbox_id, **service.all)
        with pytest.raises((SandboxNotRunningException, NotFoundException)):
            await made.files.read("/etc/passwd")


async def test_a_command_cut_off_by_a_kill_says_that_the_sandbox_is_gone(service: Service) -> None:
    async with service.made() as made:
        handle = await made.commands.run("sleep 60", background=True)
        await made.kill()
        with pytest.raises(SandboxNotRunningException):
            await handle.wait()


async def test_lists_filter_by_metadata_and_state_and_come_in_pages(service: Service) -> None:
    mark = {"suite": uuid.uuid4().hex}
    async with service.made(metadata={**mark, "n": "1"}) as one, service.made(metadata={**mark, "n": "2"}) as two:
        assert set(await service.listed(metadata=mark)) == {one.sandbox_id, two.sandbox_id}
        assert await service.listed(metadata={**mark, "n": "2"}) == [two.sandbox_id]
        await two.pause()
        assert await service.listed(metadata=mark, state=[SandboxState.PAUSED]) == [two.sandbox_id]
        assert await service.listed(metadata=mark, state=[SandboxState.RUNNING]) == [one.sandbox_id]
        pages = AsyncSandbox.list(query=SandboxQuery(metadata=mark), limit=1, **service.control)
        sizes = [len(await pages.next_items()), pages.has_next, len(await pages.next_items()), pages.has_next]
        assert sizes == [1, True, 1, False]


async def test_a_paused_sandbox_answers_nothing_and_goes_on_where_it_was(service: Service) -> None:
    async with service.made() as made:
        await made.files.write("kept", "kept")
        await made.commands.run("while sleep 0.05; do echo >> ticks; done", background=True, timeout=0)
        await eventually(lambda: made.files.exists("ticks"))
        await made.pause()
        assert not await made.is_running()
        assert await made.pause() is False
        resumed = await AsyncSandbox.connect(made.sandbox_id, timeout=60, **service.all)
        before = len(await resumed.files.read("ticks"))
        await eventually(lambda: longer(resumed, "ticks", before))
        assert await resumed.files.read("kept") == "kept"


async def test_a_lease_may_end_in_a_pause(service: Service) -> None:
    async with service.made(timeout=3, lifecycle={"on_timeout": "pause"}) as made:

        async def paused() -> bool:
            return (await made.get_info()).state == SandboxState.PAUSED

        await eventually(paused)
        await AsyncSandbox.connect(made.sandbox_id, timeout=60, **service.all)
        assert await output(made, "echo back") == "back\n"


async def test_a_repeated_create_is_one_sandbox(service: Service) -> None:
    key = str(uuid.uuid4())
    async with service.made(idempotency_key=key) as one, service.made(idempotency_key=key) as two:
        assert one.sandbox_id == two.sandbox_id


async def test_a_wrong_key_and_an_unknown_template_are_refused(service: Service) -> None:
    with pytest.raises(AuthenticationException):
        await AsyncSandbox.create(TEMPLATE, **{**service.all, "api_key": "e2b_" + "0" * 40})
    with pytest.raises((SandboxException, NotFoundException), match="nosuch-template"):
        await AsyncSandbox.create("nosuch-template", **service.all)


async def test_metrics_say_what_is_used(service: Service) -> None:
    async with service.made() as made:
        await made.commands.run("head -c 30M /dev/urandom > big")

        async def told() -> bool:
            return bool(await made.get_metrics())

        await eventually(told, seconds=60)
        metrics = (await made.get_metrics())[-1]
        assert 0 < metrics.mem_used <= metrics.mem_total
        assert 30_000_000 < metrics.disk_used <= metrics.disk_total
        assert metrics.cpu_count >= 1
        assert metrics.cpu_used_pct >= 0


async def test_a_snapshot_of_files_is_a_template(service: Service) -> None:
    name = f"conformance-{uuid.uuid4().hex[:12]}"
    async with service.made() as made:
        await made.files.write("a", "kept")
        kept = await made.create_snapshot(name=name, mode="filesystem")
    try:
        found = await AsyncSandbox.list_snapshots(name=name, **service.control).next_items()
        assert [each.snapshot_id for each in found] == [kept.snapshot_id]
        async with service.made(kept.snapshot_id) as other:
            assert await other.files.read("a") == "kept"
    finally:
        assert await AsyncSandbox.delete_snapshot(kept.snapshot_id, **service.control) is True
    assert await AsyncSandbox.delete_snapshot(kept.snapshot_id, **service.control) is False


async def test_without_internet_nothing_is_reached_and_the_rules_can_change(service: Service) -> None:
    dial = "timeout 5 bash -c 'exec 3<>/dev/tcp/1.1.1.1/443 && printf x >&3 && head -c 1 <&3' 2>/dev/null && echo open || echo shut"
    async with service.made(allow_internet_access=False) as made:
        assert await output(made, dial) == "shut\n"
        await made.update_network({"deny_out": [ALL_TRAFFIC]})
        assert await output(made, dial) == "shut\n"


# commands


async def test_output_and_code_come_back(sandbox: AsyncSandbox) -> None:
    result = await sandbox.commands.run("echo out; echo err >&2")
    assert (result.stdout, result.stderr, result.exit_code, result.error) == ("out\n", "err\n", 0, None)


async def test_a_code_other_than_zero_raises_with_all_of_it(sandbox: AsyncSandbox) -> None:
    with pytest.raises(CommandExitException) as caught:
        await sandbox.commands.run("echo out; echo err >&2; exit 7")
    assert (caught.value.exit_code, caught.value.stdout, caught.value.stderr) == (7, "out\n", "err\n")


async def test_a_signal_is_told_as_such(sandbox: AsyncSandbox) -> None:
    with pytest.raises(CommandExitException) as caught:
        await sandbox.commands.run("kill -9 $$")
    assert caught.value.exit_code == -1
    assert "killed" in str(caught.value.error)


async def test_where_and_with_what_a_command_runs(sandbox: AsyncSandbox) -> None:
    assert await output(sandbox, "pwd; id -un; echo $FROM $HOME") == "/home/user\nuser\ncreation /home/user\n"
    result = await sandbox.commands.run("pwd; echo $FROM $MORE", cwd="/tmp", envs={"FROM": "call", "MORE": "ä"})
    assert result.stdout == "/tmp\ncall ä\n"
    with pytest.raises(InvalidArgumentException):
        await sandbox.commands.run("true", cwd="/nowhere")


async def test_only_known_users_run_commands(sandbox: AsyncSandbox) -> None:
    assert (await sandbox.commands.run("echo yes", user="root")).stdout == "yes\n"
    with pytest.raises(AuthenticationException):
        await sandbox.commands.run("true", user="mallory")


async def test_output_streams_while_it_is_made(sandbox: AsyncSandbox) -> None:
    first = asyncio.Event()
    pieces: list[str] = []

    def take(piece: str) -> None:
        pieces.append(piece)
        first.set()

    handle = await sandbox.commands.run("echo one; read -r x; echo two", background=True, stdin=True, on_stdout=take)
    async with asyncio.timeout(30):
        await first.wait()
    assert pieces == ["one\n"]
    await sandbox.commands.send_stdin(handle.pid, "\n")
    assert (await handle.wait()).stdout == "one\ntwo\n"


async def test_much_output_and_split_characters_arrive_whole(sandbox: AsyncSandbox) -> None:
    result = await sandbox.commands.run(
        "head -c 3000000 /dev/zero | tr '\\0' x; for i in 1 2 3; do printf 'ü日'; sleep 0.01; done"
    )
    assert len(result.stdout) == 3_000_000 + 6
    assert result.stdout.endswith("ü日ü日ü日")
    split = await sandbox.commands.run(r"printf '\xc3'; sleep 0.1; printf '\xbc'; printf '\xff'")
    assert split.stdout == "ü\ufffd"


async def test_the_deadline_kills(sandbox: AsyncSandbox, place: str) -> None:
    with pytest.raises(TimeoutException) as caught:
        await sandbox.commands.run(f"touch {place}; while sleep 0.1; do echo >> {place}; done", timeout=1)
    assert not isinstance(caught.value, SandboxNotRunningException)
    size = len(await sandbox.files.read(place))
    await asyncio.sleep(0.5)
    assert len(await sandbox.files.read(place)) <= size + 1


async def test_a_command_in_the_background_is_listed_joined_and_killed(sandbox: AsyncSandbox) -> None:
    handle = await sandbox.commands.run("sleep 77 || true; echo end", background=True, timeout=0)
    listed = {process.pid: process for process in await sandbox.commands.list()}
    assert listed[handle.pid].cmd == "/bin/bash"
    assert listed[handle.pid].args[-1] == "sleep 77 || true; echo end"
    joined = await sandbox.commands.connect(handle.pid)
    await sandbox.commands.run("pkill -x sleep")
    assert (await joined.wait()).stdout == "end\n"
    assert (await handle.wait()).exit_code == 0
    other = await sandbox.commands.run("sleep 78", background=True, timeout=0)
    assert await other.kill() is True
    assert await sandbox.commands.kill(other.pid) is False
    with pytest.raises(CommandExitException):
        await other.wait()


async def test_leaving_a_command_leaves_it_running(sandbox: AsyncSandbox, place: str) -> None:
    handle = await sandbox.commands.run(f"while sleep 0.05; do echo >> {place}; done", background=True, timeout=0)
    await eventually(lambda: sandbox.files.exists(place))
    await handle.disconnect()
    before = len(await sandbox.files.read(place))
    await eventually(lambda: longer(sandbox, place, before))
    assert await sandbox.commands.kill(handle.pid) is True


async def test_input_goes_in_and_ends(sandbox: AsyncSandbox) -> None:
    handle = await sandbox.commands.run("cat; echo over", background=True, stdin=True)
    await sandbox.commands.send_stdin(handle.pid, "one\n")
    await sandbox.commands.send_stdin(handle.pid, "ü\n")
    await sandbox.commands.close_stdin(handle.pid)
    assert (await handle.wait()).stdout == "one\nü\nover\n"


async def test_input_streams_in_order(sandbox: AsyncSandbox) -> None:
    handle = await sandbox.commands.run("head -n 200 | md5sum", background=True, stdin=True)
    stream = sandbox.commands.stream_input(handle.pid)
    for number in range(200):
        await stream.send(f"{number}\n")
    await stream.close()
    assert (await handle.wait()).stdout == await output(sandbox, "seq 0 199 | md5sum")


async def test_input_for_nobody_is_refused(sandbox: AsyncSandbox) -> None:
    with pytest.raises(NotFoundException):
        await sandbox.commands.send_stdin(999_999, "x")
    with pytest.raises(NotFoundException):
        await sandbox.commands.connect(999_999)
    assert await sandbox.commands.kill(999_999) is False


async def test_what_one_command_starts_another_can_reach(sandbox: AsyncSandbox) -> None:
    serve = "python3 -c \"import socket; s=socket.create_server(('127.0.0.1', 8765)); s.accept()[0].send(b'hello')\""
    await sandbox.commands.run(serve, background=True, timeout=0)
    dial = "until exec 3<>/dev/tcp/127.0.0.1/8765; do sleep 0.05; done 2>/dev/null; cat <&3"
    assert (await sandbox.commands.run(dial, timeout=30)).stdout == "hello"


# terminals


class Screen:
    """What a terminal has shown."""

    def __init__(self) -> None:
        self.text = b""

    def show(self, data: bytes) -> None:
        self.text += data

    async def shows(self, wanted: bytes) -> None:
        async def there() -> bool:
            return wanted in self.text

        await eventually(there)


async def test_a_terminal_is_one_and_has_its_size(sandbox: AsyncSandbox) -> None:
    screen = Screen()
    terminal = await sandbox.pty.create(PtySize(rows=31, cols=97), screen.show, envs={"X": "given"}, cwd="/tmp")
    await sandbox.pty.send_stdin(terminal.pid, b"tty >/dev/null && echo is-$((40+2))-$X; pwd; stty size\n")
    await screen.shows(b"is-42-given\r\n/tmp\r\n31 97\r\n")
    await sandbox.pty.resize(terminal.pid, PtySize(rows=11, cols=55))
    await sandbox.pty.send_stdin(terminal.pid, b"stty size\n")
    await screen.shows(b"11 55\r\n")
    await sandbox.pty.send_stdin(terminal.pid, b"exit 3\n")
    with pytest.raises(CommandExitException) as caught:
        await terminal.wait()
    assert caught.value.exit_code == 3


async def test_a_terminal_passes_its_keys_and_is_killed(sandbox: AsyncSandbox) -> None:
    screen = Screen()
    terminal = await sandbox.pty.create(PtySize(rows=24, cols=80), screen.show)
    await sandbox.pty.send_stdin(terminal.pid, b"sleep 600 || echo inter$((1))upted\n")
    await asyncio.sleep(0.3)
    await sandbox.pty.send_stdin(terminal.pid, b"\x03")
    await sandbox.pty.send_stdin(terminal.pid, b"echo still-$((1+1))\n")
    await screen.shows(b"still-2\r\n")
    assert await sandbox.pty.kill(terminal.pid) is True
    assert await sandbox.pty.kill(terminal.pid) is False


# files


@pytest.mark.parametrize("options", [{}, {"use_octet_stream": True}, {"gzip": True}], ids=["form", "raw", "gzip"])
async def test_bytes_go_in_and_come_out(sandbox: AsyncSandbox, place: str, options: dict[str, Any]) -> None:
    data = bytes(range(256)) * 2_000
    written = await sandbox.files.write(f"{place}/deep/er", data, **options)
    assert (written.path, written.name) == (f"{place}/deep/er", "er")
    assert bytes(await sandbox.files.read(f"{place}/deep/er", format="bytes")) == data
    assert bytes(await sandbox.files.read(f"{place}/deep/er", format="bytes", gzip=True)) == data
    stream = await sandbox.files.read(f"{place}/deep/er", format="stream")
    assert b"".join([chunk async for chunk in stream]) == data


async def test_text_is_written_over_and_relative_paths_are_at_home(sandbox: AsyncSandbox, place: str) -> None:
    await sandbox.files.write(place, "a longer text\n")
    await sandbox.files.write(place, "ü\n")
    assert await sandbox.files.read(place.rpartition("/")[2]) == "ü\n"
    assert await sandbox.files.read(place.replace("/home/user", "~")) == "ü\n"


async def test_many_files_are_one_request(sandbox: AsyncSandbox, place: str) -> None:
    written = await sandbox.files.write_files([{"path": f"{place}/{n}", "data": str(n)} for n in range(30)])
    assert [entry.path for entry in written] == [f"{place}/{n}" for n in range(30)]
    assert await sandbox.files.read(f"{place}/29") == "29"


async def test_an_empty_file_is_one(sandbox: AsyncSandbox, place: str) -> None:
    await sandbox.files.write(place, "")
    assert await sandbox.files.read(place) == ""
    assert (await sandbox.files.get_info(place)).size == 0


async def test_entries_are_described(sandbox: AsyncSandbox, place: str) -> None:
    await sandbox.files.write(f"{place}/f", "12345")
    await sandbox.commands.run(f"chmod 750 {place}/f; ln -s f {place}/l; mkdir {place}/d")
    file, directory = await sandbox.files.get_info(f"{place}/f"), await sandbox.files.get_info(f"{place}/d")
    assert (file.name, file.type, file.size, file.mode & 0o777) == ("f", FileType.FILE, 5, 0o750)
    assert (file.owner, file.group, file.permissions[-9:]) == ("user", "user", "rwxr-x---")
    assert directory.type == FileType.DIR
    assert (await sandbox.files.get_info(f"{place}/l")).symlink_target == f"{place}/f"
    with pytest.raises(FileNotFoundException):
        await sandbox.files.get_info(f"{place}/none")


async def test_directories_are_listed_to_a_depth(sandbox: AsyncSandbox, place: str) -> None:
    for path in ("a", "b/c", "b/d/e"):
        await sandbox.files.write(f"{place}/{path}", "")
    assert [entry.name for entry in await sandbox.files.list(place)] == ["a", "b"]
    deeper = [entry.path.removeprefix(place) for entry in await sandbox.files.list(place, depth=2)]
    assert sorted(deeper) == ["/a", "/b", "/b/c", "/b/d"]
    with pytest.raises(FileNotFoundException):
        await sandbox.files.list(f"{place}/none")
    with pytest.raises(InvalidArgumentException):
        await sandbox.files.list(f"{place}/a")


async def test_directories_are_made_once(sandbox: AsyncSandbox, place: str) -> None:
    assert await sandbox.files.make_dir(f"{place}/x/y") is True
    assert await sandbox.files.make_dir(f"{place}/x/y") is False
    await sandbox.files.write(f"{place}/f", "")
    with pytest.raises(InvalidArgumentException):
        await sandbox.files.make_dir(f"{place}/f")


async def test_files_are_renamed_and_removed(sandbox: AsyncSandbox, place: str) -> None:
    await sandbox.files.write(f"{place}/old", "1")
    renamed = await sandbox.files.rename(f"{place}/old", f"{place}/made/new")
    assert renamed.path == f"{place}/made/new"
    assert (await sandbox.files.exists(f"{place}/old"), await sandbox.files.exists(f"{place}/made/new")) == (
        False,
        True,
    )
    with pytest.raises(FileNotFoundException):
        await sandbox.files.rename(f"{place}/none", f"{place}/x")
    for _ in range(2):
        await sandbox.files.remove(place)
    assert await sandbox.files.exists(place) is False


async def test_what_cannot_be_read_says_why(sandbox: AsyncSandbox, place: str) -> None:
    with pytest.raises(FileNotFoundException):
        await sandbox.files.read(place)
    await sandbox.files.make_dir(place)
    with pytest.raises(InvalidArgumentException):
        await sandbox.files.read(place)


# watching


class Watcher:
    """Notes events, and the end."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.ended: list[Exception | None] = []

    def event(self, event: FilesystemEvent) -> None:
        self.seen.append((event.name, event.type.value))

    def exit(self, error: Exception | None) -> None:
        self.ended.append(error)

    async def saw(self, name: str, kind: FilesystemEventType) -> None:
        async def there() -> bool:
            return (name, kind.value) in self.seen

        await eventually(there)


async def test_a_directory_is_watched(sandbox: AsyncSandbox, place: str) -> None:
    await sandbox.files.write(f"{place}/old", "1")
    watcher = Watcher()
    handle = await sandbox.files.watch_dir(place, watcher.event, on_exit=watcher.exit)
    await sandbox.files.write(f"{place}/new", "1")
    await watcher.saw("new", FilesystemEventType.CREATE)
    await watcher.saw("new", FilesystemEventType.WRITE)
    await sandbox.commands.run(f"chmod 600 {place}/old; mv {place}/old {place}/moved; rm {place}/moved")
    await watcher.saw("old", FilesystemEventType.CHMOD)
    await watcher.saw("old", FilesystemEventType.RENAME)
    await watcher.saw("moved", FilesystemEventType.REMOVE)
    await sandbox.commands.run(f"mkdir {place}/below; sleep 0.2; touch {place}/below/x {place}/last")
    await watcher.saw("last", FilesystemEventType.CREATE)
    assert not any(name == "below/x" for name, _ in watcher.seen), "not asked to look deeper"
    await handle.stop()
    assert watcher.ended == [None]


async def test_directories_below_are_watched_too_also_those_that_come_later(sandbox: AsyncSandbox, place: str) -> None:
    await sandbox.files.make_dir(f"{place}/a/b")
    watcher = Watcher()
    handle = await sandbox.files.watch_dir(place, watcher.event, recursive=True)
    await sandbox.files.write(f"{place}/a/b/deep", "1")
    await watcher.saw("a/b/deep", FilesystemEventType.CREATE)
    await sandbox.commands.run(f"mkdir {place}/later")
    await watcher.saw("later", FilesystemEventType.CREATE)
    await asyncio.sleep(0.3)
    await sandbox.files.write(f"{place}/later/x", "1")
    await watcher.saw("later/x", FilesystemEventType.CREATE)
    await handle.stop()


async def test_a_watch_has_a_time_and_a_place(sandbox: AsyncSandbox, place: str) -> None:
    with pytest.raises(FileNotFoundException):
        await sandbox.files.watch_dir(place, print)
    await sandbox.files.write(f"{place}/file", "1")
    with pytest.raises(InvalidArgumentException):
        await sandbox.files.watch_dir(f"{place}/file", print)
    watcher = Watcher()
    await sandbox.files.watch_dir(place, watcher.event, on_exit=watcher.exit, timeout=1)
    await eventually(lambda: _is_there(watcher.ended))
    assert isinstance(watcher.ended[0], TimeoutException)


async def _is_there(values: list[Any]) -> bool:
    return bool(values)


async def test_what_happened_can_be_asked_for(service: Service, sandbox: AsyncSandbox, place: str) -> None:
    await sandbox.files.make_dir(f"{place}/a")
    polled = await asyncio.to_thread(lambda: Sandbox.connect(sandbox.sandbox_id, **service.all))
    handle = await asyncio.to_thread(polled.files.watch_dir, place, recursive=True)
    seen: set[tuple[str, str]] = set()

    async def told(name: str, kind: FilesystemEventType) -> bool:
        seen.update((event.name, event.type.value) for event in await asyncio.to_thread(handle.get_new_events))
        return (name, kind.value) in seen

    await sandbox.files.write(f"{place}/a/new", "1")
    await eventually(lambda: told("a/new", FilesystemEventType.WRITE))
    await sandbox.files.remove(f"{place}/a/new")
    await eventually(lambda: told("a/new", FilesystemEventType.REMOVE))
    await asyncio.to_thread(handle.stop)
    with pytest.raises(FileNotFoundException):
        await asyncio.to_thread(polled.files.watch_dir, f"{place}/none")


async def test_a_watch_ends_with_its_sandbox(service: Service) -> None:
    watcher = Watcher()
    async with service.made() as made:
        await made.files.watch_dir("/tmp", watcher.event, on_exit=watcher.exit, timeout=0)
    await eventually(lambda: _is_there(watcher.ended))
    assert isinstance(watcher.ended[0], SandboxNotRunningException)
