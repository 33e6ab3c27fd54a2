"""The operator's configuration: read once from the environment, then passed on. Standard variables keep their owners' names."""

from __future__ import annotations

import io
import os
import socket
import stat
from collections.abc import Mapping
from decimal import Decimal
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import AfterValidator, Field, PrivateAttr, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from bot.domain.errors import UserError
from bot.policy.engine import Policies, check
from bot.policy.limits import Limits
from bot.policy.sources import PolicyFault, Source

PROJECT = Path(__file__).resolve().parent.parent
APP_FILE = "app.env"
"""Under the home: the App that `pullwright setup` made, as lines `NAME='value'`."""
APP_VARIABLES: Mapping[str, str] = {
    "PULLWRIGHT_APP_ID": "app_id",
    "PULLWRIGHT_PRIVATE_KEY_FILE": "private_key_file",
    "PULLWRIGHT_WEBHOOK_SECRET": "webhook_secret",
}
"""What names an App, as variables and as fields. Only these are read from that file."""


def _default_home() -> Path:
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local/share") / "pullwright"


class Settings(BaseSettings):
    """Every setting the product knows. `pullwright doctor` shows which are set, never their values."""

    model_config = SettingsConfigDict(
        env_prefix="PULLWRIGHT_", extra="ignore", env_ignore_empty=True, populate_by_name=True, frozen=True
    )

    home: Annotated[Path, AfterValidator(Path.absolute)] = Field(
        default_factory=_default_home, description="where the product keeps its data"
    )
    app_id: str = Field(default="", description="the GitHub App's id or client id")
    private_key_file: Path | None = Field(default=None, description="file with the App's private key (PEM)")
    webhook_secret: SecretStr = Field(default=SecretStr(""), description="the App's webhook secret")
    webhook_secret_previous: SecretStr = Field(
        default=SecretStr(""), description="the secret before a rotation, still accepted"
    )
    audit_token: SecretStr = Field(
        default=SecretStr(""), description="a read-only token of GitHub for `pullwright audit`, and for nothing else"
    )
    github_api_url: str = Field(default="https://api.github.com", description="GitHub's API")
    label: str = Field(default="agent", description="the label that starts a task")
    budget_usd: Annotated[Decimal, Field(ge=0)] = Field(
        default=Decimal("0.50"), description="budget of a task in dollars"
    )
    rounds_per_pull: int = Field(default=5, ge=0, description="rounds of review worked in on one pull request")
    requests_per_user_hour: int = Field(
        default=100, ge=0, description="tasks and rounds one person may ask for in an hour"
    )
    requests_per_repository_day: int = Field(
        default=300, ge=0, description="tasks and rounds of one repository in a day"
    )
    usd_per_day: Annotated[Decimal, Field(ge=0)] = Field(
        default=Decimal(100), description="what all tasks together may spend in a day, in dollars"
    )
    planner_model: str = Field(default="claude-opus-5-5", description="model that plans")
    coder_model: str = Field(default="claude-sonnet-5-5", description="model that works the steps")
    coder_thinking: Literal["adaptive", "between_tools"] = Field(
        default="adaptive", description="thinking of the coder; between_tools turns it off"
    )
    template: str = Field(default="pullwright", description="sandbox template")
    dashboard_password: SecretStr = Field(
        default=SecretStr(""),
        description="password of the dashboard and of /metrics; without one they are open to whoever reaches them",
    )
    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=8787, ge=0, le=65535, description="port to listen on; 0 for one of its own choosing")
    executor_id: str = Field(default_factory=socket.gethostname, description="stable, unique name of this worker")
    egress: str = Field(default="", description="host:port pairs that sandboxes may reach, separated by commas")
    setup_egress: str = Field(
        default="",
        description="further host:port pairs for the repository's setup commands, shut before anything else runs",
    )
    weaker_isolation: bool = Field(
        default=False,
        description="serve where local sandboxes run without a system call filter; every approval summary then says so",
    )
    retention_days: int = Field(
        default=90,
        ge=31,
        description="days after which bodies of deliveries and checkpoints of ended tasks are forgotten",
    )
    policies: Path = Field(default=PROJECT / "policies", description="directory of the policies")
    tasks_at_once: int = Field(default=4, ge=1, description="segments that run at once in this process")
    polling_seconds: float = Field(default=0.3, gt=0, description="how soon queued work starts")

    anthropic_api_key: SecretStr = Field(default=SecretStr(""), validation_alias="ANTHROPIC_API_KEY")
    anthropic_base_url: str = Field(default="https://api.anthropic.com", validation_alias="ANTHROPIC_BASE_URL")
    e2b_api_key: SecretStr = Field(default=SecretStr(""), validation_alias="E2B_API_KEY")
    e2b_api_url: str = Field(default="", validation_alias="E2B_API_URL")
    e2b_sandbox_url: str = Field(default="", validation_alias="E2B_SANDBOX_URL")
    voyage_api_key: SecretStr = Field(default=SecretStr(""), validation_alias="VOYAGE_API_KEY")
    voyage_base_url: str = Field(default="", description="another address of the embeddings service")
    voyage_model: str = Field(default="voyage-code-4", description="model that embeds summaries")
    voyage_dimension: int = Field(default=1024, description="numbers of a vector: 256, 512, 1024 or 2048")
    summary_budget_usd: Decimal = Field(
        default=Decimal(0),
        ge=0,
        description="dollars that summaries of one repository may cost, made when the App comes to it",
    )
    summary_model: str = Field(default="claude-haiku-5-5", description="model that summarises files, in batches")
    database_url: str = Field(
        default="", pattern=r"^(postgres(ql)?(\+psycopg)?://.+|sqlite:///.+)?$", validation_alias="DATABASE_URL"
    )

    http_proxy: str = Field(default="", validation_alias="HTTP_PROXY", repr=False)
    https_proxy: str = Field(default="", validation_alias="HTTPS_PROXY", repr=False)
    all_proxy: str = Field(default="", validation_alias="ALL_PROXY", repr=False)
    no_proxy: str = Field(default="", validation_alias="NO_PROXY")

    _app_file: Path | None = PrivateAttr(default=None)

    @property
    def app_file(self) -> Path | None:
        """The file that names the App; None when the environment does, or nothing."""
        return self._app_file

    def proxy(self, address: str) -> str | None:
        """The proxy on the way to an address, as HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY say; None: straight, as always on
        this machine. Raises UserError for one that is no HTTP proxy."""
        parts = urlsplit(address)
        host = parts.hostname or ""
        name = "HTTP_PROXY" if parts.scheme == "http" else "HTTPS_PROXY"
        given = {"HTTP_PROXY": self.http_proxy, "HTTPS_PROXY": self.https_proxy}[name] or self.all_proxy
        if not given or is_loopback(host) or _spared(host, _listed(self.no_proxy)):
            return None
        proxy = given if "://" in given else f"http://{given}"
        if not proxy.startswith(("http://", "https://")):
            raise UserError(
                f"{name} or ALL_PROXY names a proxy that is not HTTP, and {host} would be asked through it.",
                f"Name an HTTP proxy, or add {host} to NO_PROXY.",
            )
        return proxy

    def names_app(self) -> bool:
        """Whether any variable of an App is set."""
        return bool(self.app_id or self.private_key_file or self.webhook_secret.get_secret_value())

    def hosts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What sandboxes may reach always, and what they may reach only during set-up."""
        return _listed(self.egress), _listed(self.setup_egress)

    def database(self) -> str:
        """`DATABASE_URL`, or a SQLite file under the home."""
        return self.database_url or f"sqlite:///{self.home / 'pullwright.db'}"

    def untouched(self) -> bool:
        """Whether nothing was ever stored here: no database is named, and the home has none."""
        return not self.database_url and not (self.home / "pullwright.db").exists()

    def engine_database(self) -> str:
        """The durable engine's rows: the same server when it is PostgreSQL, a file of its own when it is SQLite."""
        return self.database_url or f"sqlite:///{self.home / 'engine.db'}"

    def private_key(self) -> str:
        """The App's key. Raises UserError when it is not configured or cannot be read."""
        if self.private_key_file is None:
            raise UserError("No private key is configured.", "Set PULLWRIGHT_PRIVATE_KEY_FILE to the App's PEM file.")
        try:
            text = self.private_key_file.read_text("ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(
                f"The App's private key cannot be read: {error}.", "Check PULLWRIGHT_PRIVATE_KEY_FILE."
            ) from error
        if "PRIVATE KEY-----" not in text:
            raise UserError(
                f"{self.private_key_file} holds no private key (PEM).", "Check PULLWRIGHT_PRIVATE_KEY_FILE."
            )
        return text

    def required_for_models(self) -> None:
        """Raises UserError when no model can be asked."""
        if not self.anthropic_api_key.get_secret_value():
            raise UserError("ANTHROPIC_API_KEY is not set (the key for the model).", "export ANTHROPIC_API_KEY=…")

    def required_for_serving(self) -> None:
        """Raises UserError naming the first setting without which nothing can be served."""
        self.required_for_working(
            (self.webhook_secret.get_secret_value(), "PULLWRIGHT_WEBHOOK_SECRET", "the App's webhook secret")
        )

    def required_for_working(self, *more: tuple[str, str, str]) -> None:
        """Raises UserError naming the first setting without which no task can be worked; `more` are others to ask for."""
        needed = (
            (self.app_id, "PULLWRIGHT_APP_ID", "the App's id"),
            *more,
            (self.anthropic_api_key.get_secret_value(), "ANTHROPIC_API_KEY", "the key for the model"),
        )
        for value, name, meaning in needed:
            if not value:
                raise UserError(f"{name} is not set ({meaning}).", "README.md, “Connect your App”, shows all of them.")
        self.private_key()


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its name or number."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _spared(host: str, entries: tuple[str, ...]) -> bool:
    """Whether NO_PROXY names a host: by itself, by a domain it is in, by a network, or with everything."""
    domains = {entry.lower().removeprefix("*").lstrip(".") for entry in entries}
    if "*" in entries or any(host == domain or host.endswith(f".{domain}") for domain in domains if domain):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return any(address in network for network in map(_network, domains) if network is not None)


