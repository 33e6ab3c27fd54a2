"""A16: keys of a .git/config that make git do something, read as git reads them."""

from __future__ import annotations

import pytest

from bot.audit.facts import WorkingCopy
from bot.audit.findings import Severity
from bot.audit.gitconfig import check, read_config
from bot.providers.organisation.port import Read
from tests.unit.audit.builders import snapshot

USUAL = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
[remote "origin"]
\turl = https://example.org/x.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
[user]
\temail = ada@example.org
[submodule "lib"]
\turl = https://example.org/lib.git
\tupdate = checkout
[filter "lfs"]
\tclean = git-lfs clean -- %f
\tsmudge = git-lfs smudge -- %f
\tprocess = git-lfs filter-process
\trequired = true
"""


def found(text: str | None, fault: str = "") -> list[tuple[Severity, str]]:
    copy = WorkingCopy("/x/.git", (("config", Read(text, fault)),))
    return [(one.severity, one.evidence) for one in check(snapshot(copies=(copy,)))]


def test_a_usual_config_is_silent():
    assert found(USUAL) == []
    assert found("") == []


RUNS = [
    "core.fsmonitor", "core.hooksPath", "core.sshCommand", "core.gitProxy", "core.pager", "pager.log", "core.editor", "diff.external",
    "diff.x.textconv", "diff.x.command", "filter.x.clean", "filter.x.smudge", "filter.x.process", "core.attributesFile", "merge.x.driver",
    "credential.helper", "credential.https://example.org.helper", "core.askPass", "gpg.program", "gpg.ssh.program", "gpg.ssh.defaultKeyCommand",
    "alias.st", "include.path", "includeIf.gitdir:~/x.path", "url.ext::x.insteadOf", "protocol.ext.allow", "remote.origin.uploadpack",
    "remote.origin.receivepack", "remote.origin.vcs", "remote.origin.promisor", "extensions.partialClone", "extensions.worktreeConfig",
    "uploadpack.packObjectsHook", "core.alternateRefsCommand", "interactive.diffFilter", "trailer.x.command", "tar.x.command",
    "difftool.x.cmd", "mergetool.x.cmd", "log.showSignature", "filter.lfs.clean",
]  # fmt: skip


@pytest.mark.parametrize("key", RUNS)
def test_each_key_that_runs_something_is_found(key: str):
    section, _, name = key.rpartition(".")
    first, dot, below = section.partition(".")
    header = f'[{first} "{below}"]' if dot else f"[{first}]"
    ((severity, evidence),) = found(f"{USUAL}{header}\n\t{name} = touch marker\n")
    assert severity is Severity.HIGH
    assert evidence == f"{key.lower()} = touch marker"


@pytest.mark.parametrize(
    "key", ["core.worktree", "commit.template", "core.excludesFile", "diff.orderFile", "http.saveCookies"]
)
def test_each_key_that_leads_outside_is_found(key: str):
    section, _, name = key.partition(".")
    assert [severity for severity, _ in found(f"[{section}]\n{name} = /etc/x\n")] == [Severity.MEDIUM]


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ('[A "B\\"c\\\\"]\nKey=1', [('a.b"c\\.key', "1")]),
        ("[a.b]\nk = v ; comment", [("a.b.k", "v")]),
        ("[a] k = v\n", [("a.k", "v")]),
        ("[a]\nk", [("a.k", "true")]),
        ("[a]\nk = one\\\n two", [("a.k", "one two")]),
        ('[a]\nk = "x # y" z # w', [("a.k", "x # y z")]),
        ('[a]\nk = "a\\tb\\n"', [("a.k", "a\tb")]),
        ("\ufeff[a]\r\nk = v\r\n", [("a.k", "v")]),
        ("# x\n; y\n\n[a]", []),
        ("[core]fsmonitor=x", [("core.fsmonitor", "x")]),
        ('[alias "x"][core]\nfsmonitor = y', [("core.fsmonitor", "y")]),
    ],
)
def test_the_file_is_read_as_git_reads_it(text: str, entries: list[tuple[str, str]]):
    assert list(read_config(text)) == entries


@pytest.mark.parametrize("text", ["k = v", "[a\nk", "[a]\n= v", "[a]\nk = \\q", '[a]\nk = "x', "[a]\n1k = v"])
def test_what_git_would_refuse_is_unknown(text: str):
    assert [severity for severity, _ in found(text)] == [Severity.UNKNOWN]


def test_what_was_not_read_is_unknown_and_a_hook_is_found():
    assert found(None, "it is a link") == [(Severity.UNKNOWN, "could not be read: it is a link")]
    assert found(None) == [(Severity.UNKNOWN, "could not be read: it was not read")]
    hooked = snapshot(copies=(WorkingCopy("/x", hooks=Read(("post-checkout",), "cut")),))
    assert [(one.severity, one.evidence) for one in check(hooked)] == [
        (Severity.UNKNOWN, "could not be read: cut"),
        (Severity.HIGH, "post-checkout is run by git"),
    ]
    assert list(check(snapshot())) == []
