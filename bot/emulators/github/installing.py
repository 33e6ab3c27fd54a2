"""What an organisation's owner does to the App on its settings page: add, remove, re-permit, uninstall."""

from __future__ import annotations

from collections.abc import Mapping

from bot.emulators.github.records import Installation, Repository
from bot.emulators.github.urls import Urls
from bot.emulators.github.webhooks.events import on_installation, on_installation_repositories
from bot.emulators.github.world import World


def change_installation(world: World, action: str, asked: Mapping[str, object], urls: Urls) -> bool:
    """Carry out one change and announce it; False when there is nothing it could apply to.

    `created` only announces; `deleted` uninstalls; `added` and `removed` take a `repository` (full name);
    `permissions` takes the new `permissions` and announces new_permissions_accepted.
    """
    repository = world.repository(str(asked.get("repository", "")))
    for installation in list(world.registry.installations.values()):
        if _apply(world, installation, action, asked, repository):
            _announce(world, installation, action, repository, urls)
            return True
    return False


def _apply(
    world: World,
    installation: Installation,
    action: str,
    asked: Mapping[str, object],
    repository: Repository | None,
) -> bool:
    covered = installation.repository_ids
    match action:
        case "created":
            return True
        case "deleted":
            del world.registry.installations[installation.id]
            for text in [text for text, token in world.registry.tokens.items() if token.installation is installation]:
                del world.registry.tokens[text]
            return True
        case "permissions":
            granted = asked.get("permissions")
            if not isinstance(granted, dict):
                return False
            installation.permissions = {"metadata": "read", **granted}
            return True
        case "removed" if repository is not None and repository.id in covered:
            covered.discard(repository.id)
            return True
        case "added" if repository is not None and repository.owner is installation.account:
            covered.add(repository.id)
            return True
        case _:
            return False


def _announce(world: World, installation: Installation, action: str, repository: Repository | None, urls: Urls) -> None:
    if action in {"added", "removed"} and repository is not None:
        on_installation_repositories(world, installation, action, repository, urls)
    else:
        told = "new_permissions_accepted" if action == "permissions" else action
        on_installation(world, installation, told, installation.account, urls)
