"""The room `inside` as one file that the sandbox's Python runs, whatever stands there; the same bytes every time.

It is run again for each act, so what counts is how soon it begins: no archive to open, no `site`, and where the sandbox has this
process's own version of Python, nothing to compile.
"""

from __future__ import annotations

import marshal
import zlib
from base64 import b64encode
from functools import cache
from importlib.resources import files
from importlib.util import MAGIC_NUMBER

_ROOM = "bot.custody.inside"
_PLAIN = 2
"""The form of `marshal` that does not depend on how often an object happens to be referred to."""

_RUN = """
import binascii, marshal, sys, zlib

KNOWN = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER == MAGIC
Spec = type(sys.__spec__)


class Room:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return Spec(name, Room, is_package=name in PACKAGES) if name in PACKAGES or name in SOURCES else None

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        name = module.__name__
        if name in SOURCES:
            given = zlib.decompress(binascii.a2b_base64((COMPILED if KNOWN else SOURCES)[name]))
            exec(marshal.loads(given) if KNOWN else compile(given, name, "exec"), module.__dict__)


sys.meta_path.insert(0, Room)
from bot.custody.inside.main import main

sys.exit(main())
"""


@cache
def script() -> bytes:
    """For `python3 -I -S FILE ACT WORK STATE [NAME VALUE]…` (`inside/main.py`)."""
    parts = sorted((part.name, part.read_bytes()) for part in files(_ROOM).iterdir() if part.name.endswith(".py"))
    texts = {f"{_ROOM}.{name.removesuffix('.py')}": text for name, text in parts if name != "__init__.py"}
    given = {
        "MAGIC": MAGIC_NUMBER,
        "PACKAGES": ("bot", "bot.custody", _ROOM),
        "SOURCES": {name: _packed(text) for name, text in texts.items()},
        "COMPILED": {name: _packed(_compiled(name, text)) for name, text in texts.items()},
    }
    return ("".join(f"{name} = {value!r}\n" for name, value in given.items()) + _RUN).encode("ascii")


def _packed(data: bytes) -> bytes:
    return b64encode(zlib.compress(data, 9))


def _compiled(name: str, text: bytes) -> bytes:
    return marshal.dumps(compile(text, name, "exec", dont_inherit=True, optimize=2), _PLAIN)
