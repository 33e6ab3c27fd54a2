"""The audit over whole organisations: what is wrong is found, what is not is silent, what cannot be read is neither (U01)."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Sequence
from pathlib import Path

from bot.audit import report, run
from bot.audit.checks import CHECKS, Audit
from bot.audit.facts import Host
from bot.audit.findings import Severity
from bot.audit.operator import PinEntry
from bot.commands import audit as command
from bot.providers.organisation import github
from bot.providers.organisation.port import Organisation, Read
from tests.attacks import audit_world
from tests.attacks.audit_world import CLEAN, HELD, HOLED, SEEDED, UNSEEN, look
from tests.attacks.conftest import Control
from tests.contracts.github_world import HOME, hub

HELLO, WORKFLOW = "octo-org/hello", "octo-org/hello:.github/workflows/test.yml"
H, M, L = Severity.HIGH, Severity.MEDIUM, Severity.LOW
WRONG = (
    ("A1", M, "gist", "pictures"),
    ("A1", M, "octo-dev/assets-pr", "named like a store of pictures"),
    ("A1", M, "octo-gone/old", "nothing but pictures"),
    ("A2", M, HELLO, "octo-gone/hello is a fork of somebody who left"),
    ("A2", H, "octo-org/vault", "octo-dev/vault is a public fork of a private repository"),
    ("A3", H, HELLO, "octo-dev made it public"),
    ("A3", M, "octo-org/vault", "was created by octo-agent"),
    ("A4", H, "octo-org", "octo-gone left and is an outside collaborator"),
    ("A4", H, "octo-org", "octo-gone left and has an authorised personal access token"),
    ("A4", H, HELLO, "deploy key “old” writes and was added by octo-gone"),
    ("A5", H, f"{HELLO}:AGENTS.md", "characters that people do not see"),
    ("A5", H, f"{HELLO}:CLAUDE.md", "line 1 has agents fetch from elsewhere"),
    ("A5", M, f"{HELLO}:skills/shots/SKILL.md", "line 1 speaks of uploading: gist"),
    ("A5", H, f"{HELLO}:.claude/settings.json", "permissions.defaultMode"),
    ("A5", M, f"{HELLO}:.claude/settings.json", "hooks widens"),
    ("A6", H, "pin loose", "is pinned to v1"),
    ("A7", H, "pin disguised", "a branch or tag is named like a commit"),
    ("A7", H, "pin foreign", "no branch or tag of it leads to"),
    ("A8", M, WORKFLOW, "uses actions/checkout@v4"),
    ("A8", H, WORKFLOW, "checks out the head of a pull request"),
    ("A8", H, WORKFLOW, "puts text of an event into a script"),
    ("A8", L, WORKFLOW, "persist-credentials"),
    ("A8", H, WORKFLOW, "push runs it on agent/* before anybody approved, with DEPLOY"),
    ("A9", M, "git", "is 1:2.39.5-0+deb12u2, the floor is 1:2.39.5-0+deb12u3"),
    ("A10", M, f"{HELLO}:main", "a push leaves approvals standing"),
    ("A10", M, f"{HELLO}:main", "whoever pushed last may approve"),
    ("A10", L, f"{HELLO}:main", "code owners need not review"),
    ("A10", H, f"{HELLO}:main", "pullwright/gate is no required check"),
    ("A10", H, f"{HELLO}:main", "the App may bypass ruleset"),
    ("A10", M, f"{HELLO}:agent/**", "people may create or push"),
    ("A10", H, "octo-org/vault:main", "no pull request is required"),
    ("A11", H, "octo-org, App pullwright", "has administration:write"),
    ("A11", L, "octo-org, App pullwright", "is sent release"),
    ("A11", M, "octo-org, App stranger", "on no list"),
    ("A12", M, f"{HELLO}:agent/1-x", "is by octo-dev"),
    ("A12", H, f"{HELLO}#12", "no commit of main since the approval has the approved tree"),
    ("A13", M, f"{HELLO}#12", "octo-gone approved it and has read there now"),
    ("A13", L, f"{HELLO}#12", "octo-gone asked for the work and approved it"),
    ("A14", H, "log of approvals", "row 1 does not follow"),
    ("A14", H, "task:", "the log has no approval of it"),
    ("A14", L, "deliveries", "the clock went back"),
    ("A15", H, "sandboxes", "a sandbox reached the network"),
    ("A15", M, "egress list", "github.com:443"),
    ("A16", H, "careless", "core.fsmonitor = touch marker"),
    ("A17", M, "issues/1", "octo-agent shows ![shot]("),
)
LIMIT = "limits how much this token may ask"
UNREAD = (
    ("A1", "octo-org", LIMIT),
    ("A1", "octo-gone", LIMIT),
    ("A1", "octo-agent", LIMIT),
    ("A2", HELLO, LIMIT),
    ("A3", "octo-org, audit log", LIMIT),
    ("A4", "octo-org, members", LIMIT),
    ("A4", "octo-org, outside collaborators", LIMIT),
    ("A4", "octo-org, authorised credentials", LIMIT),
    ("A4", f"{HELLO}, deploy keys", LIMIT),
    ("A5", HELLO, LIMIT),
    ("A7", "pin gone", "neither an https address nor a local repository"),
    ("A8", HELLO, LIMIT),
    ("A9", "git", "nobody looked"),
    ("A10", f"{HELLO}:main", LIMIT),
    ("A10", f"{HELLO}:agent/**", LIMIT),
    ("A11", "octo-org", LIMIT),
    ("A12", f"{HELLO}:agent/**", LIMIT),
    ("A12", f"{HELLO}#12", LIMIT),
    ("A13", f"{HELLO}#12, octo-dev", LIMIT),
    ("A15", "sandboxes of this machine", "bubblewrap is not installed here"),
    ("A16", "missing/config", "no working copy"),
    ("A17", HELLO, LIMIT),
)
NO_RIGHT = "403 Resource not accessible by personal access token"
REFUSED = (
    ("A0", "octo-org", "whether these 1 are all: GitHub does not tell this token how many"),
    ("A3", "octo-org, audit log", NO_RIGHT),
    ("A4", "octo-org, outside collaborators", NO_RIGHT),
    ("A4", "octo-org, authorised credentials", NO_RIGHT),
    ("A4", f"{HELLO}, deploy keys", NO_RIGHT),
    ("A5", HELLO, NO_RIGHT),
    ("A8", HELLO, NO_RIGHT),
    ("A10", f"{HELLO}:main, who may bypass ruleset", "GitHub tells it only to a token that may change the ruleset"),
    ("A11", "octo-org", NO_RIGHT),
    ("A12", f"{HELLO}:agent/**", NO_RIGHT),
    ("A14", "store", "the store cannot serve"),
)


async def test_u01_nothing_wrong_is_silence(tmp_path: Path):
    async with hub(CLEAN) as world:
        number = world.endpoint.repositories[0].id
        tree = (await world.ask("GET", f"{HOME}/commits/main", "octo-admin")).json()["commit"]["tree"]["sha"]
        url = await audit_world.store_of(tmp_path, number, tree, reviewer="octo-dev", wrong=False)
        tidy = await audit_world.upstream(tmp_path / "tidy", disguised=False)
        copy = await audit_world.working_copy(tmp_path / "copy")
        here = await audit_world.around(tmp_path, url, HELD, pins=(tidy,), copies=(copy,))
        found = await look(world, "octo-admin", here)
    assert told(found) == ""
    assert report.exit_code(found) == 0
    assert found.checked == tuple(check.id for check in CHECKS) == tuple(f"A{number}" for number in range(1, 18))


async def test_u01_everything_wrong_is_found_and_nothing_else(tmp_path: Path, control: Control):
    async with hub(SEEDED) as world:
        number = world.endpoint.repositories[0].id
        made = await world.commit({"x": "x"}, parent=await world.tip(), token="octo-dev")
        assert (await world.branch("agent/1-x", made, "octo-dev")).status_code == 201
        url = await audit_world.store_of(tmp_path, number, "4" * 40, reviewer="octo-gone", wrong=True)
        tidy = await audit_world.upstream(tmp_path / "tidy", disguised=False)
        pins = (
            tidy.model_copy(update={"name": "loose", "commit": "v1"}),
            await audit_world.upstream(tmp_path / "disguised", disguised=True),
            tidy.model_copy(update={"name": "foreign", "commit": "f" * 40}),
        )
        copy = await audit_world.working_copy(tmp_path / "careless", "core.fsmonitor")
        here = await audit_world.around(tmp_path, url, HOLED, pins=pins, copies=(copy,))
        found = await look(world, "octo-admin", here)
    matched(WRONG, found)
    control(
        {one.check for one in found.findings} == {check.id for check in CHECKS}, "every check has something to find"
    )
    assert report.exit_code(found) == 6


async def test_u01_what_cannot_be_read_is_told_and_never_clean(tmp_path: Path):
    """GitHub limits everything but the list of repositories; an upstream and a copy are not there, and no bubblewrap."""
    async with hub(CLEAN) as world:
        number = world.endpoint.repositories[0].id
        url = await audit_world.store_of(tmp_path, number, "4" * 40, reviewer="octo-dev", wrong=False)
        gone = PinEntry(name="gone", repository=str(tmp_path / "gone"), commit="a" * 40, owner="octo", tree="b" * 40)
        host = Host(Read("", "bubblewrap is not installed here"))
        here = await audit_world.around(tmp_path, url, host, pins=(gone,), copies=(tmp_path / "missing",))
        await world.fault(kind="primary", path=r"^/(repos|users)/|^/orgs/octo-org/(?!repos)", times=1000)
        found = await look(world, "octo-admin", here)
    matched([(check, Severity.UNKNOWN, target, why) for check, target, why in UNREAD], found)
    assert report.exit_code(found) == 4


async def test_u01_a_token_without_rights_hears_refusals_and_the_report_says_so(tmp_path: Path):
    async with hub(UNSEEN) as world:
        here = await audit_world.around(tmp_path, f"sqlite:///{tmp_path / 'empty.db'}", HELD, pins=(), copies=())
        found = await look(world, "octo-audit", here)
    matched([(check, Severity.UNKNOWN, target, why) for check, target, why in REFUSED], found)
    assert {one.fix for one in found.findings if NO_RIGHT in one.evidence} == {
        "Give the audit's token the right to read it (docs/operating.md lists the rights), or look yourself."
    }


def test_the_audit_can_ask_and_nothing_else():
    """One place sends, and what it sends is a GET; the port has no word for anything that changes."""
    used = {node.attr for node in ast.walk(ast.parse(inspect.getsource(github))) if isinstance(node, ast.Attribute)}
    assert "get" in used
    assert not used & {"post", "put", "patch", "delete", "request", "send", "stream", "build_request", "options"}
    words = {name.partition("_")[0] for name, _ in inspect.getmembers(Organisation, inspect.isfunction)}
    assert not words & {"create", "update", "delete", "add", "remove", "set", "write", "merge", "post", "put"}
    assert not re.search(r"private_key|AppCredentials|webhook_secret", inspect.getsource(command))


async def test_all_that_an_audit_sends_is_get():
    async with hub(SEEDED) as world:
        await look(world, "octo-admin", run.Here(manifest=audit_world.MANIFEST))
        asked = world.endpoint.world.journal.entries()
    assert len(asked) > 40
    assert {entry["method"] for entry in asked} == {"GET"}


def matched(expected: Sequence[tuple[str, Severity, str, str]], audit: Audit) -> None:
    """Each of these once, and nothing else."""
    left = list(audit.findings)
    for check, severity, target, evidence in expected:
        fits = [
            one
            for one in left
            if (one.check, one.severity) == (check, severity) and target in one.target and evidence in one.evidence
        ]
        assert len(fits) == 1, f"{check} {target}: {evidence}\n{told(audit)}"
        left.remove(fits[0])
    assert left == []


def told(audit: Audit) -> str:
    return "\n".join(f"{one.check} {one.severity.name} {one.target}: {one.evidence}" for one in audit.findings)