def _network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def load() -> Settings:
    """Read the environment once, and `app.env` under the home when the environment names no App at all: two are never mixed.

    Raises UserError that names the variable when a value is not usable, or the file when it cannot be trusted.
    """
    settings = _checked({})
    file = settings.home / APP_FILE
    named = None if settings.names_app() else _app_of(file)
    if named is None:
        return settings
    settings = _checked(named)
    settings._app_file = file  # noqa: SLF001 - what is read where is this module's business
    return settings


def _checked(given: Mapping[str, str]) -> Settings:
    try:
        return Settings(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "a setting"
        variable = name if name.isupper() else f"PULLWRIGHT_{name.upper()}"
        raise UserError(f"{variable} cannot be used: {first['msg']}.", "Correct it and start again.") from None


def _app_of(file: Path) -> dict[str, str] | None:
    """Fields by what the file says of the App; None when there is none. Raises UserError when it is not ours alone, or unreadable."""
    try:
        with file.open(encoding="utf-8") as opened:
            state = os.fstat(opened.fileno())
            if state.st_uid != os.geteuid() or stat.S_IMODE(state.st_mode) & 0o077:
                raise UserError(
                    f"{file} holds the App's secrets and is not yours alone.",
                    f"Make it so: chown {os.geteuid()} {file}; chmod 600 {file}. If others could read it, change the secrets, too.",
                )
            told = dotenv_values(stream=io.StringIO(opened.read()), interpolate=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UserError(f"{file} cannot be read: {why}.", "pullwright setup makes it anew when it is gone.") from error
    return {field: value for name, field in APP_VARIABLES.items() if (value := told.get(name))}


def load_policies(directory: Path) -> Policies:
    """The operator's rules as they stand in a directory; a missing file is a fault, so everything is denied."""
    try:
        sources = [Source(path.name, path.read_text("utf-8")) for path in sorted(directory.glob("*.cedar"))]
        schema = (directory / "schema.cedarschema").read_text("utf-8")
        limits = (directory / "limits.toml").read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fault = PolicyFault(directory.name, None, f"cannot be read: {error.__class__.__name__}")
        return Policies((), "", Limits(), faults=(fault,))
    return check(sources, schema, limits)
