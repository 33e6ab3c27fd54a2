"""How a command ends when it cannot do its work: one sentence on standard error, exit code 2, never a traceback for what is no bug."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from bot.domain.errors import Transient, UserError

_PORT = frozenset({errno.EADDRINUSE, errno.EADDRNOTAVAIL})


def fail(message: str, hint: str = "") -> NoReturn:
    """Say what is wrong and what to do, then exit 2."""
    sys.stderr.write(f"pullwright: {message}\n" + (f"{hint}\n" if hint else ""))
    sys.exit(2)


def bounded(command: Callable[[], object]) -> None:
    """Run a command. What the caller or the machine has to put right becomes a sentence; an interrupt is quiet (130)."""
    try:
        command()
    except UserError as error:
        fail(error.message, error.hint)
    except Transient as error:
        fail(f"{error}.", "Check DATABASE_URL and PULLWRIGHT_HOME, then try again.")
    except BrokenPipeError:
        _hang_up()
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        fail(f"{error.strerror or error}{where}.", "Take another port, or 0." if error.errno in _PORT else "")
    except KeyboardInterrupt:
        sys.exit(130)


def _hang_up() -> NoReturn:
    """Nobody reads any more (`| head`): quietly, and so that nothing is written at the end either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)
