"""A16: what a working copy's .git would make git do. The file is parsed here: git itself obeys it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.audit.facts import Snapshot, WorkingCopy
from bot.audit.findings import Finding, Severity, unknown, unread

_HEADER = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:\\.|[^"\\])*)")?\s*\]\s*')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?", re.DOTALL)
_RUNS = re.compile(
    r"core\.(?:fsmonitor|hookspath|sshcommand|gitproxy|pager|editor|askpass|attributesfile|alternaterefscommand)|sequence\.editor"
    r"|pager\..+|diff\.external|(?:diff|difftool|mergetool|merge)\..+\.(?:textconv|command|cmd|driver|path)|filter\..+\.(?:clean|smudge|process)"
    r"|credential\.(?:.+\.)?helper|gpg\.(?:.+\.)?(?:program|defaultkeycommand)|alias\..+|include\.path|includeif\..+\.path"
    r"|extensions\.(?:worktreeconfig|partialclone)|url\..+\.(?:insteadof|pushinsteadof)|protocol\.(?:.+\.)?allow"
    r"|remote\..+\.(?:uploadpack|receivepack|vcs|promisor|proxy)|submodule\..+\.update|uploadpack\.packobjectshook"
    r"|interactive\.difffilter|trailer\..+\.(?:command|cmd)|tar\..+\.command|init\.templatedir|sendemail\..+cmd|log\.showsignature"
)
"""Keys by which git starts a program, reads another file or goes elsewhere (specs/security.md §2.2)."""
_OUTSIDE = re.compile(
    r"core\.worktree|commit\.template|core\.excludesfile|diff\.orderfile|http\.(?:.+\.)?(?:savecookies|cookiefile)"
)
"""Keys by which git reads or writes outside of the copy."""
_HARMLESS = frozenset(
    {
        ("core.fsmonitor", "false"),
        ("filter.lfs.clean", "git-lfs clean -- %f"),
        ("filter.lfs.smudge", "git-lfs smudge -- %f"),
        ("filter.lfs.process", "git-lfs filter-process"),
        ("log.showsignature", "false"),
        ("extensions.worktreeconfig", "false"),
    }
)


def check(snapshot: Snapshot) -> Iterator[Finding]:
    """A16 over the working copies that the operator named."""
    for copy in snapshot.copies or ():
        yield from _of_copy(copy)


def _of_copy(copy: WorkingCopy) -> Iterator[Finding]:
    for name, text in copy.configs:
        where = f"{copy.path}/{name}"
        if text.value is None:
            yield unknown("A16", where, text.fault or "it was not read", "Look yourself, and run no git there before.")
            continue
        try:
            entries = tuple(read_config(text.value))
        except ValueError as fault:
            yield unknown("A16", where, str(fault), "Look yourself, and run no git there before.")
            continue
        for key, value in entries:
            if (key, value) in _HARMLESS:
                continue
            if _RUNS.fullmatch(key) and not (key.startswith("submodule.") and not value.startswith("!")):
                yield Finding("A16", Severity.HIGH, where, f"{key} = {value[:100]}", _FIX)
            elif _OUTSIDE.fullmatch(key):
                yield Finding("A16", Severity.MEDIUM, where, f"{key} = {value[:100]}", _FIX)
    yield from unread("A16", f"{copy.path}/hooks", copy.hooks)
    for hook in copy.hooks.value:
        yield Finding(
            "A16", Severity.HIGH, f"{copy.path}/hooks", f"{hook} is run by git", "Remove the hook, or the copy."
        )


_FIX = "Remove the key, unless you set it yourself; until then run no git in this copy."


def read_config(text: str) -> Iterator[tuple[str, str]]:
    """Keys as git names them, section and name in lower case, with their values. Raises ValueError where git would refuse."""
    section = ""
    for number, line in _lines(text.removeprefix("\ufeff")):
        at = len(line) - len(line.lstrip())
        while header := _HEADER.match(line, at):
            below = "" if header[2] is None else "." + re.sub(r"\\(.)", r"\1", header[2])
            section, at = header[1].lower() + below, header.end()
        rest = line[at:].rstrip()
        if not rest or rest[0] in "#;":
            continue
        key = _KEY.fullmatch(rest)
        if key is None or not section:
            raise ValueError(f"line {number} is nothing that git reads")
        yield f"{section}.{key[1]}".lower(), "true" if key[2] is None else _value(key[2], number)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines; one that ends with an odd number of backslashes goes on in the next."""
    whole, began = "", 1
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.removesuffix("\r")
        began = began if whole else number
        if (len(bare) - len(bare.rstrip("\\"))) % 2:
            whole += bare[:-1]
            continue
        yield began, whole + bare
        whole = ""
    if whole:
        yield began, whole


def _value(text: str, number: int) -> str:
    """Quotes, escapes and comments as git takes them."""
    out, quoted, at = [], False, 0
    while at < len(text):
        letter = text[at]
        if letter == "\\":
            follower = text[at + 1 : at + 2]
            if follower not in {"\\", '"', "n", "t", "b"}:
                raise ValueError(f"line {number} has an escape that git does not know")
            out.append({"n": "\n", "t": "\t", "b": "\b"}.get(follower, follower))
            at += 2
            continue
        if letter == '"':
            quoted = not quoted
        elif letter in "#;" and not quoted:
            break
        else:
            out.append(letter)
        at += 1
    if quoted:
        raise ValueError(f"line {number} has a quote that does not end")
    return "".join(out).strip()
