"""A small assembler for seccomp's classic BPF: rules in, instructions out. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_LOAD, _EQUAL, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_FORM = struct.Struct("<HBBI")

Instruction = tuple[int, int, int, int]
"""Code, how far to jump when true, when false, and the constant."""


@dataclass(frozen=True, slots=True)
class Test:
    """A question about the low 32 bits of one argument: all that the kernel reads of the arguments asked about here.

    With `mask` the argument is cut to these bits first. `one_of`: it equals one of the values; otherwise: it equals none.
    """

    argument: int
    values: tuple[int, ...]
    mask: int | None = None
    one_of: bool = True


@dataclass(frozen=True, slots=True)
class Bits:
    """Any of these bits is set in the argument."""

    argument: int
    bits: int


@dataclass(frozen=True, slots=True)
class Rule:
    """Answer `errno` to the call of this number when every condition holds."""

    number: int
    errno: int
    conditions: tuple[Test | Bits, ...] = ()


def assemble(architecture: int, rules: Iterable[Rule], *, foreign_bit: int | None = None) -> tuple[Instruction, ...]:
    """The filter: another architecture's calls kill, `foreign_bit` in a number is ENOSYS, no rule means allow."""
    out: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if foreign_bit is not None:
        out += [(_ANY_BIT, 0, 1, foreign_bit), (_RETURN, 0, 0, _ERRNO | 38)]
    for rule in rules:
        out += _block(rule)
    return (*out, (_RETURN, 0, 0, _ALLOW))


def _block(rule: Rule) -> list[Instruction]:
    """`if number == …: if all conditions: return errno; load the number again`."""
    refuse: Instruction = (_RETURN, 0, 0, _ERRNO | rule.errno)
    if not rule.conditions:
        return [(_EQUAL, 0, 1, rule.number), refuse]
    tail: list[Instruction] = [refuse, (_LOAD, 0, 0, _NUMBER)]
    for condition in reversed(rule.conditions):
        tail = [*_condition(condition, miss=len(tail) - 1), *tail]
    return [(_EQUAL, 0, len(tail), rule.number), *tail]


def _condition(condition: Test | Bits, *, miss: int) -> list[Instruction]:
    """Falls through when it holds; otherwise jumps over `miss` instructions that follow, to the reload."""
    load: Instruction = (_LOAD, 0, 0, _ARGUMENTS + 8 * condition.argument)
    if isinstance(condition, Bits):
        return [load, (_ANY_BIT, 0, miss, condition.bits)]
    head = [load] if condition.mask is None else [load, (_AND, 0, 0, condition.mask)]
    last = len(condition.values) - 1
    body: list[Instruction] = []
    for place, value in enumerate(condition.values):
        after = last - place
        if condition.one_of:
            body.append((_EQUAL, after, miss if place == last else 0, value))
        else:
            body.append((_EQUAL, after + miss, 0, value))
    return head + body


def encode(instructions: Sequence[Instruction]) -> bytes:
    """As the kernel takes it."""
    return b"".join(_FORM.pack(*instruction) for instruction in instructions)
