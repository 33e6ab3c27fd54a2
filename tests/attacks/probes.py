"""What hostile code tries (specs/security.md §4.4). The same file runs inside, and outside as the control. Standard library only."""

# ruff: noqa: PTH101, PTH108, PTH110, PTH111, PTH116, PTH123, PTH208

import ctypes
import errno
import fcntl
import json
import os
import pty
import signal
import socket
import struct
import sys
import tempfile
import threading
import time

ASKED = json.loads(sys.argv[1])
LIBC = ctypes.CDLL(None, use_errno=True)
MARKER = ASKED["marker"][::-1]  # reversed on the way here, so that our own arguments are no find
NUMBERS = {
    "x86_64": {
        "bpf": 321,
        "perf": 298,
        "uffd": 323,
        "uring": 425,
        "key": 250,
        "handle": 304,
        "readv": 310,
        "clone3": 435,
    },
    "aarch64": {
        "bpf": 280,
        "perf": 241,
        "uffd": 282,
        "uring": 425,
        "key": 219,
        "handle": 265,
        "readv": 270,
        "clone3": 435,
    },
}[os.uname().machine]


def read(path):
    with open(path, "rb") as file:
        return file.read()


def status(name):
    rows = dict(row.split(":\t", 1) for row in read("/proc/self/status").decode().splitlines() if ":\t" in row)
    return rows[name].strip()


def reaches(*call):
    """The kernel looked at the call: it succeeded, or failed for another reason than that it is not allowed."""
    ctypes.set_errno(0)
    return LIBC.syscall(*call) >= 0 or ctypes.get_errno() not in {errno.EPERM, errno.ENOSYS, errno.EACCES}


def dials(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as sock:
        sock.settimeout(2)
        sock.connect(address)
        sock.sendall(b"x")
        return sock.recv(10) == b"x"


def opens(*kind):
    socket.socket(*kind).close()
    return True


def in_child(act):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if act() else 1
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0


def checked(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), "")
    return True


def mounts(flags=0, kind=b"tmpfs"):
    with tempfile.TemporaryDirectory() as place:
        checked(LIBC.mount(b"x", place.encode(), kind, 0, None))
        if flags:
            checked(LIBC.mount(b"x", place.encode(), kind, flags, None))
        return checked(LIBC.umount2(place.encode(), 0))


def chroots():
    os.chroot("/tmp")
    return True


def everywhere(name):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if MARKER.encode() in read(f"/proc/{pid}/{name}"):
                return True
        except OSError:
            continue
    return False


def sleeper():
    pid = os.fork()
    if pid == 0:
        signal.pause()
    return pid


def on_child(act):
    pid = sleeper()
    try:
        return act(pid)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


SECRET = ctypes.create_string_buffer(b"abc")  # before the child is made, so that it has it at the same address


def reads_memory(pid):
    buffer = ctypes.create_string_buffer(4)
    here = struct.pack("QQ", ctypes.addressof(buffer), 3)
    there = struct.pack("QQ", ctypes.addressof(SECRET), 3)
    return LIBC.syscall(NUMBERS["readv"], pid, here, 1, there, 1, 0) == 3


def sets_bit():
    with tempfile.NamedTemporaryFile() as file:
        os.chmod(file.name, 0o4755)
        return os.stat(file.name).st_mode & 0o4000 != 0


def makes_node():
    with tempfile.TemporaryDirectory() as place:
        os.mknod(place + "/n", 0o20666, os.makedev(1, 3))
        return True


def types():
    return fcntl.ioctl(pty.openpty()[1], 0x5412, b"x") is not None


def terminal():
    pid, _ = pty.fork() if ASKED.get("tty") else (None, None)
    if pid == 0:
        os.close(os.open("/dev/tty", os.O_RDWR))
        os._exit(0)
    if pid:
        return os.waitpid(pid, 0)[1] == 0
    os.close(os.open("/dev/tty", os.O_RDWR))
    return True


def devices():
    plain = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"}
    return any(
        os.stat(entry).st_mode & 0o170000 in {0o20000, 0o60000}
        for entry in os.scandir("/dev")
        if entry.name not in plain and not entry.is_symlink()
    )


def links_out():
    name = ASKED["secret"] + ".linked"
    os.link(ASKED["secret"], name)
    os.unlink(name)
    return True


def setuid_programs():
    found = any(entry.stat().st_mode & 0o4000 for entry in os.scandir("/usr/bin") if not entry.is_symlink())
    return found and status("NoNewPrivs") == "0"


def signals():
    os.kill(ASKED["victim"], 0)
    return visible_pid()


def writes_settings():
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
    return True


def visible_pid():
    return b"pytest" in read(f"/proc/{ASKED['pid']}/cmdline")


