"""A PostgreSQL server of the tests' own: a fresh cluster in a temporary directory, on a loopback port, ended with the block or
with the process that runs it."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import OperationalError

_SECONDS = 60
_OWNER = "pullwright"


def binaries() -> Path:
    """Where `initdb` and `postgres` are. Raises RuntimeError that says what to install."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    on_path = shutil.which("postgres")
    for directory in (*reversed(found), *([Path(on_path).resolve().parent] if on_path else [])):
        if (directory / "initdb").exists():
            return directory
    raise RuntimeError("These tests need PostgreSQL: run make setup, or apt-get install postgresql.")


@contextmanager
def server() -> Iterator[str]:
    """The address of an empty server. PostgreSQL refuses to run as root, so there it runs as its own user."""
    programs, user = binaries(), _user()
    root = Path(tempfile.mkdtemp(prefix="pullwright-postgres-"))
    if user is not None:
        shutil.chown(root, user)
    data, port = root / "data", _free_port()
    options = ("-c", "listen_addresses=127.0.0.1", "-c", f"port={port}", "-c", f"unix_socket_directories={root}")
    try:
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", _OWNER, "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"],
            user=user,
            cwd=root,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with (root / "log").open("wb") as log:
            running = subprocess.Popen(
                ["setpriv", "--pdeathsig", "SIGQUIT", programs / "postgres", "-D", data, *options, "-c", "fsync=off"],
                user=user,
                cwd=root,
                stdout=log,
                stderr=log,
            )
        try:
            url = f"postgresql://{_OWNER}@127.0.0.1:{port}/postgres"
            _wait(url, running, root / "log")
            yield url
            if running.poll() is not None:
                raise RuntimeError(f"PostgreSQL ended by itself:\n{_told(root / 'log')}")
        finally:
            running.terminate()
            running.wait(_SECONDS)
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextmanager
def database(server_url: str) -> Iterator[str]:
    """The address of a database of one's own on that server."""
    name = f"t{uuid4().hex}"
    _administer(server_url, f"CREATE DATABASE {name}")
    try:
        yield make_url(server_url).set(database=name).render_as_string(hide_password=False)
    finally:
        _administer(server_url, f"DROP DATABASE {name} WITH (FORCE)")


def empty(url: str) -> None:
    """Leave nothing in a database; whoever still holds something of it keeps this waiting, and after ten seconds fails it."""
    _administer(url, "SET lock_timeout = '10s'; DROP SCHEMA IF EXISTS public, dbos CASCADE; CREATE SCHEMA public")


def _administer(server_url: str, statement: str) -> None:
    url = make_url(server_url).set(drivername="postgresql+psycopg")
    engine = create_engine(url, isolation_level="AUTOCOMMIT", connect_args={"connect_timeout": 5})
    try:
        with engine.connect() as connection:
            connection.execute(text(statement))
    finally:
        engine.dispose()


def _wait(url: str, running: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline and running.poll() is None:
        try:
            _administer(url, "SELECT 1")
        except OperationalError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"PostgreSQL did not start:\n{_told(log)}")


def _told(log: Path) -> str:
    return log.read_text("utf-8", "replace")[-2000:]


def _user() -> str | None:
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
