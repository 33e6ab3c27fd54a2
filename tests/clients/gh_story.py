"""The story with `gh api`, which reaches the stand-in over its setting for a unix socket."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.world import READY

_HOME = "repos/octo-org/hello"


@dataclass(frozen=True, slots=True)
class Gh:
    """One identity. `config` is a directory with nothing in it but the socket's address."""

    config: Path
    token: str

    def api(self, method: str, path: str, body: Mapping[str, Any] | None = None, *more: str) -> Any:
        """The decoded answer; raises with what gh says when it fails."""
        done = self.run(method, path, body, *more)
        if done.returncode:
            raise AssertionError(f"gh api {method} {path}: {done.stderr}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def run(
        self, method: str, path: str, body: Mapping[str, Any] | None, *more: str
    ) -> subprocess.CompletedProcess[str]:
        given = [] if body is None else ["--input", "-"]
        return subprocess.run(
            ["gh", "api", "-X", method, path, *given, *more],
            input=None if body is None else json.dumps(body),
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "GH_CONFIG_DIR": str(self.config), "GH_TOKEN": self.token},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def configured(directory: Path, socket: Path) -> Path:
    directory.mkdir()
    (directory / "config.yml").write_text(f"http_unix_socket: {socket}\nprompt: disabled\n")
    return directory


def tell(config: Path, app_jwt: str, installation: int, person_token: str) -> dict[str, Any]:
    as_app = ("-H", f"Authorization: Bearer {app_jwt}")
    nobody, person = Gh(config, "none"), Gh(config, person_token)
    token = nobody.api("POST", f"app/installations/{installation}/access_tokens", {}, *as_app)["token"]
    bot = Gh(config, token)
    issue = person.api("POST", f"{_HOME}/issues", {"title": "Greet", "body": "Please", "labels": ["agent"]})["number"]
    comment = bot.api("POST", f"{_HOME}/issues/{issue}/comments", {"body": "On it"})["id"]
    bot.api("PATCH", f"{_HOME}/issues/comments/{comment}", {"body": "Working"})
    bot.api("POST", f"{_HOME}/issues/comments/{comment}/reactions", {"content": "eyes"})
    base = bot.api("GET", f"{_HOME}/git/ref/heads/main")["object"]["sha"]
    blob = bot.api("POST", f"{_HOME}/git/blobs", {"content": "print('hi')\n", "encoding": "utf-8"})["sha"]
    entry = {"path": "greet.py", "mode": "100644", "type": "blob", "sha": blob}
    before = bot.api("GET", f"{_HOME}/git/commits/{base}")["tree"]["sha"]
    tree = bot.api("POST", f"{_HOME}/git/trees", {"base_tree": before, "tree": [entry]})["sha"]
    commit = bot.api("POST", f"{_HOME}/git/commits", {"message": "Greet", "tree": tree, "parents": [base]})
    head = commit["sha"]
    bot.api("POST", f"{_HOME}/git/refs", {"ref": "refs/heads/agent/1", "sha": head})
    asked = {"title": "Greet", "head": "agent/1", "base": "main", "body": f"Fixes #{issue}", "draft": True}
    pull = bot.api("POST", f"{_HOME}/pulls", asked)
    here = f"{_HOME}/pulls/{pull['number']}"
    output = {"title": "Waiting", "summary": "…"}
    run = bot.api("POST", f"{_HOME}/check-runs", {"name": "pullwright/gate", "head_sha": head, "output": output})["id"]
    bot.api("PATCH", f"{_HOME}/check-runs/{run}", {"conclusion": "success", "output": output})
    person.api("POST", f"{here}/reviews", {"event": "APPROVE", "body": "ok"})
    refused = bot.run("PUT", f"{here}/merge", {"sha": head})
    bot.api("POST", "graphql", {"query": READY, "variables": {"id": pull["node_id"]}})
    squash = {"merge_method": "squash", "commit_title": "Greet", "commit_message": "ok"}
    merged = bot.api("PUT", f"{here}/merge", {"sha": head, **squash})
    pages = ("--paginate",)
    said = bot.api("GET", f"{_HOME}/issues/{issue}/comments?per_page=1", None, *pages)
    return {
        "slug": nobody.api("GET", "app", None, *as_app)["slug"],
        "files": [[one["filename"], one["status"], one["additions"]] for one in bot.api("GET", f"{here}/files")],
        "refused": int(refused.stderr.rpartition("HTTP ")[2].rstrip(")\n")),
        "merged": merged["merged"],
        "state": bot.api("GET", here)["state"],
        "issue": bot.api("GET", f"{_HOME}/issues/{issue}")["state"],
        "reviews": [one["state"] for one in bot.api("GET", f"{here}/reviews", None, *pages)],
        "comments": [[one["user"]["login"], one["body"]] for one in said],
        "permission": bot.api("GET", f"{_HOME}/collaborators/octo-dev/permission")["permission"],
        "ahead": bot.api("GET", f"{_HOME}/compare/{base}...main")["ahead_by"],
        "verified": commit["verification"]["verified"],
    }
