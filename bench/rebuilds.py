"""A context is the same to the byte after every rebuild, in every process: rebuilds N times and counts the distinct texts.

  python -m bench.rebuilds DIR "QUERY" [--times 100]

Each rebuild is a fresh process with a hash seed of its own; every other index grows in two steps instead of one. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bot.retrieval.files import of_folder
from bot.retrieval.index import index_folder
from bot.retrieval.service import context_of_folder
from bot.retrieval.store import Store

TOKENS = 30_000


def once(root: Path, query: str, *, in_steps: bool) -> str:
    """Digest of the context from a new index."""
    with tempfile.TemporaryDirectory() as scratch:
        index = Path(scratch, "index.db")
        if in_steps:
            half = Path(scratch, "half")
            for file in of_folder(root, {}).files[::2]:
                if not file.state:
                    (half / file.path).parent.mkdir(parents=True, exist_ok=True)
                    (half / file.path).write_bytes((root / file.path).read_bytes())
            index_folder(Store(index), half)
        return hashlib.sha256(context_of_folder(index, root, query, TOKENS).text.encode("utf-8", "replace")).hexdigest()


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("query")
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--once", choices=("whole", "steps"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.once:
        print(once(given.root, given.query, in_steps=given.once == "steps"))
        return
    digests = set()
    for number in range(given.times):
        command = [
            sys.executable,
            "-m",
            "bench.rebuilds",
            str(given.root),
            given.query,
            "--once",
            ("whole", "steps")[number % 2],
        ]
        seeded = {**os.environ, "PYTHONHASHSEED": str(number)}
        digests.add(subprocess.run(command, env=seeded, check=True, capture_output=True, text=True).stdout.strip())
    print(json.dumps({"rebuilds": given.times, "distinct": len(digests), "sha256": sorted(digests)}))


if __name__ == "__main__":
    main()
