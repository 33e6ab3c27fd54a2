"""The command line of the script: an act, the work directory, the state directory, then names and values of an `Order`."""

from __future__ import annotations

import json
import os
import sys

from bot.custody.inside.disk import Order, Place, Stop
from bot.custody.inside.fill import populate
from bot.custody.inside.settle import settle
from bot.custody.inside.tell import capture

ACTS = {"populate": populate, "settle": settle, "capture": capture}


def main() -> int:
    act, work, state, *rest = sys.argv[1:]
    order = Order(**dict(zip(rest[::2], rest[1::2])))  # noqa: B905 - Python 3.8 knows no `strict`
    os.umask(0o022)
    try:
        said = ACTS[act](Place(work, state), order)
    except Stop as stop:
        sys.stdout.write(json.dumps(stop.said) + "\n")
        return stop.code
    sys.stdout.write(json.dumps(said) + "\n")
    return 0
