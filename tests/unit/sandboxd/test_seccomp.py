"""The system call filters, run on an interpreter of their own language: both architectures, on any machine."""

from __future__ import annotations

import errno
import struct
from pathlib import Path

import pytest

from bot.sandboxd.errors import IsolationUnavailable
from bot.sandboxd.seccomp.build import compiled
from bot.sandboxd.seccomp.filters import filter_of
from bot.sandboxd.seccomp.rules import MACHINES, Machine, rules_for

ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000


def run(program: bytes, data: bytes) -> int:
    """What the kernel would answer for this `struct seccomp_data`."""
    rows, at, value = list(struct.iter_unpack("<HBBI", program)), 0, 0
    while True:
        code, yes, no, k = rows[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("<I", data, k)
            case 0x54:
                value &= k
            case 0x15:
                at += yes if value == k else no
            case 0x45:
                at += yes if value & k else no
            case 0x06:
                return int(k)
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


def answer(machine: Machine, name: str | int, *arguments: int, architecture: int | None = None) -> int:
    number = machine.numbers[name] if isinstance(name, str) else name
    filled = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    head = struct.pack("<IIQ", number, architecture or machine.architecture, 0)
    return run(filter_of(machine.name), head + struct.pack("<6Q", *filled))


@pytest.fixture(params=MACHINES, ids=lambda machine: machine.name)
def machine(request) -> Machine:
    chosen: Machine = request.param
    return chosen


def refused(code: int = errno.EPERM) -> int:
    return ERRNO | code


def test_the_shipped_filters_are_what_the_rules_compile_to(machine):
    shipped = Path("bot/sandboxd/seccomp") / f"{machine.name}.json"
    root = Path(__file__).parents[3]
    assert (root / shipped).read_text() == compiled(machine)


def test_every_call_of_the_list_is_refused_and_others_are_not(machine):
    for rule in rules_for(machine):
        if not rule.conditions:
            assert answer(machine, rule.number) == refused(rule.errno)
    listed = {rule.number for rule in rules_for(machine)}
    assert {answer(machine, number) for number in range(480) if number not in listed} == {ALLOW}


def test_namespaces_cannot_be_made_and_threads_can(machine):
    for flag in (0x10000000, 0x20000000, 0x40000000, 0x00020000, 0x04000000, 0x08000000, 0x02000000):
        assert answer(machine, "clone", flag | 17) == refused()
    assert answer(machine, "clone", 0x3D0F00) == ALLOW
    assert answer(machine, "clone", 17) == ALLOW
    assert answer(machine, "clone3") == refused(errno.ENOSYS)
    assert answer(machine, "unshare", 0x10000000) == refused()


@pytest.mark.parametrize("request_number", [0x5412, 0x541C, 0x541D, 0x5423])
def test_terminal_requests_are_compared_by_their_low_half(machine, request_number):
    assert answer(machine, "ioctl", 0, request_number) == refused()
    assert answer(machine, "ioctl", 0, request_number | 1 << 32) == refused()
    assert answer(machine, "ioctl", 0, 0x5413) == ALLOW


def test_only_three_kinds_of_socket_and_none_of_them_raw(machine):
    for family in range(46):
        expected = ALLOW if family in {1, 2, 10} else refused(errno.EAFNOSUPPORT)
        assert answer(machine, "socket", family, 1) == expected
        assert answer(machine, "socket", family | 1 << 32, 1) == expected
    for kind in (3, 3 | 0o2000000, 3 | 0o4000):
        assert answer(machine, "socket", 2, kind) == refused()
        assert answer(machine, "socket", 10, kind) == refused()
    assert answer(machine, "socket", 1, 3) == ALLOW
    assert answer(machine, "socketpair", 1, 1) == ALLOW
    assert answer(machine, "socketpair", 40, 1) == refused(errno.EAFNOSUPPORT)


def test_setuid_and_setgid_bits_cannot_be_made_by_any_call(machine):
    for bits in (0o4755, 0o2755):
        for name in (
            "fchmod",
            "fchmodat",
            "fchmodat2",
            "mkdirat",
            "mknodat",
            *machine.numbers.keys() & {"chmod", "mkdir", "mknod"},
        ):
            place = 2 if name in {"fchmodat", "fchmodat2", "mkdirat", "mknodat"} else 1
            assert answer(machine, name, *[0] * place, bits) == refused(), name
            assert answer(machine, name, *[0] * place, 0o1777) == ALLOW, name
        assert answer(machine, "openat", 0, 0, 0o101, bits) == refused()
        assert answer(machine, "openat", 0, 0, 0, bits) == ALLOW, "without O_CREAT the mode is rubbish from a register"
    assert answer(machine, "openat2") == refused(errno.ENOSYS)


def test_the_personality_may_be_asked_for_and_not_changed(machine):
    assert answer(machine, "personality", 0xFFFFFFFF) == ALLOW
    assert answer(machine, "personality", 0) == ALLOW
    assert answer(machine, "personality", 0x0040000) == refused()


@pytest.mark.parametrize(
    "name", ["prlimit64", "sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity"]
)
def test_the_limits_and_the_turns_of_process_1_stay_as_they_are(machine, name):
    assert answer(machine, name, 1) == answer(machine, name, 1 | 1 << 32) == refused()
    assert answer(machine, name, 0) == answer(machine, name, 2) == ALLOW


@pytest.mark.parametrize(("name", "process"), [("setpriority", 0), ("ioprio_set", 1)])
def test_only_single_processes_but_the_first_change_their_priority(machine, name, process):
    assert answer(machine, name, process, 0) == answer(machine, name, process, 7) == ALLOW
    assert answer(machine, name, process, 1) == refused()
    assert {answer(machine, name, kind, 7) for kind in range(4) if kind != process} == {refused()}


def test_another_abi_is_killed_or_does_not_exist(machine):
    for other in (0x40000003, 0x40000028, 0xC000003E, 0xC00000B7):
        if other != machine.architecture:
            assert answer(machine, 1, architecture=other) == KILL
    if machine.foreign_bit is not None:
        assert answer(machine, machine.foreign_bit | 1) == refused(errno.ENOSYS)


def test_names_of_the_machine_are_understood_and_others_refused_in_words():
    assert filter_of("arm64") == filter_of("aarch64")
    assert filter_of("AMD64") == filter_of("x86_64")
    with pytest.raises(IsolationUnavailable, match="riscv64"):
        filter_of("riscv64")
