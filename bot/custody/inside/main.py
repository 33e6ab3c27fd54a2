"""The command line of the script."""

from __future__ import annotations

import argparse
import json
import os
import sys

from bot.custody.inside.disk import Place, Stop
from bot.custody.inside.fill import populate
from bot.custody.inside.settle import settle
from bot.custody.inside.tell import capture


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("act", choices=["populate", "settle", "capture"])
    for name in ("--work", "--state", "--tree"):
        parser.add_argument(name, required=True)
    parser.add_argument("--nonce", default="")
    parser.add_argument("--parts", type=int, default=0)
    parser.add_argument("--max-bytes", type=int, default=64 << 20)
    args = parser.parse_args()
    os.umask(0o022)
    place = Place(args.work, args.state)
    try:
        said = {"populate": populate, "settle": settle, "capture": capture}[args.act](place, args)
    except Stop as stop:
        sys.stdout.write(json.dumps(stop.said) + "\n")
        return stop.code
    sys.stdout.write(json.dumps(said) + "\n")
    return 0
