"""The command `pullwright`. Imports of what a command needs stand inside it, so that `--help` answers at once."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from bot.commands import reports, setup
from bot.commands.arguments import Commit, Directory, Json, Policies, Port, Query, Repository

app = typer.Typer(
    name="pullwright",
    help="Label an issue. Get a tested draft pull request. Nothing merges except the exact change a person approved.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
emulate_app = typer.Typer(help="Run a strict local stand-in of a service by hand.", no_args_is_help=True)
policy_app = typer.Typer(help="Check and explain the policies.", no_args_is_help=True)
app.add_typer(emulate_app, name="emulate")
app.add_typer(policy_app, name="policy")
pin_app = typer.Typer(
    help="Use plugins, actions and skills from one commit only, checked on disk.", no_args_is_help=True
)
app.add_typer(pin_app, name="pin")


_ALLOCATIONS = 50_000
"""The collector looks for garbage so seldom: the libraries of a command are some million objects that stay, and to go through them
again and again while they load is a fifth of the time until a server is ready."""


def main() -> None:
    """Entry point."""
    from bot.commands.exits import bounded
    from bot.commands.proxies import spare_this_machine

    spare_this_machine(os.environ)
    gc.set_threshold(_ALLOCATIONS)
    bounded(app)


def _fail(message: str, hint: str = "") -> NoReturn:
    from bot.commands.exits import fail

    fail(message, hint)


def _announce(line: str) -> None:
    print(line, flush=True)


@app.command()
def demo(
    as_json: Json = False,
    serve: Annotated[bool, typer.Option("--serve", help="Keep everything up at the end, to look around.")] = False,
    model: Annotated[
        str, typer.Option(help="`scripted` needs no key; `real` asks the real models (ANTHROPIC_API_KEY).")
    ] = "scripted",
) -> None:
    """Tell the whole story on local stand-ins: issue, label, plan, sandbox, tests, draft, review, merge."""
    import asyncio

    from bot.demo.story import DemoOptions, tell

    if model not in {"scripted", "real"}:
        raise typer.BadParameter("it is `scripted` or `real`", param_hint="--model")
    sys.exit(asyncio.run(tell(DemoOptions(as_json=as_json, keep=serve, model=model))))


@app.command()
def run(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What is wanted, in words.")],
    repo: Annotated[Path, typer.Option(metavar="DIR", help="A clone with your project.")] = Path(),
    base: Annotated[str, typer.Option(help="Branch to work on; the one that is checked out when not given.")] = "",
    as_json: Json = False,
) -> None:
    """Work a task on a local clone, without GitHub: plan, change, tests, diff; commits what you approve by its digest."""
    import asyncio

    from bot.commands.run import Request
    from bot.commands.run import run as work
    from bot.settings import load

    sys.exit(asyncio.run(work(load(), Request(repo, task, _announce, base, as_json))))


@app.command()
def serve() -> None:
    """Receive webhooks, show the dashboard and work tasks, configured by the environment (README, “Connect your App”)."""
    import asyncio

    from bot.commands.serve import serve as run
    from bot.settings import load

    settings = load()
    settings.required_for_serving()
    asyncio.run(run(settings, announce=_announce))


@app.command()
def worker() -> None:
    """Work tasks that `pullwright serve` receives elsewhere: the same PostgreSQL (DATABASE_URL) and PULLWRIGHT_HOME."""
    import asyncio

    from bot.commands.worker import work
    from bot.settings import load

    settings = load()
    settings.required_for_working()
    asyncio.run(work(settings, announce=_announce))


@app.command()
def sandboxd(
    as_json: Json = False,
    port: Port = 0,
) -> None:
    """Serve local sandboxes that the e2b SDK can talk to, until SIGTERM."""
    import asyncio
    import secrets

    from bot.sandboxd.errors import IsolationUnavailable
    from bot.sandboxd.serve import Config, Endpoint, serve_forever
    from bot.settings import load

    settings = load()
    key = settings.e2b_api_key.get_secret_value() or secrets.token_urlsafe(24)

    def announce(endpoint: Endpoint) -> None:
        values = {"api_url": endpoint.api_url, "sandbox_url": endpoint.sandbox_url, "api_key": endpoint.api_key}
        lines = [f"{name.upper()}={value}" for name, value in values.items()]
        _announce(json.dumps(values) if as_json else "\n".join(f"E2B_{line}" for line in lines))

    try:
        asyncio.run(serve_forever(Config(home=settings.home, api_key=key, port=port), announce))
    except IsolationUnavailable as refusal:
        _fail(str(refusal))


@emulate_app.command("github")
def emulate_github(
    seed: Annotated[Path | None, typer.Option(help="TOML or JSON file with users and repositories.")] = None,
    webhook_url: Annotated[str | None, typer.Option(help="Who receives the webhooks.")] = None,
    port: Port = 0,
    as_json: Json = False,
) -> None:
    """GitHub: App, repositories with real git, issues, pulls, reviews, checks, webhooks."""
    import asyncio

    from bot.emulators.github.config import Config, Seed, load_seed
    from bot.emulators.github.server import serve_forever

    try:
        world = load_seed(seed) if seed is not None else Seed()
    except (OSError, ValueError, TypeError) as error:
        _fail(f"{seed} is no seed: {error}.")
    say = _announcer(as_json)
    config = Config(seed=world, webhook_url=webhook_url, port=port)
    asyncio.run(serve_forever(config, lambda values: say(json.dumps(values))))


@emulate_app.command("anthropic")
def emulate_anthropic(
    brain: Annotated[str, typer.Option(help="demo, echo, scripted:FILE, or package.module:attribute.")] = "echo",
    port: Port = 0,
    as_json: Json = False,
) -> None:
    """The Messages API: validation, thinking, exact cache accounting, with a scripted model behind it."""
    import asyncio

    from bot.demo.brain import DemoBrain
    from bot.emulators.anthropic.brains import named, register
    from bot.emulators.anthropic.server import serve_forever
    from bot.emulators.anthropic.state import Config

    register("demo", lambda _: DemoBrain())
    try:
        chosen = named(brain)
    except (ValueError, ImportError, AttributeError, OSError, KeyError, TypeError, SyntaxError) as error:
        _fail(f"no brain {brain!r}: {error}.")
    asyncio.run(serve_forever(Config(brain=chosen, port=port), _announcer(as_json)))


@emulate_app.command("voyage")
def emulate_voyage(port: Port = 0, as_json: Json = False) -> None:
    """The embeddings endpoint of Voyage."""
    import asyncio

    from bot.emulators.voyage.server import Config, serve_forever

    asyncio.run(serve_forever(Config(port=port), _announcer(as_json)))


def _announcer(as_json: bool) -> Callable[[str], None]:
    def announce(line: str) -> None:
        if as_json:
            _announce(line)
            return
        for name, value in json.loads(line).items():
            _announce(f"{name}: {value if isinstance(value, str) else json.dumps(value)}")

    return announce


@app.command()
def digest(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A clone that has both commits.")],
    base: Annotated[str, typer.Argument(metavar="BASE", help="Commit of the base branch.")],
    head: Annotated[str, typer.Argument(metavar="HEAD", help="Commit of the change.")],
    base_ref: Annotated[str, typer.Option(help="Name of the base branch, part of the digest.")],
    as_json: Json = False,
) -> None:
    """Print the change digest that an approval of HEAD into BASE stands for."""
    from bot.commands import digest as command

    _announce(command.digest(directory, base, head, base_ref, as_json=as_json))


@app.command()
def replay(
    delivery: Annotated[Path, typer.Argument(metavar="DELIVERY.json", help="A payload, or {event, payload}.")],
    event: Annotated[str, typer.Option(help="X-GitHub-Event, when the file holds a bare payload.")] = "",
    as_json: Json = False,
) -> None:
    """Show what a webhook delivery would lead to, and why. Nothing is done."""
    from bot.commands.replay import replay_file

    _announce(replay_file(delivery, event, as_json=as_json))


@app.command()
def index(
    directory: Directory,
    as_json: Json = False,
    summaries: Annotated[
        bool, typer.Option("--summaries", help="Also summarise files by a model; the cost is shown first.")
    ] = False,
    budget: Annotated[
        float, typer.Option(help="Dollars that the summaries of DIR may cost in all.", min=0, max=1_000_000)
    ] = 5.0,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before spending.")] = False,
) -> None:
    """Build the index of DIR, or bring it up to date."""
    from bot.commands import index as command
    from bot.settings import load

    settings = load()
    place = command.place_of(directory, settings.home)
    if summaries:
        from bot.commands.summaries import run

        _announce(run(place, settings, budget, yes=yes, as_json=as_json))
    else:
        _announce(command.told_report(command.build(place), as_json=as_json))


@app.command()
def search(
    directory: Directory,
    query: Query,
    most: Annotated[int, typer.Option("-k", help="How many files at most.", min=1)] = 10,
    as_json: Json = False,
    paths: Annotated[
        bool, typer.Option("--paths", help="Print bare paths, best first; odd ones in quotes, as git does.")
    ] = False,
    nul: Annotated[bool, typer.Option("-z", help="Print bare paths as they are, each ended by NUL.")] = False,
) -> None:
    """Rank the files of DIR by how near they are to a task, with reasons."""
    from bot.commands import index as command
    from bot.settings import load

    ranked = command.search(directory, command.query_of(query), load())[:most]
    told = command.told_ranking(ranked, as_json=as_json, paths=paths).encode()
    sys.stdout.buffer.write(command.bare_paths(ranked) if nul else told)


@app.command()
def context(
    directory: Directory,
    query: Query,
    tokens: Annotated[int, typer.Option(help="How long the text may be, by three bytes a token.", min=100)] = 30_000,
    as_json: Json = False,
) -> None:
    """Print the text that a model would see first about a task; with --json, the parts of files in it."""
    from bot.commands import index as command
    from bot.settings import load

    found = command.context(directory, command.query_of(query), tokens, load())
    _announce(command.told_context(found, as_json=as_json, terminal=sys.stdout.isatty()))


@app.command()
def doctor(as_json: Json = False) -> None:
    """Check this machine and the configuration; values of secrets are never shown."""
    import asyncio

    from bot.commands.doctor import examine, render
    from bot.settings import load

    findings = asyncio.run(examine(load()))
    _announce(render(findings, as_json=as_json))
    sys.exit(1 if any(finding.blocks for finding in findings) else 0)


@app.command()
def audit(
    organisation: Annotated[str, typer.Argument(metavar="ORG", help="The organisation's name on GitHub.")],
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What no API knows, in TOML (docs/operating.md, “Audit”).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Look for what is wrong in an organisation, with PULLWRIGHT_AUDIT_TOKEN; nothing is changed. Exit 0 when nothing was found,
    3 low, 4 unreadable, 5 medium, 6 high at worst."""
    import asyncio

    from bot.commands import audit as command
    from bot.settings import load

    found = asyncio.run(command.audit(load(), organisation, config))
    _announce(command.told(found, as_json=as_json))
    sys.exit(command.exit_code(found))


