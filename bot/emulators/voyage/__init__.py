"""A strict stand-in of Voyage's embeddings endpoint, with vectors from hashed words."""

from bot.emulators.voyage.faults import Fault, Kind
from bot.emulators.voyage.server import Endpoint, running, serve_forever
from bot.emulators.voyage.state import Config, State

__all__ = ["Config", "Endpoint", "Fault", "Kind", "State", "running", "serve_forever"]
