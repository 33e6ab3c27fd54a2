"""What no build, test or tool needs and an attack on the kernel does (specs/security.md §4.2), with each machine's numbers."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass

from bot.sandboxd.seccomp.assembler import Bits, Rule, Test

_FORBIDDEN = """
add_key request_key keyctl bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register
kexec_load kexec_file_load create_module get_kernel_syms query_module init_module finit_module delete_module
open_by_handle_at name_to_handle_at quotactl quotactl_fd swapon swapoff reboot syslog acct
settimeofday clock_settime clock_adjtime adjtimex
mount umount2 pivot_root chroot unshare setns fsopen fsconfig fsmount fspick move_mount open_tree open_tree_attr mount_setattr
statmount listmount
ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd process_madvise process_mrelease
lookup_dcookie nfsservctl iopl ioperm modify_ldt vhangup sethostname setdomainname fanotify_init fanotify_mark
migrate_pages move_pages mbind set_mempolicy get_mempolicy set_mempolicy_home_node
uselib ustat sysfs _sysctl vmsplice memfd_secret
""".split()  # noqa: SIM905 - a page of names, and nothing but names

_UNIX, _INET, _INET6 = 1, 2, 10
_RAW = 3
_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_TERMINAL = (0x5412, 0x541C, 0x541D, 0x5423)  # TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD
_CREATING = 0x400040  # O_CREAT, O_TMPFILE
_SETID = 0o6000
_ON_A_PROCESS = ("prlimit64", "sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity")
_PERSONALITIES = (0, 0xFFFFFFFF)  # Linux itself, and the question which one it is
_MODE_OF = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "mkdir": 1, "mkdirat": 2, "mknod": 1, "mknodat": 2}


@dataclass(frozen=True, slots=True)
class Machine:
    """One architecture: its audit number, the bit that marks a foreign ABI's calls, and its system calls' numbers."""

    name: str
    architecture: int
    foreign_bit: int | None
    numbers: dict[str, int]


def rules_for(machine: Machine) -> tuple[Rule, ...]:
    """The deny-list in that machine's numbers; a call it does not have needs no rule."""
    return tuple(rule for name, rule in _named(machine.numbers) if name in machine.numbers)


def _named(numbers: dict[str, int]) -> Iterator[tuple[str, Rule]]:
    def rule(name: str, *conditions: Test | Bits, answer: int = errno.EPERM) -> tuple[str, Rule]:
        return name, Rule(numbers.get(name, -1), answer, conditions)

    yield from (rule(name) for name in _FORBIDDEN)
    # The C library falls back to clone, whose flags can be read here; clone3 and openat2 keep theirs in memory.
    yield rule("clone3", answer=errno.ENOSYS)
    yield rule("openat2", answer=errno.ENOSYS)
    yield rule("clone", Bits(0, _NAMESPACES))
    yield rule("socket", Test(0, (_UNIX, _INET, _INET6), one_of=False), answer=errno.EAFNOSUPPORT)
    yield rule("socket", Test(0, (_INET, _INET6)), Test(1, (_RAW,), mask=0xF))
    yield rule("socketpair", Test(0, (_UNIX,), one_of=False), answer=errno.EAFNOSUPPORT)
    yield rule("ioctl", Test(1, _TERMINAL))
    yield rule("personality", Test(0, _PERSONALITIES, one_of=False))
    yield from (rule(name, Bits(argument, _SETID)) for name, argument in _MODE_OF.items())
    yield rule("creat", Bits(1, _SETID))
    yield rule("open", Bits(1, _CREATING), Bits(2, _SETID))
    yield rule("openat", Bits(2, _CREATING), Bits(3, _SETID))
    # Process 1 is of the same user as what it runs, which may not starve it: it keeps the deadlines.
    yield from (rule(name, Test(0, (1,))) for name in _ON_A_PROCESS)
    yield rule("setpriority", Test(0, (0,), one_of=False))
    yield rule("setpriority", Test(1, (1,)))
    yield rule("ioprio_set", Test(0, (1,), one_of=False))
    yield rule("ioprio_set", Test(1, (1,)))


_SHARED = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "openat2": 437,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "memfd_secret": 447,
    "process_mrelease": 448,
    "set_mempolicy_home_node": 450,
    "fchmodat2": 452,
    "statmount": 457,
    "listmount": 458,
    "open_tree_attr": 467,
}
"""Calls since Linux 5.1 have one number everywhere."""


def _numbers(text: str) -> dict[str, int]:
    pairs = (pair.split("=") for pair in text.split())
    return {**{name: int(number) for name, number in pairs}, **_SHARED}


X86_64 = Machine(
    "x86_64",
    0xC000003E,
    0x40000000,
    _numbers("""
open=2 ioctl=16 socket=41 socketpair=53 clone=56 mkdir=83 creat=85 chmod=90 fchmod=91 ptrace=101 syslog=103 mknod=133
uselib=134 personality=135 ustat=136 sysfs=139 vhangup=153 modify_ldt=154 pivot_root=155 _sysctl=156 adjtimex=159 chroot=161
acct=163 settimeofday=164 mount=165 umount2=166 swapon=167 swapoff=168 reboot=169 sethostname=170 setdomainname=171 iopl=172
ioperm=173 create_module=174 init_module=175 delete_module=176 get_kernel_syms=177 query_module=178 quotactl=179 nfsservctl=180
lookup_dcookie=212 clock_settime=227 mbind=237 set_mempolicy=238 get_mempolicy=239 kexec_load=246 add_key=248 request_key=249
keyctl=250 migrate_pages=256 openat=257 mkdirat=258 mknodat=259 fchmodat=268 unshare=272 vmsplice=278 move_pages=279
perf_event_open=298 fanotify_init=300 fanotify_mark=301 name_to_handle_at=303 open_by_handle_at=304 clock_adjtime=305 setns=308
process_vm_readv=310 process_vm_writev=311 kcmp=312 finit_module=313 kexec_file_load=320 bpf=321 userfaultfd=323
setpriority=141 sched_setparam=142 sched_setscheduler=144 sched_setaffinity=203 ioprio_set=251 prlimit64=302 sched_setattr=314
"""),
)

AARCH64 = Machine(
    "aarch64",
    0xC00000B7,
    None,
    _numbers("""
lookup_dcookie=18 ioctl=29 mknodat=33 mkdirat=34 umount2=39 mount=40 pivot_root=41 nfsservctl=42 chroot=51 fchmod=52 fchmodat=53
openat=56 vhangup=58 quotactl=60 vmsplice=75 acct=89 personality=92 unshare=97 kexec_load=104 init_module=105 delete_module=106
clock_settime=112 syslog=116 ptrace=117 reboot=142 sethostname=161 setdomainname=162 settimeofday=170 adjtimex=171 socket=198
socketpair=199 add_key=217 request_key=218 keyctl=219 clone=220 swapon=224 swapoff=225 mbind=235 get_mempolicy=236
set_mempolicy=237 migrate_pages=238 move_pages=239 perf_event_open=241 fanotify_init=262 fanotify_mark=263 name_to_handle_at=264
open_by_handle_at=265 clock_adjtime=266 setns=268 process_vm_readv=270 process_vm_writev=271 kcmp=272 finit_module=273 bpf=280
userfaultfd=282 kexec_file_load=294
setpriority=140 sched_setparam=118 sched_setscheduler=119 sched_setaffinity=122 ioprio_set=30 prlimit64=261 sched_setattr=274
"""),
)

MACHINES = (X86_64, AARCH64)
