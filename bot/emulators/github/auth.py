"""Who is asking: App by signed JWT, installation by token, person by token, or nobody."""

from __future__ import annotations

import base64
import binascii
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import jwt

from bot.emulators.github.errors import ApiError, bad_credentials, forbidden, unprocessable
from bot.emulators.github.records import App, Installation, InstallationToken, Repository, User
from bot.emulators.github.world import World

LEVELS = {"none": 0, "read": 1, "write": 2, "admin": 3}
_UNDECODABLE = "A JSON web token could not be decoded"
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class Actor:
    """`user` is the person or the App's bot account; nobody has none."""

    kind: Literal["nobody", "app", "installation", "person"]
    user: User | None = None
    token: InstallationToken | None = None

    @property
    def name(self) -> str:
        if self.kind == "app":
            return "app"
        return self.user.login if self.user else "nobody"

    def sees(self, repository: Repository) -> bool:
        """Whether an installation token covers the repository."""
        if self.token is None or repository.id not in self.token.installation.repository_ids:
            return False
        return self.token.repository_ids is None or repository.id in self.token.repository_ids

    def may(self, permission: str, level: str) -> bool:
        """Whether token and installation both hold the permission at that level or above."""
        if self.token is None:
            return False
        held = (self.token.permissions, self.token.installation.permissions)
        return all(LEVELS[granted.get(permission, "none")] >= LEVELS[level] for granted in held)

    def granted(self, permission: str, level: str = "read") -> bool:
        """Whether a person's token covers the permission: a classic one covers all that its person may."""
        held = self.user.token_permissions if self.user else None
        return held is None or LEVELS[{"metadata": "read", **held}.get(permission, "none")] >= LEVELS[level]


NOBODY = Actor("nobody")


def identify(world: World, header: str | None) -> Actor:
    """Turn an Authorization header into an actor; raises 401 for anything that is not a living credential."""
    if not header:
        return NOBODY
    scheme, _, secret = header.partition(" ")
    secret = secret.strip()
    match scheme.lower():
        case "bearer" if secret.count(".") == 2 and not secret.startswith("gh"):
            _check_app_token(world.app, secret)
            return Actor("app")
        case "bearer" | "token":
            return _by_token(world, secret)
        case "basic":
            return _by_token(world, _basic_password(secret))
        case _:
            raise bad_credentials()


def _basic_password(encoded: str) -> str:
    try:
        decoded = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise bad_credentials() from None
    return decoded.partition(":")[2]


def _by_token(world: World, text: str) -> Actor:
    token = world.registry.tokens.get(text)
    if token is not None:
        if token.expires_at <= world.clock.now():
            raise bad_credentials()
        if token.installation.suspended_at is not None:
            raise forbidden("This installation has been suspended")
        return Actor("installation", world.app.bot, token)
    user = world.user_of_token(text) if text else None
    if user is None:
        raise bad_credentials()
    return Actor("person", user)


def _check_app_token(app: App, text: str) -> None:
    try:
        claims = jwt.decode(
            text,
            app.public_key_pem,
            algorithms=["RS256"],
            options={"verify_exp": False, "verify_iat": False, "verify_aud": False, "verify_iss": False},
        )
    except jwt.PyJWTError:
        raise ApiError(401, _UNDECODABLE) from None
    _check_times(claims)
    if str(claims.get("iss", "")) not in {str(app.id), app.client_id}:
        if "iss" not in claims:
            raise ApiError(401, "'Issuer' claim ('iss') must be an Integer")
        raise ApiError(404, "Integration not found")


def _check_times(claims: Mapping[str, Any]) -> None:
    now = time.time()
    issued, expires = claims.get("iat"), claims.get("exp")
    if not isinstance(issued, int | float) or issued > now + 60:
        raise ApiError(
            401, "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
        )
    if not isinstance(expires, int | float) or expires <= now:
        raise ApiError(
            401,
            "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the"
            " assertion expires",
        )
    if expires - now > 600 + 5 or expires - issued > 660:
        raise ApiError(401, "'Expiration time' claim ('exp') is too far in the future")


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What a token request asked for; None means everything the installation has."""

    repositories: tuple[str, ...] | None = None
    repository_ids: tuple[int, ...] | None = None
    permissions: Mapping[str, str] | None = None


def mint(world: World, installation: Installation, narrowing: Narrowing) -> InstallationToken:
    """A token for one hour. Asking for more than the installation has is refused, never cut down."""
    if installation.suspended_at is not None:
        raise forbidden("This installation has been suspended")
    token = InstallationToken(
        text=_token_text(world.app),
        installation=installation,
        permissions=_narrow_permissions(installation, narrowing.permissions),
        repository_ids=_narrow_repositories(world, installation, narrowing),
        expires_at=world.clock.now() + timedelta(hours=1),
    )
    world.registry.tokens[token.text] = token
    world.journal.count("tokens minted")
    return token


def _narrow_permissions(installation: Installation, asked: Mapping[str, str] | None) -> dict[str, str]:
    if not asked:  # an empty object means all, and PyGithub sends one
        return dict(installation.permissions)
    for name, level in asked.items():
        if LEVELS.get(level, 9) > LEVELS[installation.permissions.get(name, "none")]:
            raise unprocessable("The permissions requested are not granted to this installation.")
    return {"metadata": "read", **asked}


def _narrow_repositories(world: World, installation: Installation, asked: Narrowing) -> frozenset[int] | None:
    if asked.repositories is None and asked.repository_ids is None:
        return None
    wanted = set(asked.repository_ids or ())
    for name in asked.repositories or ():
        full_name = f"{installation.account.login}/{name}"
        found = world.repository(full_name)
        wanted.add(found.id if found else -1)
    if len(wanted) > _LONGEST:
        raise unprocessable("Too many repositories requested: the limit is 500.")
    if not wanted or not wanted <= installation.repository_ids:
        raise unprocessable(
            "There is at least one repository that does not exist or is not accessible to the parent installation."
        )
    return frozenset(wanted)


def _token_text(app: App) -> str:
    """The stateless form: ghs_APPID_ and something that looks like a JWT."""
    head = base64.urlsafe_b64encode(json.dumps({"alg": "ES256", "typ": "JWT"}).encode()).decode().rstrip("=")
    return f"ghs_{app.id}_{head}.{secrets.token_urlsafe(120)}.{secrets.token_urlsafe(64)}"
