"""Process 1 of a sandbox: standard library only, run as a script by the template's Python.

It forks commands and opens files inside the sandbox's namespaces and hands file descriptors out over the inherited socket,
so the server outside never resolves a path that the sandbox controls. Frames are a 4-byte length and a body, marshal inwards
(the server is trusted), JSON outwards (nothing from here is); descriptors go with the length.
Its imports are the C halves of the usual modules, because those would double the time to start a sandbox, as pathlib would.
"""

# ruff: noqa: PTH103, PTH112, PTH118, PTH120, PTH123, PTH208
from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import marshal
import os
import resource
import select
import stat
import sys
from _json import encode_basestring_ascii
from _socket import AF_INET, CMSG_SPACE, MSG_CMSG_CLOEXEC, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_MORE = "/run"
_KILL_ROUNDS = 40
_NULL = "/dev/null"
_LOCKS, _FIRST_TAG = 10, 1 << 30  # RLIMIT_LOCKS, which Linux has not looked at since 2.4


def _json(value: object) -> str:
    """Only what is sent from here: text, numbers, nothing, and lists and mappings of them."""
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{encode_basestring_ascii(name)}:{_json(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    return "null" if value is None else repr(value)


def _place(path: str) -> str:
    home = os.environ["HOME"]
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    return os.path.normpath(os.path.join(home, path))


def _stat(pid: int | str) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def _processes() -> dict[int, tuple[int, int, int]]:
    """pid → (parent, session, start) of every live process in the namespace but this one."""
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit() or name == "1":
            continue
        fields = _stat(name)
        if fields and fields[0] not in {b"Z", b"X"}:
            table[int(name)] = (int(fields[1]), int(fields[3]), int(fields[19]))
    return table


def _crowded() -> bool:
    return sum(map(str.isdigit, os.listdir("/proc"))) > resource.getrlimit(resource.RLIMIT_NPROC)[0] * 5 // 8


def _tag(pid: int) -> int:
    """The limit by which a command's processes are known; 0 when the process is no more."""
    try:
        with open(f"/proc/{pid}/limits", "rb") as file:
            row = next(line for line in file if line.startswith(b"Max file locks"))
    except (OSError, StopIteration):
        return 0
    value = row.split()[-2]
    return int(value) if value.isdigit() else 0


def _family(leader: int, tag: int, began: int, others: set[int]) -> set[int]:
    """The command, its session, its descendants, and whatever began since and bears no other live command's tag.

    The last are those that made a session of their own and lost their parent: only the tag and the time give them away.
    """
    table = _processes()
    family = {pid for pid, (_, session, _) in table.items() if leader in {pid, session}}
    for pid, (_, _, start) in table.items():
        if start >= began and pid not in family:
            found = _tag(pid)
            if found == tag or found not in others:
                family.add(pid)
    grown = True
    while grown:
        more = {pid for pid, (parent, _, _) in table.items() if parent in family} - family
        family |= more
        grown = bool(more)
    return family


def _more(op: str) -> Callable[[dict[str, Any], list[int]], dict[str, Any]]:
    """What few ask for, from a file of its own that is read when somebody does: compiling it would cost every start."""
    if _MORE not in sys.path:
        sys.path.append(_MORE)
    operation = getattr(__import__("agent_more"), op)
    return lambda message, fds: operation(_place, message, fds)


class Agent:
    """Serves one control socket until it closes; then this process, and with it the sandbox, ends."""

    def __init__(self, control: socket) -> None:
        self._control = control
        self._commands: dict[int, int] = {}
        self._tags: dict[int, tuple[int, int]] = {}
        self._next_tag = _FIRST_TAG
        self._buffer = b""
        self._fds: list[int] = []
        self._wake, wake = os.pipe()
        for fd in (self._wake, wake):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._null = os.open(_NULL, os.O_RDWR)

    def serve(self) -> None:
        self._send({"event": "ready", "pid": os.getpid()})
        _close_to_others()  # after the word, because it takes time, and before anything else runs here
        while True:
            ready, _, _ = select.select([self._control.fileno(), self._wake], [], [])
            if self._wake in ready:
                self._reap()
            if self._control.fileno() in ready and not self._receive():
                return

    def _send(self, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        body = _json({**message, "fds": len(fds)}).encode("ascii")
        head = len(body).to_bytes(4, "big")
        if fds:
            self._control.sendmsg(
                [head], [(SOL_SOCKET, SCM_RIGHTS, b"".join(fd.to_bytes(4, sys.byteorder) for fd in fds))]
            )
            self._control.sendall(body)
        else:
            self._control.sendall(head + body)

    def _receive(self) -> bool:
        data, ancillary, _, _ = self._control.recvmsg(1 << 20, CMSG_SPACE(4 * 4), MSG_CMSG_CLOEXEC)
        self._buffer += data
        for _, _, packed in ancillary:
            self._fds += memoryview(packed).cast("i").tolist()
        while len(self._buffer) >= 4:
            end = 4 + int.from_bytes(self._buffer[:4], "big")
            if len(self._buffer) < end:
                break
            message = marshal.loads(self._buffer[4:end])  # noqa: S302 - from the server, which is trusted
            self._buffer = self._buffer[end:]
            taken, self._fds = self._fds[: message["fds"]], self._fds[message["fds"] :]
            self._answer(message, taken)
        return bool(data)

    def _answer(self, message: dict[str, Any], fds: list[int]) -> None:
        give: tuple[int, ...] = ()
        try:
            result = (getattr(self, "do_" + message["op"], None) or _more(message["op"]))(message, fds)
            give = (result.pop("fd"),) if "fd" in result else ()
            self._send({"id": message["id"], "ok": result}, give)
        except (OSError, ValueError, RecursionError) as error:
            text = (
                f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.strerror else str(error)
            )
            self._send(
                {
                    "id": message["id"],
                    "error": type(error).__name__,
                    "errno": getattr(error, "errno", None),
                    "message": text,
                }
            )
        finally:
            for fd in (*fds, *give):
                os.close(fd)

    def _reap(self) -> None:
        try:
            os.read(self._wake, 4096)
        except BlockingIOError:
            return
        self._bury()

    def _bury(self) -> None:
        """Take note of every child that has ended, which also gives its place to another process."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            key = self._commands.pop(pid, None)
            self._tags.pop(pid, None)
            if key is not None:
                self._send({"event": "exit", "key": key, "code": os.waitstatus_to_exitcode(status)})

    def do_spawn(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Start a command on the given stdout, stderr and perhaps stdin; its exit is told under `key`."""
        streams = (fds[2] if len(fds) > 2 else self._null, fds[0], fds[1])
        return {"pid": self._start(message, [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(streams)])}

    def do_terminal(self, message: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """As `spawn`, on a terminal whose other end is handed out: opened first by the leader of a session, it controls it."""
        master, slave = os.openpty()
        opened = (os.POSIX_SPAWN_OPEN, 0, os.ttyname(slave), os.O_RDWR, 0)
        try:
            pid = self._start(message, [opened, (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)])
        except BaseException:
            os.close(master)
            raise
        finally:
            os.close(slave)
        return {"pid": pid, "fd": master}

    def _start(self, message: dict[str, Any], actions: list[tuple[Any, ...]]) -> int:
        cwd = _place(message["cwd"] or "~")
        if not os.path.isdir(cwd):
            raise ValueError(f"cwd '{cwd}' does not exist")
        if _crowded():  # by what ended commands left behind, perhaps a fork bomb
            live = {tag for tag, _ in self._tags.values()}
            _end(lambda: {pid for pid in _processes() if _tag(pid) not in live})
            self._bury()
        self._next_tag -= 1  # a limit nothing else uses: inherited by all the command starts, and only ever lowered
        resource.setrlimit(_LOCKS, (self._next_tag, self._next_tag))
        os.chdir(cwd)  # posix_spawn, much quicker than a fork of Python, has no other way to say where
        pid = os.posix_spawnp(
            message["argv"][0],
            message["argv"],
            message["env"],
            file_actions=actions,
            setsid=True,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT],
        )
        os.chdir("/")
        self._commands[pid] = message["key"]
        self._tags[pid] = (self._next_tag, int(_stat(pid)[19]))  # it is there at least until it is buried
        return pid

    def do_signal(self, message: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """SIGKILL takes the whole family, any other signal the process group."""
        leader, number = message["pid"], message["signal"]
        if leader not in self._commands:
            raise FileNotFoundError(f"process {leader} not found")
        if number != signal.SIGKILL:
            os.killpg(leader, number)
            return {}
        tag, began = self._tags[leader]
        others = {other for pid, (other, _) in self._tags.items() if pid != leader}
        _end(lambda: _family(leader, tag, began, others))
        self._bury()  # so that its exit is told before this answer: whoever asks again is told that it is no more
        return {}

    def do_signal_all(self, message: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """Everything but this process, which as process 1 cannot be named by -1."""
        _kill(-1, message["signal"])
        return {}

    def do_open(self, message: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """Open a regular file and hand it out; "w" makes the parents and empties it."""
        path, writing = _place(message["path"]), message["mode"] == "w"
        if writing:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.isdir(path):
            raise IsADirectoryError(f"path '{path}' is a directory")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC if writing else os.O_RDONLY
        fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise ValueError(f"path '{path}' is not a regular file")
        return {"path": path, "fd": fd}

    def do_listen(self, _message: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """A listener on this network's loopback, handed out: whoever serves it outside is the only way out."""
        listener = socket(AF_INET, SOCK_STREAM)
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        return {"fd": listener.detach()}


def _end(choose: Callable[[], set[int]]) -> None:
    """Kill all that are chosen until none is. Stopped first: what is killed one by one could fork as fast as it dies."""
    if crowded := _crowded():  # everything stops for a moment, or this process would not get its turn for long
        _kill(-1, signal.SIGSTOP)
    for turn in range(_KILL_ROUNDS):
        select.select([], [], [], turn / 1000)  # what is killed needs the processor once more to die
        doomed = choose()
        if not doomed:
            break
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in doomed:
                _kill(pid, number)
    if crowded:
        _kill(-1, signal.SIGCONT)


def _kill(pid: int, number: int = signal.SIGKILL) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _limit(limits: dict[str, str]) -> None:
    for name, value in limits.items():
        hard = resource.getrlimit(kind := getattr(resource, name))[1]
        bound = int(value) if hard < 0 else min(int(value), hard)  # -1 is infinity
        resource.setrlimit(kind, (bound, bound))


def _close_to_others() -> None:
    """Let no other process of this user read or write this one's memory by /proc: they do not share it, they run what nobody trusts."""
    import _ctypes  # noqa: PLC0415 - ctypes itself takes twice as long

    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 2), "prctl")  # type: ignore[arg-type]
    _ctypes.call_function(prctl, (4, 0, 0, 0, 0))  # PR_SET_DUMPABLE


def main() -> None:
    """argv: descriptor of the control socket, the resource limits as NAME=VALUE,…."""
    control = int(sys.argv[1])
    os.closerange(3, control)
    os.closerange(control + 1, 1024)
    null = os.open(_NULL, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    os.close(null)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o022)
    _limit(dict(pair.split("=") for pair in sys.argv[2].split(",")))
    os.set_inheritable(control, False)
    Agent(socket(fileno=control)).serve()


if __name__ == "__main__":
    main()
