"""The permission table: what each route needs, as data.

`token` lists alternatives for an installation token ("permission:level", any one suffices). `role` is the least role
of a person. `who` narrows the kind of credential: "app" is the JWT alone, "installation" a token alone.
"""

from __future__ import annotations

from dataclasses import dataclass

_R = "/repos/{owner}/{repo}"
_ISSUES_READ = ("issues:read", "pull_requests:read")
_ISSUES_WRITE = ("issues:write", "pull_requests:write")


@dataclass(frozen=True, slots=True)
class Rule:
    token: tuple[str, ...] = ()
    role: str = "read"
    who: str = "token"
    organisation: str = ""
    """What a person has to be there: `owner`; empty: nothing."""


def _app() -> Rule:
    return Rule(who="app")


def _reads(permission: str) -> Rule:
    return Rule((f"{permission}:read",), "read")


def _writes(permission: str, role: str = "write") -> Rule:
    return Rule((f"{permission}:write",), role)


_TALK_READ = Rule(_ISSUES_READ, "read")
_TALK = Rule(_ISSUES_WRITE, "read")
_SORT = Rule(_ISSUES_WRITE, "triage")

TABLE: dict[str, Rule] = {
    # the App itself
    "GET /app": _app(),
    "GET /app/installations": _app(),
    "GET /app/installations/{installation_id}": _app(),
    "POST /app/installations/{installation_id}/access_tokens": _app(),
    "PUT /app/installations/{installation_id}/suspended": _app(),
    "DELETE /app/installations/{installation_id}/suspended": _app(),
    f"GET {_R}/installation": _app(),
    "GET /orgs/{owner}/installation": _app(),
    "GET /users/{owner}/installation": _app(),
    "GET /app/hook/config": _app(),
    "PATCH /app/hook/config": _app(),
    "GET /app/hook/deliveries": _app(),
    "GET /app/hook/deliveries/{delivery_id}": _app(),
    "POST /app/hook/deliveries/{delivery_id}/attempts": _app(),
    "GET /installation/repositories": Rule(("metadata:read",), who="installation"),
    "DELETE /installation/token": Rule(who="installation"),
    # people and service
    "GET /user": Rule(who="person"),
    "GET /users/{login}": Rule(who="any"),
    "POST /app-manifests/{code}/conversions": Rule(who="any"),
    "GET /rate_limit": Rule(who="any"),
    "GET /zen": Rule(who="any"),
    "GET /meta": Rule(who="any"),
    "POST /graphql": Rule(),
    "GET /orgs/{org}/teams/{team_slug}/memberships/{login}": _reads("members"),
    # an organisation, and what people show in public
    "GET /orgs/{org}": _reads("metadata"),
    "GET /orgs/{org}/repos": _reads("metadata"),
    "GET /orgs/{org}/members": Rule(("metadata:read",)),
    "GET /orgs/{org}/outside_collaborators": Rule(("members:read",), organisation="owner"),
    "GET /orgs/{org}/installations": Rule(("organization_administration:read",), organisation="owner"),
    "GET /orgs/{org}/credential-authorizations": Rule(("organization_administration:read",), organisation="owner"),
    "GET /orgs/{org}/audit-log": Rule(("organization_administration:read",), organisation="owner"),
    "GET /users/{login}/repos": _reads("metadata"),
    "GET /users/{login}/gists": Rule(who="any"),
    # repository
    f"GET {_R}": _reads("metadata"),
    f"PATCH {_R}": _writes("administration", "admin"),
    f"GET {_R}/collaborators": _reads("metadata"),
    f"GET {_R}/collaborators/{{login}}": _reads("metadata"),
    f"GET {_R}/collaborators/{{login}}/permission": _reads("metadata"),
    f"PUT {_R}/collaborators/{{login}}": _writes("administration", "admin"),
    f"GET {_R}/branches": _reads("contents"),
    f"GET {_R}/branches/{{branch*}}": _reads("contents"),
    f"GET {_R}/branches/{{branch*}}/protection": Rule(("administration:read",), "admin"),
    f"GET {_R}/rules/branches/{{branch*}}": _reads("metadata"),
    f"GET {_R}/rulesets/{{ruleset_id}}": _reads("metadata"),
    f"GET {_R}/keys": Rule(("administration:read",), "admin"),
    f"GET {_R}/forks": _reads("metadata"),
    f"GET {_R}/contents": _reads("contents"),
    f"GET {_R}/contents/{{path*}}": _reads("contents"),
    f"GET {_R}/commits": _reads("contents"),
    f"GET {_R}/commits/{{ref*}}": _reads("contents"),
    f"GET {_R}/compare/{{basehead*}}": _reads("contents"),
    # issues
    f"GET {_R}/issues": _reads("issues"),
    f"POST {_R}/issues": _writes("issues", "read"),
    f"GET {_R}/issues/{{number}}": _reads("issues"),
    f"PATCH {_R}/issues/{{number}}": _TALK,
    f"PUT {_R}/issues/{{number}}/lock": _SORT,
    f"DELETE {_R}/issues/{{number}}/lock": _SORT,
    f"GET {_R}/issues/{{number}}/comments": _TALK_READ,
    f"POST {_R}/issues/{{number}}/comments": _TALK,
    f"GET {_R}/issues/comments": _TALK_READ,
    f"GET {_R}/issues/comments/{{comment_id}}": _TALK_READ,
    f"PATCH {_R}/issues/comments/{{comment_id}}": _TALK,
    f"DELETE {_R}/issues/comments/{{comment_id}}": _TALK,
    f"GET {_R}/labels": _TALK_READ,
    f"POST {_R}/labels": _SORT,
    f"GET {_R}/labels/{{name}}": _TALK_READ,
    f"DELETE {_R}/labels/{{name}}": _SORT,
    f"GET {_R}/issues/{{number}}/labels": _TALK_READ,
    f"POST {_R}/issues/{{number}}/labels": _SORT,
    f"PUT {_R}/issues/{{number}}/labels": _SORT,
    f"DELETE {_R}/issues/{{number}}/labels/{{name}}": _SORT,
    f"GET {_R}/issues/{{number}}/reactions": _reads("issues"),
    f"POST {_R}/issues/{{number}}/reactions": _TALK,
    f"DELETE {_R}/issues/{{number}}/reactions/{{reaction_id}}": _TALK,
    f"GET {_R}/issues/comments/{{comment_id}}/reactions": _TALK_READ,
    f"POST {_R}/issues/comments/{{comment_id}}/reactions": _TALK,
    f"DELETE {_R}/issues/comments/{{comment_id}}/reactions/{{reaction_id}}": _TALK,
    # git data
    f"POST {_R}/git/blobs": _writes("contents"),
    f"GET {_R}/git/blobs/{{sha}}": _reads("contents"),
    f"POST {_R}/git/trees": _writes("contents"),
    f"GET {_R}/git/trees/{{sha*}}": _reads("contents"),
    f"POST {_R}/git/commits": _writes("contents"),
    f"GET {_R}/git/commits/{{sha}}": _reads("contents"),
    f"GET {_R}/git/ref/{{ref*}}": _reads("contents"),
    f"GET {_R}/git/matching-refs/{{ref*}}": _reads("contents"),
    f"POST {_R}/git/refs": _writes("contents"),
    f"PATCH {_R}/git/refs/{{ref*}}": _writes("contents"),
    f"DELETE {_R}/git/refs/{{ref*}}": _writes("contents"),
    # pull requests
    f"GET {_R}/pulls": _reads("pull_requests"),
    f"POST {_R}/pulls": _writes("pull_requests", "read"),
    f"GET {_R}/pulls/{{number}}": _reads("pull_requests"),
    f"PATCH {_R}/pulls/{{number}}": _writes("pull_requests", "read"),
    f"GET {_R}/pulls/{{number}}/files": _reads("pull_requests"),
    f"GET {_R}/pulls/{{number}}/commits": _reads("pull_requests"),
    f"GET {_R}/pulls/{{number}}/merge": _reads("pull_requests"),
    f"PUT {_R}/pulls/{{number}}/merge": _writes("contents"),
    f"PUT {_R}/pulls/{{number}}/update-branch": _writes("pull_requests"),
    f"GET {_R}/pulls/{{number}}/reviews": _reads("pull_requests"),
    f"POST {_R}/pulls/{{number}}/reviews": _writes("pull_requests", "read"),
    f"GET {_R}/pulls/{{number}}/reviews/{{review_id}}": _reads("pull_requests"),
    f"PUT {_R}/pulls/{{number}}/reviews/{{review_id}}": _writes("pull_requests", "read"),
    f"DELETE {_R}/pulls/{{number}}/reviews/{{review_id}}": _writes("pull_requests", "read"),
    f"POST {_R}/pulls/{{number}}/reviews/{{review_id}}/events": _writes("pull_requests", "read"),
    f"PUT {_R}/pulls/{{number}}/reviews/{{review_id}}/dismissals": _writes("pull_requests"),
    f"GET {_R}/pulls/{{number}}/requested_reviewers": _reads("pull_requests"),
    f"POST {_R}/pulls/{{number}}/requested_reviewers": _writes("pull_requests", "triage"),
    f"DELETE {_R}/pulls/{{number}}/requested_reviewers": _writes("pull_requests", "triage"),
    f"GET {_R}/pulls/{{number}}/comments": _reads("pull_requests"),
    f"POST {_R}/pulls/{{number}}/comments": _writes("pull_requests", "read"),
    f"POST {_R}/pulls/{{number}}/comments/{{comment_id}}/replies": _writes("pull_requests", "read"),
    f"GET {_R}/pulls/comments/{{comment_id}}": _reads("pull_requests"),
    f"PATCH {_R}/pulls/comments/{{comment_id}}": _writes("pull_requests", "read"),
    f"DELETE {_R}/pulls/comments/{{comment_id}}": _writes("pull_requests", "read"),
    f"POST {_R}/pulls/comments/{{comment_id}}/reactions": _writes("pull_requests", "read"),
    # checks and statuses
    f"POST {_R}/check-runs": Rule(("checks:write",), who="installation"),
    f"GET {_R}/check-runs/{{check_run_id}}": _reads("checks"),
    f"PATCH {_R}/check-runs/{{check_run_id}}": Rule(("checks:write",), who="installation"),
    f"GET {_R}/check-runs/{{check_run_id}}/annotations": _reads("checks"),
    f"POST {_R}/check-runs/{{check_run_id}}/rerequest": _writes("checks"),
    f"GET {_R}/commits/{{ref*}}/check-runs": _reads("checks"),
    f"GET {_R}/commits/{{ref*}}/status": _reads("statuses"),
    f"GET {_R}/commits/{{ref*}}/statuses": _reads("statuses"),
    f"GET {_R}/commits/{{ref*}}/pulls": _reads("pull_requests"),
    f"POST {_R}/statuses/{{sha}}": _writes("statuses"),
}