PROBES = {
    "P01": lambda: read(ASKED["secret"]),
    "P02": lambda: read(ASKED["private"]),
    "P03": lambda: b"root:" in read("/etc/shadow"),
    "P04": lambda: read(f"/proc/{ASKED.get('one', 1)}/root{ASKED['secret']}"),
    "P05": lambda: read(f"/proc/{ASKED.get('one', 1)}/cwd{ASKED['secret']}"),
    "P07": links_out,
    "P08": lambda: os.access("/usr", os.W_OK),
    "P09": lambda: MARKER in os.environ.values(),
    "P10": lambda: everywhere("environ"),
    "P11": lambda: everywhere("cmdline"),
    "P12": lambda: len(os.listdir("/proc/self/fd")) > 4,
    "P13": lambda: any(map(os.path.exists, (os.path.expanduser("~/.netrc"), ASKED["home"] + "/.netrc"))),
    "P14": lambda: os.path.exists("/etc/machine-id") or os.path.exists("/etc/hostname"),
    "P15": visible_pid,
    "P16": signals,
    "P17": lambda: on_child(lambda pid: LIBC.ptrace(0x4206, pid, None, None) == 0),
    "P18": lambda: on_child(reads_memory),
    "P20": lambda: dials(socket.AF_INET, ("127.0.0.1", ASKED["port"])),
    "P21": lambda: dials(socket.AF_INET, ("169.254.169.254", 80)),
    "P22": lambda: dials(socket.AF_INET, ("198.51.100.53", 53), socket.SOCK_DGRAM),
    "P23": lambda: dials(socket.AF_INET, ("198.51.100.53", 53)),
    "P24": lambda: dials(socket.AF_INET, ("198.51.100.53", 4433), socket.SOCK_DGRAM),
    "P25": lambda: dials(socket.AF_INET6, ("2001:db8::1", 443)),
    "P26": lambda: opens(socket.AF_INET, socket.SOCK_RAW, 1),
    "P27": lambda: opens(17, socket.SOCK_RAW, 0x0300),
    "P28": lambda: opens(40, socket.SOCK_STREAM),
    "P29": lambda: opens(16, socket.SOCK_RAW, 0),
    "P30": lambda: dials(socket.AF_UNIX, "\0" + ASKED["abstract"]),
    "P31": lambda: dials(socket.AF_UNIX, ASKED["socket"]),
    "P32": mounts,
    "P33": lambda: mounts(flags=0x20 | 1),
    "P34": mounts,
    "P35": lambda: (
        in_child(lambda: checked(LIBC.unshare(0x10000000))) or in_child(lambda: checked(LIBC.unshare(0x20000)))
    ),
    "P36": lambda: reaches(NUMBERS["clone3"], 0, 0),
    "P37": lambda: in_child(chroots),
    "P38": lambda: reaches(NUMBERS["key"], 0, -2, 0),
    "P39": lambda: any(
        reaches(*call)
        for call in (
            (NUMBERS["bpf"], 99, 0, 0),
            (NUMBERS["perf"], 0, 0, 0, 0, 0),
            (NUMBERS["uffd"], 1 << 20),
            (NUMBERS["uring"], 0, 0),
        )
    ),
    "P40": lambda: reaches(NUMBERS["handle"], -1, 0, 0),
    "P41": lambda: status("NoNewPrivs") == "0",
    "P42": lambda: int(status("CapEff"), 16) | int(status("CapBnd"), 16) != 0,
    "P43": sets_bit,
    "P44": setuid_programs,
    "P45": writes_settings,
    "P53": types,
    "P54": terminal,
    "P55": devices,
    "P56": makes_node,
}


def bound(family, kind, address):
    """A new IPv6 address is nobody's for a moment: the kernel lets a worker of its own confirm it."""
    deadline = time.monotonic() + 10
    while True:
        sock = socket.socket(family, kind)
        try:
            sock.bind(address)
        except OSError as error:
            sock.close()
            if error.errno != errno.EADDRNOTAVAIL or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return sock


def echo(family, address, kind):
    sock = bound(family, kind, address)
    if kind == socket.SOCK_STREAM:
        sock.listen()

    def serve():
        while True:
            if kind == socket.SOCK_DGRAM:
                data, peer = sock.recvfrom(10)
                sock.sendto(data, peer)
            else:
                connection = sock.accept()[0]
                connection.sendall(connection.recv(10))
                connection.close()

    threading.Thread(target=serve, daemon=True).start()


def network_of_our_own():
    """For the control of what needs a network: one where the asked addresses answer, in a namespace of its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for number, address in enumerate(("127.0.0.1", "169.254.169.254", "198.51.100.53")):
            name = f"lo:{number}".encode() if number else b"lo"
            request = struct.pack("16sH2s4s8x", name, socket.AF_INET, b"", socket.inet_aton(address))
            fcntl.ioctl(sock, 0x8916, request)
            fcntl.ioctl(sock, 0x8914, struct.pack("16sH14x", name, 0x49))
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, 0x8916, socket.inet_pton(socket.AF_INET6, "2001:db8::1") + struct.pack("II", 128, 1))
    for address, port, kinds in (
        ("169.254.169.254", 80, (1,)),
        ("198.51.100.53", 53, (1, 2)),
        ("198.51.100.53", 4433, (2,)),
    ):
        for kind in kinds:
            echo(socket.AF_INET, (address, port), kind)
    echo(socket.AF_INET6, ("2001:db8::1", 443), socket.SOCK_STREAM)


def attempt(probe):
    try:
        return bool(probe())
    except OSError:
        return False
    except Exception as error:
        return repr(error)


if ASKED.get("network"):
    network_of_our_own()
print(json.dumps({name: attempt(PROBES[name]) for name in ASKED.get("only") or PROBES}))
