"""Commit objects: read, written, and signed the way GitHub signs what it creates for an App."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

from bot.emulators.github.gitside.bare import Bare

_KEY = b"stand-in web-flow"


@dataclass(frozen=True, slots=True)
class Identity:
    name: str
    email: str
    date: datetime

    def line(self) -> str:
        offset = self.date.strftime("%z") or "+0000"
        return f"{_clean(self.name)} <{_clean(self.email)}> {int(self.date.timestamp())} {offset}"


@dataclass(frozen=True, slots=True)
class Commit:
    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Identity
    committer: Identity
    message: str
    signature: str | None
    payload: str

    @property
    def verified(self) -> bool:
        """Whether the stand-in itself signed exactly these bytes."""
        return self.signature is not None and hmac.compare_digest(self.signature, _signature(self.payload))


@dataclass(frozen=True, slots=True)
class Draft:
    """A commit about to be written."""

    tree: str
    parents: tuple[str, ...]
    message: str
    author: Identity
    committer: Identity
    signature: str | None = None
    sign: bool = False


async def write_commit(bare: Bare, draft: Draft) -> str:
    """Store the commit; with `sign` it carries a signature header, so no client can predict its id."""
    headers = [f"tree {draft.tree}", *(f"parent {parent}" for parent in draft.parents)]
    headers += [f"author {draft.author.line()}", f"committer {draft.committer.line()}"]
    payload = "\n".join(headers) + f"\n\n{draft.message}"
    signature = _signature(payload) if draft.sign else draft.signature
    if signature:
        folded = signature.rstrip("\n").replace("\n", "\n ")
        headers.append(f"gpgsig {folded}")
        payload = "\n".join(headers) + f"\n\n{draft.message}"
    return await bare.write("commit", payload.encode("utf-8", "surrogateescape"))


async def read_commits(bare: Bare, shas: Sequence[str]) -> list[Commit]:
    """Several commits with one process, in the order asked."""
    if not shas:
        return []
    stream = (await bare.run("cat-file", "--batch", stdin="".join(f"{sha}\n" for sha in shas).encode())).stdout
    found: list[Commit] = []
    while stream:
        header, stream = stream.split(b"\n", 1)
        sha, _, size = header.decode().split()
        found.append(_parse(sha, stream[: int(size)].decode("utf-8", "surrogateescape")))
        stream = stream[int(size) + 1 :]
    return found


async def read_commit(bare: Bare, sha: str) -> Commit:
    return (await read_commits(bare, [sha]))[0]


def web_flow(moment: datetime) -> Identity:
    """The committer of everything that GitHub itself writes."""
    return Identity("GitHub", "noreply@github.com", moment)


def _signature(payload: str) -> str:
    mac = hmac.new(_KEY, payload.encode("utf-8", "surrogateescape"), hashlib.sha512).digest()
    return f"-----BEGIN PGP SIGNATURE-----\n\n{base64.b64encode(mac).decode()}\n-----END PGP SIGNATURE-----\n"


def _clean(text: str) -> str:
    return "".join(c for c in text if c not in "<>\n").strip() or "unknown"


def _parse(sha: str, raw: str) -> Commit:
    head, _, message = raw.partition("\n\n")
    fields: dict[str, list[str]] = {}
    kept: list[str] = []
    signed = False
    for line in head.split("\n"):
        if line.startswith(" "):
            if signed:
                fields["gpgsig"][-1] += "\n" + line[1:]
                continue
        else:
            name, _, value = line.partition(" ")
            signed = name == "gpgsig"
            fields.setdefault(name, []).append(value)
        if not signed:
            kept.append(line)
    signature = fields.get("gpgsig")
    return Commit(
        sha=sha,
        tree=fields["tree"][0],
        parents=tuple(fields.get("parent", ())),
        author=_identity(fields["author"][0]),
        committer=_identity(fields["committer"][0]),
        message=message,
        signature=signature[0] + "\n" if signature else None,
        payload="\n".join(kept) + f"\n\n{message}",
    )


def _identity(line: str) -> Identity:
    name, _, rest = line.partition(" <")
    email, _, moment = rest.partition("> ")
    seconds, _, offset = moment.partition(" ")
    sign = -1 if offset.startswith("-") else 1
    digits = offset.lstrip("+-") or "0000"
    zone = timezone(sign * timedelta(hours=int(digits[:2]), minutes=int(digits[2:4])))
    when = datetime.fromtimestamp(int(seconds), UTC)
    return Identity(name, email, when.astimezone(zone))
