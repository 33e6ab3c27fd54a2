"""What happened, told to the App's webhook: one function per subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bot.emulators.github.gitside.commits import Commit
from bot.emulators.github.records import (
    CheckRun,
    Comment,
    Installation,
    Issue,
    Label,
    Repository,
    Review,
    ReviewComment,
    Status,
    User,
)
from bot.emulators.github.shapes import apps, gitdata, issues, people, pulls, repositories
from bot.emulators.github.urls import Urls
from bot.emulators.github.world import World

ZERO = "0" * 40


@dataclass(frozen=True, slots=True)
class Scene:
    """Where something happened and who did it."""

    world: World
    repository: Repository
    sender: User
    urls: Urls

    def app_shape(self) -> dict[str, Any]:
        return apps.app(self.world.app, self.urls)


def emit(scene: Scene, event: str, action: str | None, **parts: Any) -> None:
    """Send one event if the App is installed there, awake, and subscribed."""
    installation = scene.world.installation_of(scene.repository)
    if installation is None or installation.suspended_at is not None:
        return
    if event not in scene.world.app.events and event != "repository":
        return
    scene.world.courier.send(
        event,
        {
            **({"action": action} if action else {}),
            **parts,
            "repository": repositories.repository(scene.repository, scene.urls),
            "organization": _organization(scene.repository.owner, scene.urls),
            "sender": people.user(scene.sender, scene.urls),
            "installation": {"id": installation.id, "node_id": installation.node_id},
        },
    )


def _organization(owner: User, urls: Urls) -> dict[str, Any]:
    api = urls.api(f"orgs/{owner.login}")
    return {
        "login": owner.login,
        "id": owner.id,
        "node_id": owner.node_id,
        "url": api,
        "repos_url": f"{api}/repos",
        "events_url": f"{api}/events",
        "hooks_url": f"{api}/hooks",
        "issues_url": f"{api}/issues",
        "members_url": f"{api}/members{{/member}}",
        "public_members_url": f"{api}/public_members{{/member}}",
        "avatar_url": urls.html(f"avatars/u/{owner.id}?v=4"),
        "description": None,
    }


def on_installation(world: World, installation: Installation, action: str, sender: User, urls: Urls) -> None:
    """These arrive without subscription, also while suspended."""
    covered = [world.registry.repositories[number] for number in sorted(installation.repository_ids)]
    world.courier.send(
        "installation",
        {
            "action": action,
            "installation": apps.installation(installation, world.app, urls),
            "repositories": [_named(item) for item in covered],
            "requester": None,
            "sender": people.user(sender, urls),
        },
    )


def on_installation_repositories(
    world: World, installation: Installation, action: str, repository: Repository, urls: Urls
) -> None:
    world.courier.send(
        "installation_repositories",
        {
            "action": action,
            "installation": apps.installation(installation, world.app, urls),
            "repository_selection": "selected",
            "repositories_added": [_named(repository)] if action == "added" else [],
            "repositories_removed": [_named(repository)] if action == "removed" else [],
            "requester": None,
            "sender": people.user(installation.account, urls),
        },
    )


def _named(item: Repository) -> dict[str, Any]:
    return {
        "id": item.id,
        "node_id": item.node_id,
        "name": item.name,
        "full_name": item.full_name,
        "private": item.private,
    }


def ping(world: World, urls: Urls) -> None:
    app = world.app
    hook = {
        "type": "App",
        "id": app.hook_id,
        "name": "web",
        "active": True,
        "events": list(app.events),
        "config": {"content_type": "json", "insecure_ssl": "0", "url": app.webhook_url, "secret": "********"},
        "updated_at": "2026-01-01T00:00:00Z",
        "created_at": "2026-01-01T00:00:00Z",
        "app_id": app.id,
        "deliveries_url": urls.api("app/hook/deliveries"),
    }
    world.courier.send("ping", {"zen": "Keep it logically awesome.", "hook_id": app.hook_id, "hook": hook})


def on_issue(scene: Scene, action: str, item: Issue, **extra: Any) -> None:
    emit(scene, "issues", action, issue=issues.issue(scene.repository, item, scene.urls), **extra)


def on_pull(scene: Scene, action: str, item: Issue, **extra: Any) -> None:
    emit(
        scene,
        "pull_request",
        action,
        number=item.number,
        pull_request=pulls.pull(scene.repository, item, scene.urls),
        **extra,
    )


def on_subject(scene: Scene, action: str, item: Issue, **extra: Any) -> None:
    """An action that issues and pull requests share goes out under the name of what it is."""
    (on_pull if item.pull else on_issue)(scene, action, item, **extra)


def on_labelled(scene: Scene, action: str, item: Issue, label: Label) -> None:
    on_subject(scene, action, item, label=people.label(label, scene.urls.repo(scene.repository.full_name)))


def on_label(scene: Scene, action: str, label: Label) -> None:
    emit(scene, "label", action, label=people.label(label, scene.urls.repo(scene.repository.full_name)))


def on_comment(scene: Scene, action: str, item: Issue, comment: Comment, **extra: Any) -> None:
    app = scene.app_shape() if comment.by_app else None
    emit(
        scene,
        "issue_comment",
        action,
        issue=issues.issue(scene.repository, item, scene.urls),
        comment=issues.comment(scene.repository, comment, scene.urls, app=app),
        **extra,
    )


def on_review(scene: Scene, action: str, item: Issue, review: Review, **extra: Any) -> None:
    shape = pulls.review(scene.repository, item, review, scene.urls)
    emit(
        scene,
        "pull_request_review",
        action,
        review={**shape, "state": review.state.lower(), "body": review.body or None},
        pull_request=pulls.simple(scene.repository, item, scene.urls),
        **extra,
    )


def on_review_comment(scene: Scene, action: str, item: Issue, comment: ReviewComment, **extra: Any) -> None:
    emit(
        scene,
        "pull_request_review_comment",
        action,
        comment=pulls.review_comment(scene.repository, comment, scene.urls),
        pull_request=pulls.simple(scene.repository, item, scene.urls),
        **extra,
    )


def on_check_run(scene: Scene, action: str, run: CheckRun, **extra: Any) -> None:
    emit(
        scene,
        "check_run",
        action,
        check_run=apps.check_run(scene.repository, run, scene.world.app, scene.urls),
        **extra,
    )


def on_status(scene: Scene, item: Status, commit: Commit) -> None:
    shape = {
        **apps.status(scene.repository, item, scene.urls, creator=False),
        "sha": item.sha,
        "name": scene.repository.full_name,
        "branches": [],
        "commit": gitdata.commit(scene.world, scene.repository, commit, scene.urls),
    }
    emit(scene, "status", None, **shape)


@dataclass(frozen=True, slots=True)
class Push:
    ref: str
    before: str
    after: str
    forced: bool
    commits: Sequence[Commit]


def on_push(scene: Scene, push: Push) -> None:
    page = scene.urls.html(scene.repository.full_name)
    told = [_pushed_commit(page, commit) for commit in push.commits]
    emit(
        scene,
        "push",
        None,
        ref=push.ref,
        before=push.before,
        after=push.after,
        base_ref=None,
        created=push.before == ZERO,
        deleted=push.after == ZERO,
        forced=push.forced,
        compare=f"{page}/compare/{push.before[:12]}...{push.after[:12]}",
        commits=told[-2048:],
        head_commit=told[-1] if told else None,
        pusher={"name": scene.sender.login, "email": scene.sender.email},
    )


def _pushed_commit(page: str, commit: Commit) -> dict[str, Any]:
    return {
        "id": commit.sha,
        "tree_id": commit.tree,
        "distinct": True,
        "message": commit.message.rstrip("\n"),
        "timestamp": commit.committer.date.isoformat(),
        "url": f"{page}/commit/{commit.sha}",
        "author": {"name": commit.author.name, "email": commit.author.email},
        "committer": {"name": commit.committer.name, "email": commit.committer.email},
        "added": [],
        "removed": [],
        "modified": [],
    }


def on_repository(scene: Scene, action: str, **extra: Any) -> None:
    emit(scene, "repository", action, **extra)
