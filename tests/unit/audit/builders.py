"""Snapshots with one thing in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bot.audit.facts import RepositoryFacts, Snapshot, SourceFile
from bot.audit.operator import Operator
from bot.domain.ids import RepositoryId
from bot.providers.organisation.port import Guard, Installation, Read, Repository, RequiredCheck

HOME = Repository(RepositoryId(1), "octo-org/hello", "main", private=True, archived=False)
APP = Installation(7, 411, "pullwright", (("contents", "write"), ("metadata", "read")), ("push",))
GUARD = Guard(
    pull_request=True,
    approvals=1,
    dismiss_stale=True,
    last_push=True,
    code_owners=True,
    checks=(RequiredCheck("pullwright/gate", 411),),
    rulesets=(5,),
)
MANIFEST = ({"contents": "write", "metadata": "read"}, ("push",))
BOTS = Guard(creation=True, update=True)


def facts(**changes: Any) -> RepositoryFacts:
    """A repository with nothing wrong."""
    tidy = RepositoryFacts(HOME, rules=Read(GUARD), bot_rules=Read(BOTS), bypass=((5, Read(())),))
    return replace(tidy, **changes)


def with_file(path: str, text: str | None, fault: str = "") -> RepositoryFacts:
    return facts(files=Read((SourceFile(path, "b" * 40, Read(text, fault)),)))


def snapshot(*repositories: RepositoryFacts, operator: Operator | None = None, **changes: Any) -> Snapshot:
    """An organisation with these repositories."""
    plain = Snapshot(
        "octo-org",
        operator or Operator(),
        repositories=Read(repositories),
        installations=Read((APP,)),
        manifest=MANIFEST,
    )
    return replace(plain, **changes)
