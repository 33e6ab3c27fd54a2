"""A5: files that steer coding agents: hidden text, instructions from elsewhere, words of uploading, wider permissions. Pure."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from bot.audit.facts import RepositoryFacts, Snapshot, SourceFile
from bot.audit.findings import Finding, Severity, unknown, unread
from bot.policy.contents import flags_of_content
from bot.policy.limits import Limits
from bot.policy.paths import is_agent_instruction

_FETCH = re.compile(
    r"\b(?:curl|wget|iwr|irm|Invoke-(?:WebRequest|RestMethod)|npx|uvx|pipx\s+run)\b[^\n]{0,200}?https?://"
    r"|\b(?:follow|read|load|fetch|download|obey|import)\b[^\n]{0,80}\b(?:instructions?|rules?|prompts?|skills?|guidelines?)\b[^\n]{0,80}https?://"
    r"|https?://\S{1,200}\s[^\n]{0,80}\b(?:and|then)\s+(?:follow|obey|execute|run)\b",
    re.IGNORECASE,
)
_UPLOAD = re.compile(
    r"\bupload(?:s|ed|ing)?\b|\bgists?\b|\bimage\s+host|\b(?:imgur|imgbb|postimages?|catbox|pastebin)\b"
    r"|\b(?:0x0\.st|transfer\.sh|file\.io|webhook\.site|litterbox)\b",
    re.IGNORECASE,
)
_TOOLS = re.compile(r"^allowed-tools\s*:[^\n]*(?:\*|\bBash\b(?!\())", re.MULTILINE | re.IGNORECASE)
_HIDDEN = frozenset({"hidden_characters", "tag_characters"})
_BYPASS = frozenset(
    {
        ("defaultmode", "bypasspermissions"),
        ("approval_policy", "never"),
        ("sandbox_mode", "danger-full-access"),
        ("permission_mode", "bypasspermissions"),
    }
)
_SWITCHES = frozenset(
    {
        "bypasspermissions",
        "dangerouslyskippermissions",
        "enableallprojectmcpservers",
        "autoapprove",
        "autoapproveall",
        "yolo",
    }
)
_WIDENING = frozenset({"allow", "allowedtools", "hooks", "mcpservers", "mcp_servers"})


def check(snapshot: Snapshot) -> Iterator[Finding]:
    """A5 over every repository. Unread listings of files are told by this check too: what steers agents may be among the rest."""
    for facts in snapshot.repositories.value:
        yield from unread("A5", facts.name, facts.files)
        for file in facts.files.value:
            if is_agent_instruction(file.path):
                yield from _of_file(facts, file)


def changed(snapshot: Snapshot, last: Mapping[str, str]) -> Iterator[Finding]:
    """Files that are not as they were in an earlier report."""
    for name, blob in instruction_files(snapshot).items():
        if last.get(name) != blob:
            what = "is new" if name not in last else f"was {last[name][:12]}, is {blob[:12]}"
            yield Finding(
                "A5", Severity.LOW, name, f"{what} since the last report", "Read what changed; agents follow it."
            )


def instruction_files(snapshot: Snapshot) -> Mapping[str, str]:
    """Their ids by `repository:path`, for the next report to compare."""
    return {
        f"{facts.name}:{file.path}": file.blob
        for facts in snapshot.repositories.value
        for file in facts.files.value
        if is_agent_instruction(file.path)
    }


def _of_file(facts: RepositoryFacts, file: SourceFile) -> Iterator[Finding]:
    where = f"{facts.name}:{file.path}"
    text = file.text.value
    if text is None:
        yield unknown("A5", where, file.text.fault or "it was not read")
        return
    flags = flags_of_content(file.path, b"", text.encode("utf-8", "surrogatepass"), Limits())
    if any(flag.name in _HIDDEN for flag in flags):
        yield Finding(
            "A5",
            Severity.HIGH,
            where,
            "holds characters that people do not see",
            "Remove them: agents read and obey them.",
        )
    for pattern, severity, what, fix in (
        (_FETCH, Severity.HIGH, "has agents fetch from elsewhere", "Keep the text here, at a reviewed commit."),
        (_UPLOAD, Severity.MEDIUM, "speaks of uploading", "Agents should store nothing outside the repository."),
        (_TOOLS, Severity.MEDIUM, "widens what agents may", "Name the few commands that are needed."),
    ):
        found = pattern.search(text)
        if found:
            line = text.count("\n", 0, found.start()) + 1
            yield Finding("A5", severity, where, f"line {line} {what}: {_shown(found[0])}", fix)
    yield from _settings(where, file.path, text)


def _settings(where: str, path: str, text: str) -> Iterator[Finding]:
    kind = path.rpartition(".")[2].lower()
    if kind not in {"json", "toml"}:
        return
    try:
        told = json.loads(text) if kind == "json" else tomllib.loads(text)
        wider = tuple(dict.fromkeys(_wider(told, "")))
    except (ValueError, RecursionError):
        yield unknown("A5", where, "it cannot be parsed", "Correct the file: nobody can say what it allows.")
        return
    for severity, what in wider:
        yield Finding(
            "A5", severity, where, what, "Remove it from the repository; people allow this on their own machines."
        )


def _wider(told: Any, place: str) -> Iterator[tuple[Severity, str]]:
    """Settings by which an agent asks less and may more, at any depth."""
    if isinstance(told, list):
        for one in told:
            yield from _wider(one, place)
    if not isinstance(told, dict):
        return
    for name, value in told.items():
        key, here = str(name).lower(), f"{place}.{name}".strip(".")
        if (isinstance(value, str) and (key, value.lower()) in _BYPASS) or (key in _SWITCHES and value):
            yield Severity.HIGH, f"{here} = {_shown(json.dumps(value, default=str))} takes the questions away"
        elif key in _WIDENING and value:
            yield Severity.MEDIUM, f"{here} widens what agents may or starts programs"
        else:
            yield from _wider(value, here)


def _shown(text: str) -> str:
    return "".join(letter if letter.isprintable() else "·" for letter in text[:80])
