"""Unit tests decide on values; a socket in one of them is a mistake."""

import socket

import pytest


@pytest.fixture(autouse=True)
def _no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.socket.connect

    def refuse(self: socket.socket, address: object) -> None:
        if self.family == socket.AF_UNIX:
            return real(self, address)  # type: ignore[arg-type]
        raise AssertionError(f"a unit test opened a connection to {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
