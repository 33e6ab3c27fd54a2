"""A world made from its configuration: App, accounts, repositories with history, labels, issues."""

from __future__ import annotations

import functools
import secrets
import string
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.emulators.github.clock import Clock
from bot.emulators.github.config import Config, RepositorySeed, UserSeed
from bot.emulators.github.gitside import seeding
from bot.emulators.github.gitside.bare import Bare
from bot.emulators.github.identifiers import node_id
from bot.emulators.github.records import App, Installation, Repository, User
from bot.emulators.github.routes.issues import open_issue
from bot.emulators.github.world import World


@dataclass(frozen=True, slots=True)
class KeyPair:
    private_pem: str
    public_pem: str


@functools.cache
def key_pair() -> KeyPair:
    """Made once per process and never written into the repository."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return KeyPair(private.decode(), public.decode())


async def create_world(config: Config, root: Path, bare: Callable[[Path], Bare] = Bare) -> World:
    """Everything of the seed, in place before the first request. `bare` opens a repository's git."""
    app = _app(config)
    world = World(config, root, app, bare)
    world.registry.users[app.bot.login.lower()] = app.bot
    for person in config.seed.users:
        _add_user(world, person)
    for seed in config.seed.repositories:
        await _add_repository(world, seed)
    app.owner = next((r.owner for r in world.registry.repositories.values()), app.owner)
    _install(world)
    return world


def _app(config: Config) -> App:
    bot_id = config.app_id + 200_000_000
    bot = User(bot_id, f"{config.slug}[bot]", node_id("BOT", bot_id), "Bot")
    owner = User(9_000_001, "octo-owner", node_id("O", 9_000_001), "Organization")
    return App(
        id=config.app_id,
        node_id=node_id("A", config.app_id),
        client_id=f"Iv23li{config.app_id:x}standin",
        slug=config.slug,
        name=config.slug.title(),
        owner=owner,
        bot=bot,
        private_key_pem=key_pair().private_pem,
        public_key_pem=key_pair().public_pem,
        permissions=dict(config.permissions),
        events=config.events,
        webhook_url=config.webhook_url,
        webhook_secret=config.webhook_secret or secrets.token_hex(20),
        hook_id=config.app_id + 500_000_000,
        created_at=Clock().now(),
    )


def _add_user(world: World, seed: UserSeed) -> User:
    number, node = world.ids.new("U")
    token = seed.token or "ghp_" + "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(36))
    user = User(number, seed.login, node, seed.type, token, seed.token_permissions, seed.gists)
    world.registry.users[seed.login.lower()] = user
    return user


def _owner(world: World, login: str) -> User:
    found = world.find_user(login)
    if found is None:
        number, _ = world.ids.new("U")
        found = User(number, login, node_id("O", number), "Organization")
        world.registry.users[login.lower()] = found
    return found


async def _add_repository(world: World, seed: RepositorySeed) -> None:
    owner_login, _, name = seed.full_name.partition("/")
    number, node = world.ids.new("R")
    now = world.clock.now()
    item = Repository(
        id=number,
        node_id=node,
        owner=_owner(world, owner_login),
        name=name,
        git_dir=world.root / f"{number}.git",
        private=seed.private,
        default_branch=seed.default_branch,
        created_at=now,
        updated_at=now,
        pushed_at=now,
        drafts_supported=seed.drafts_supported,
        delete_branch_on_merge=seed.delete_branch_on_merge,
        merge_methods=frozenset(seed.merge_methods),
        roles={person.login.lower(): person.role(seed.full_name) for person in world.config.seed.users},
        protections={rule.branch: rule for rule in seed.protections},
        keys=seed.keys,
        parent=world.repository(seed.fork_of) if seed.fork_of else None,
    )
    if item.owner.type == "User":
        item.roles[item.owner.login.lower()] = "admin"
    world.registry.repositories[number] = item
    await _fill(world.bare(item), seed, item.parent.git_dir if item.parent else None)
    _populate(world, item, seed)


async def _fill(bare: Bare, seed: RepositorySeed, parent: Path | None) -> None:
    await bare.initialise(seed.default_branch)
    if parent is not None:
        await seeding.from_repository(bare, parent)
    elif seed.repository:
        await seeding.from_repository(bare, Path(seed.repository))
    elif seed.files:
        await seeding.from_directory(bare, seed.default_branch, Path(seed.files))
    elif seed.contents:
        await seeding.from_texts(bare, seed.default_branch, seed.contents)


def _populate(world: World, item: Repository, seed: RepositorySeed) -> None:
    for label in seed.labels:
        world.add_label(item, label.name, label.color, label.description)
    people = [user for user in world.registry.users.values() if user.type == "User"]
    for issue in seed.issues:
        author = world.find_user(issue.user) if issue.user else None
        author = author or (people[0] if people else item.owner)
        record = open_issue(world, item, author, issue.title, issue.body)
        for name in issue.labels:
            record.labels.append(world.label(item, name) or world.add_label(item, name))


def _install(world: World) -> None:
    """One installation per account that has an installed repository."""
    installed = {seed.full_name.lower() for seed in world.config.seed.repositories if seed.installed}
    for item in world.registry.repositories.values():
        if item.full_name.lower() not in installed:
            continue
        present = next((one for one in world.registry.installations.values() if one.account is item.owner), None)
        if present is not None:
            present.repository_ids.add(item.id)
            continue
        number, node = world.ids.new("MDIzOkludGVncmF0aW9uSW5zdGFsbGF0aW9u")
        now = world.clock.now()
        world.registry.installations[number] = Installation(
            id=number,
            node_id=node,
            account=item.owner,
            repository_ids={item.id},
            permissions={"metadata": "read", **world.config.permissions},
            events=world.config.events,
            created_at=now,
            updated_at=now,
        )
