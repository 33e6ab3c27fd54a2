"""Compiles the deny-list for every architecture into the data files beside this module: `python -m bot.sandboxd.seccomp.build`."""

from __future__ import annotations

import json
from pathlib import Path

from bot.sandboxd.seccomp.assembler import assemble, encode
from bot.sandboxd.seccomp.rules import MACHINES, Machine, rules_for


def compiled(machine: Machine) -> str:
    """The text of that architecture's data file."""
    instructions = assemble(machine.architecture, rules_for(machine), foreign_bit=machine.foreign_bit)
    rows = encode(instructions).hex(" ", 8).split(" ")
    return json.dumps({"architecture": machine.name, "instructions": rows}, indent=0) + "\n"


def main() -> None:
    """Write the files."""
    for machine in MACHINES:
        Path(__file__).with_name(f"{machine.name}.json").write_text(compiled(machine), encoding="ascii")


if __name__ == "__main__":
    main()