app.command("setup")(setup.setup)
app.command("costs")(reports.costs)
app.command("trace")(reports.trace)
app.command("eval")(reports.evaluate)


@policy_app.command("check")
def policy_check(directory: Policies = None, as_json: Json = False) -> None:
    """Validate the policies against their schema and try their cases."""
    from bot.commands.policy import check, told_check
    from bot.settings import load

    where = directory or load().policies
    checked = check(where)
    _announce(told_check(checked, where, as_json=as_json))
    sys.exit(0 if checked.fine else 1)


@policy_app.command("explain")
def policy_explain(
    asked: Annotated[
        list[str],
        typer.Argument(
            metavar="CASE | PRINCIPAL ACTION RESOURCE",
            help="A case file (policies/cases has some); or, say, `person:write approve src/a.py,ci.yml`.",
        ),
    ],
    directory: Policies = None,
    repository: Annotated[
        Path | None, typer.Option("--repository-policy", help="A repository's own rules (.github/pullwright.cedar).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say which rules decide one question, where they stand and why. Exit 1 when it is denied, or not as a case expects."""
    from bot.commands import policy
    from bot.settings import load, load_policies

    policies = load_policies(directory or load().policies)
    explained = policy.explain(policies, policy.asked(asked, policies.limits, repository))
    _announce(policy.told_explanation(explained, as_json=as_json))
    sys.exit(0 if explained.as_expected or (explained.as_expected is None and explained.decision.allowed) else 1)


@pin_app.command("place")
def pin_place(repository: Repository, commit: Commit, directory: Path, as_json: Json = False) -> None:
    """Put the files of exactly this commit into a new directory, and prove that its tree stands there."""
    import asyncio

    from bot.commands import pins
    from bot.settings import load

    placed = asyncio.run(pins.place(load(), repository, commit, directory))
    _announce(pins.told(placed, as_json=as_json))


@pin_app.command("check")
def pin_check(repository: Repository, commit: Commit, directory: Path, as_json: Json = False) -> None:
    """Prove that a directory still holds exactly the files of this commit, hidden ones included. Exit 2 when it does not."""
    import asyncio

    from bot.commands import pins
    from bot.settings import load

    placed = asyncio.run(pins.check(load(), repository, commit, directory))
    _announce(pins.told(placed, as_json=as_json))
