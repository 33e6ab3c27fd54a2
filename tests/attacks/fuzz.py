"""Result streams with structured damage, by seed, and what may never happen to one: `python -m tests.attacks.fuzz N [--first SEED]`.

Each input is read and judged by the importer's own functions. Whatever it accepts is encoded again by `forging`, which shares no code with
the reader: the bytes must be the very same, so nothing of a damaged stream was overlooked; and a plain reading of the paths by the
operating system's rules must find them inside the tree and out of `.git`. A naive reader goes along as the control: it believes lengths,
reads to where the bytes end, and joins paths. Prints one JSON object last.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import struct
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from bot.custody.faults import LineFault
from bot.custody.importer import judge
from bot.custody.inside.disk import object_id
from bot.custody.result import Limits, Result, parse
from bot.domain.change import FileMode, TreeEntry
from bot.domain.ids import BlobId, TreeId
from tests.unit.custody.forging import NONCE, Forged, Stream, sealed

LIMITS = Limits(file_bytes=2000, total_bytes=8000, paths=30)
BASE = {
    "a.txt": ("100644", object_id(b"blob", b"a\n")),
    "src/b.py": ("100644", object_id(b"blob", b"b\n")),
    "Docs/Read.md": ("100755", object_id(b"blob", b"r\n")),
    "caf\u00e9.txt": ("100644", object_id(b"blob", b"c\n")),
    "deep/er/z": ("100644", object_id(b"blob", b"z\n")),
    "link": ("120000", object_id(b"blob", b"deep/er")),
    "vendor/sub": ("160000", "1" * 40),
}
LINKS = {"link": "deep/er"}
ENTRIES = tuple(TreeEntry(path, FileMode(mode), BlobId(blob)) for path, (mode, blob) in BASE.items())
STREAM = Stream(TreeId("b" * 40), BASE)

_PLAIN = (
    "x",
    "new.py",
    "src",
    "deep",
    "er",
    "b",
    "README",
    "ünï",
    "日本",
    "a b",
    ".hidden",
    "git",
    "gitx",
    "x.git",
    "...",
    "-rf",
)
_NASTY = (
    *(
        "..",
        ".",
        "",
        ".git",
        ".GIT",
        "git~1",
        "GIT~2",
        ".git ",
        ".git.",
        ".g\u200cit",
        "\uff0egit",
        ".git::$DATA",
        "gi7eba~1",
    ),
    *(
        "con",
        "AUX.txt",
        "x\\y",
        "C:",
        "x\n",
        "x\0",
        "\u202e",
        "\U000e0041",
        "x.",
        "x ",
        "A.TXT",
        "SRC",
        "vendor",
        "sub",
        "link",
    ),
    *("x" * 300, "/etc", "~", "cafe\u0301.txt", "\ud800", "a.txt"),
)
_MODES = ("100644", "100755", "120000")
_ODD_MODES = ("104755", "040755", "160000", "010644", "020644", "100664", "nested", "", "1" * 40, "٣")
_TARGETS = (
    b"x",
    b"../a.txt",
    b"deep/er",
    b"../../x",
    b"/etc/passwd",
    b".git/config",
    b"link",
    b"..",
    b"",
    b"\xff",
    b"a/../../..",
    b"link/..",
)


@dataclass(frozen=True)
class Case:
    """One input; `honest` ones have to be accepted."""

    stream: bytes
    honest: bool = False


def case(seed: int) -> Case:
    """The input of this seed."""
    chance = random.Random(seed)
    if chance.random() < 0.1:
        return Case(_honest(chance), honest=True)
    puts = [
        _put(chance) for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 3, 5) if chance.random() < 0.98 else (31, 40)))
    ]
    removed = [chance.choice((*BASE, "ghost", _path(chance))) for _ in range(chance.choice((0, 0, 0, 1, 2)))]
    body = _body(chance, puts, removed)
    for _ in range(chance.choice((0, 0, 1, 2))):
        body = chance.choice(_DAMAGES)(chance, body)
    if chance.random() < 0.8:
        return Case(sealed(body))
    stream = sealed(body)
    return Case(chance.choice(_DAMAGES)(chance, stream) if chance.random() < 0.8 else body)


def _honest(chance: random.Random) -> bytes:
    puts = [
        Forged(
            f"new/{number}/{chance.choice(_PLAIN[:4])}{number}",
            chance.randbytes(chance.randrange(50)),
            chance.choice(_MODES[:2]),
        )
        for number in range(chance.randrange(6))
    ]
    removed = chance.sample(["a.txt", "src/b.py"], chance.randrange(3))
    return STREAM.of(*puts, removed=removed)


def _path(chance: random.Random) -> str:
    pool = _NASTY if chance.random() < 0.4 else _PLAIN
    parts = [chance.choice(pool if chance.random() < 0.7 else _PLAIN) for _ in range(chance.choice((1, 1, 2, 3, 45)))]
    return ("/" if chance.random() < 0.03 else "") + "/".join(parts)


def _put(chance: random.Random) -> Forged:
    mode = chance.choice(_ODD_MODES) if chance.random() < 0.03 else chance.choice(_MODES)
    size = chance.choice((1999, 2000, 2001)) if chance.random() < 0.03 else chance.randrange(30)
    data = chance.choice(_TARGETS) if mode == "120000" else chance.randbytes(size)
    path: str | bytes = chance.choice(tuple(BASE)) if chance.random() < 0.2 else _path(chance)
    if chance.random() < 0.03:
        path = chance.randbytes(chance.randrange(1, 12))
    blob = chance.choice(("0" * 40, object_id(b"blob", b"other"))) if chance.random() < 0.02 else None
    return Forged(path, data, mode, blob)


def _body(chance: random.Random, puts: Sequence[Forged], removed: Sequence[str]) -> bytes:
    stream = STREAM
    if chance.random() < 0.01:
        stream = Stream(TreeId("c" * 40), BASE)
    if chance.random() < 0.01:
        stream = Stream(STREAM.base_tree, BASE, nonce="m" * 32)
    tree = chance.choice(("0" * 40, "A" * 40, "é" * 20)) if chance.random() < 0.03 else None
    safe = [path.encode("utf-8", "replace").decode() for path in removed]
    try:
        return stream.body(puts, safe, tree)
    except UnicodeEncodeError:
        return stream.body((), safe, tree)


def _flip(chance: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 3))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _cut(chance: random.Random, data: bytes) -> bytes:
    return data[: chance.randrange(len(data))] or b"x"


def _insert(chance: random.Random, data: bytes) -> bytes:
    at = chance.randrange(len(data) + 1)
    return (
        data[:at]
        + chance.choice((b"\0" * 8, b"P", b"D\0\0\0\1x", b"E", data[at : at + 60], chance.randbytes(5)))
        + data[at:]
    )


def _remove(chance: random.Random, data: bytes) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + data[at + chance.choice((1, 8, 60)) :] or b"x"


def _length(chance: random.Random, data: bytes) -> bytes:
    """Some field of a record says another length."""
    at = data.find(b"P", chance.randrange(len(data)))
    if at < 0 or at + 15 > len(data):
        return _flip(chance, data)
    form, offset = chance.choice(((">H", 1), (">I", 3), (">Q", 7)))
    value = chance.choice((0, 1, 5, 0xFFFF, 2000, 1 << 31, (1 << 63) + 5)) % (1 << (8 * struct.calcsize(form)))
    packed = struct.pack(form, value)
    return data[: at + offset] + packed + data[at + offset + len(packed) :]


def _counts(chance: random.Random, data: bytes) -> bytes:
    at = max(0, len(data) - 48)
    return data[:at] + struct.pack(">II", chance.randrange(4), chance.randrange(4)) + data[at + 8 :]


def _twice(chance: random.Random, data: bytes) -> bytes:
    first, last = sorted((chance.randrange(len(data)), chance.randrange(len(data))))
    return data[:last] + data[first:last] + data[last:]


_DAMAGES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _flip,
    _cut,
    _insert,
    _remove,
    _length,
    _counts,
    _twice,
)


def outcome(given: Case) -> tuple[str, str]:
    """How the importer takes the input, and what is wrong with that (empty: nothing)."""
    try:
        result = parse(given.stream, nonce=NONCE, base_tree=STREAM.base_tree, limits=LIMITS)
        judge(result, ENTRIES, dict(LINKS))
    except LineFault as fault:
        return fault.rule, f"an honest result was refused: {fault}" if given.honest else ""
    except Exception as error:
        return "crash", f"{type(error).__name__}: {error}"
    return "accepted", _overlooked(given.stream, result) or next(_escapes(result), "")


def _overlooked(stream: bytes, result: Result) -> str:
    puts = [
        Forged(put.path.encode("utf-8", "surrogateescape"), put.data, put.mode.value, put.blob) for put in result.puts
    ]
    parts = {
        b"P": [put.record() for put in puts],
        b"D": [path.encode("utf-8", "surrogateescape") for path in result.removed],
    }
    records = parts[b"P"] + [b"D" + struct.pack(">I", len(path)) + path for path in parts[b"D"]]
    head = STREAM.body()[: -(1 + 8 + 40)]
    end = b"E" + struct.pack(">II", len(puts), len(result.removed)) + result.tree.encode()
    rebuilt = sorted(records)
    if len(stream) != len(head) + sum(map(len, rebuilt)) + len(end) + 32:
        return "some of its bytes mean nothing"
    if sealed(stream[:-32]) != stream or not stream.startswith(head) or stream[:-32][-len(end) :] != end:
        return "its frame is not what was accepted"
    left = stream[len(head) : -32 - len(end)]
    return "" if all(record in left for record in rebuilt) else "a record is not what was accepted"


def _escapes(result: Result) -> Iterator[str]:
    for put in result.puts:
        if os.path.normpath(f"/root/{put.path}") != f"/root/{put.path}" or "\0" in put.path:
            yield f"{put.path!a} is not a plain path"
        if any(_is_git(part) for part in put.path.split("/")):
            yield f"{put.path!a} is in .git"
        if put.mode is FileMode.SYMLINK:
            target = put.data.decode("utf-8", "surrogateescape")
            place = os.path.normpath(f"/root/{put.path.rpartition('/')[0]}/{target}")
            if target.startswith("/") or not f"{place}/".startswith("/root/") or any(map(_is_git, place.split("/"))):
                yield f"{put.path!a} leads to {target!a}"


def _is_git(part: str) -> bool:
    seen = "".join(each for each in unicodedata.normalize("NFKC", part) if unicodedata.category(each) != "Cf")
    return seen.casefold().split(":")[0].rstrip(" .") == ".git" or seen.casefold() in {"git~1", "git~2"}


def fools_the_naive(stream: bytes) -> bool:
    """Whether a reader that believes what it is told takes a damaged stream for whole, or writes outside of the tree."""
    position, found = len(STREAM.body()) - 49, False
    while stream[position : position + 1] == b"P" and position + 15 <= len(stream):
        mode, path, size = struct.unpack(">HIQ", stream[position + 1 : position + 15])
        name = stream[position + 15 + mode + 40 :][:path]
        position += 15 + mode + 40 + path + size
        inside = os.path.normpath(b"/root/" + name)
        found |= not inside.startswith(b"/root/") or b"/.git" in inside.lower() or position > len(stream)
    return found or stream[position : position + 1] not in {b"E", b"D"}


def chunk(first: int, count: int) -> tuple[Counter[str], int, list[tuple[int, str]]]:
    """The inputs of these seeds: outcomes, how many fooled the naive reader, and what went wrong."""
    outcomes: Counter[str] = Counter()
    fooled, wrong = 0, []
    for seed in range(first, first + count):
        given = case(seed)
        rule, fault = outcome(given)
        outcomes[rule] += 1
        fooled += rule != "accepted" and fools_the_naive(given.stream)
        if fault:
            wrong.append((seed, fault))
    return outcomes, fooled, wrong


def run(first: int, count: int, jobs: int) -> dict[str, object]:
    """All of them, and the report."""
    began = time.monotonic()
    starts = range(first, first + count, 2_000)
    outcomes: Counter[str] = Counter()
    fooled, wrong = 0, []
    with ProcessPoolExecutor(jobs) as pool:
        for some, many, faults in pool.map(chunk, starts, [min(2_000, first + count - start) for start in starts]):
            outcomes += some
            fooled += many
            wrong += faults
    return {
        "fuzz": "importer",
        "inputs": count,
        "seeds": [first, first + count - 1],
        "faults": len(wrong),
        "failing_seeds": dict(wrong[:20]),
        "crashes": outcomes["crash"],
        "accepted": outcomes["accepted"],
        "would_fool_a_naive_reader": fooled,
        "outcomes": dict(outcomes.most_common()),
        "seconds": round(time.monotonic() - began, 1),
    }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args(argv)
    report = run(asked.first, asked.n, asked.jobs)
    print(json.dumps(report))
    return 1 if report["faults"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
