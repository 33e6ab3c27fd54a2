"""GitHub's JSON → the records of the port. Pure; raises KeyError, TypeError, ValueError or AttributeError for what is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bot.domain.ids import BlobId, CommitId, RepositoryId, TreeId
from bot.providers.organisation.port import (
    Branch,
    Bypass,
    Commit,
    Credential,
    DeployKey,
    Gist,
    Guard,
    Installation,
    LogEntry,
    Post,
    Repository,
    RequiredCheck,
    TreeFile,
)

Json = dict[str, Any]
_CLASSIC = {"apps": "Integration", "teams": "Team", "users": "User"}


def repository(told: Json) -> Repository:
    return Repository(
        RepositoryId(int(told["id"])),
        str(told["full_name"]),
        str(told["default_branch"]),
        bool(told["private"]),
        bool(told["archived"]),
    )


def installation(told: Json) -> Installation:
    permissions = tuple(sorted((str(name), str(level)) for name, level in told["permissions"].items()))
    return Installation(
        int(told["id"]), int(told["app_id"]), str(told["app_slug"]), permissions, tuple(map(str, told["events"]))
    )


def login(told: Json) -> str:
    return str(told["login"])


def credential(told: Json) -> Credential:
    return Credential(str(told["login"]), str(told["credential_type"]))


def log_entry(told: Json) -> LogEntry:
    action, actor, repo, visibility = (str(told.get(name) or "") for name in ("action", "actor", "repo", "visibility"))
    return LogEntry(action, actor, repo, visibility, int(told.get("@timestamp") or 0))


def deploy_key(told: Json) -> DeployKey:
    return DeployKey(str(told["title"]), str(told.get("added_by") or ""), bool(told["read_only"]))


def gist(told: Json) -> Gist:
    return Gist(str(told["id"]), tuple(str(file.get("type") or "") for file in told["files"].values()))


def branch(told: Json) -> Branch:
    return Branch(str(told["ref"]).removeprefix("refs/heads/"), CommitId(str(told["object"]["sha"])))


def commit(told: Json) -> Commit:
    author, committer = (str((told.get(role) or {}).get("login") or "") for role in ("author", "committer"))
    return Commit(CommitId(str(told["sha"])), TreeId(str(told["commit"]["tree"]["sha"])), author, committer)


def writing(told: Json) -> Post:
    return Post(str(told["html_url"]), str((told.get("user") or {}).get("login") or "ghost"), str(told["body"] or ""))


def tree_files(told: Json) -> tuple[TreeFile, ...]:
    return tuple(
        TreeFile(str(one["path"]), BlobId(str(one["sha"])), int(one.get("size") or 0), one["mode"].startswith("100"))
        for one in told["tree"]
        if one["type"] != "tree"
    )


def bypass(told: Json) -> tuple[Bypass, ...]:
    """Raises KeyError when the answer does not say who may."""
    return tuple(Bypass(str(one["actor_type"]), str(one.get("actor_id") or "")) for one in told["bypass_actors"])


def guard_of_rules(told: Sequence[Json]) -> Guard:
    """Every rule of a branch together: the strictest counts."""
    kinds = {str(rule["type"]) for rule in told}
    pulls = [rule.get("parameters") or {} for rule in told if rule["type"] == "pull_request"]
    checks = [
        RequiredCheck(str(one["context"]), one.get("integration_id"))
        for rule in told
        if rule["type"] == "required_status_checks"
        for one in rule["parameters"]["required_status_checks"]
    ]
    return Guard(
        pull_request=bool(pulls),
        approvals=max((int(one.get("required_approving_review_count") or 0) for one in pulls), default=0),
        dismiss_stale=any(one.get("dismiss_stale_reviews_on_push") for one in pulls),
        last_push=any(one.get("require_last_push_approval") for one in pulls),
        code_owners=any(one.get("require_code_owner_review") for one in pulls),
        checks=tuple(checks),
        creation="creation" in kinds,
        update="update" in kinds,
        rulesets=tuple(sorted({int(rule["ruleset_id"]) for rule in told if "ruleset_id" in rule})),
    )


def guard_of_protection(told: Json) -> Guard:
    """Classic branch protection. Restricted pushes restrict creation too, as far as the branch has no pattern."""
    reviews = told.get("required_pull_request_reviews") or {}
    status = told.get("required_status_checks") or {}
    named = {str(one["context"]): one.get("app_id") for one in status.get("checks") or ()}
    contexts = {**{str(name): None for name in status.get("contexts") or ()}, **named}
    allowed = reviews.get("bypass_pull_request_allowances") or {}
    around = [
        Bypass(kind, str(one.get("slug") or one.get("login") or ""))
        for name, kind in _CLASSIC.items()
        for one in allowed.get(name) or ()
    ]
    return Guard(
        pull_request=bool(reviews),
        approvals=int(reviews.get("required_approving_review_count") or 0),
        dismiss_stale=bool(reviews.get("dismiss_stale_reviews")),
        last_push=bool(reviews.get("require_last_push_approval")),
        code_owners=bool(reviews.get("require_code_owner_reviews")),
        checks=tuple(RequiredCheck(name, app) for name, app in contexts.items()),
        update=told.get("restrictions") is not None,
        creation=told.get("restrictions") is not None and bool((told.get("block_creations") or {}).get("enabled")),
        bypass=tuple(around),
    )
