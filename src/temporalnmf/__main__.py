"""`temporalnmf` and `python -m temporalnmf`."""

import signal
import sys
from typing import NoReturn

from .stopping import exit_code, terminate


def main() -> None:
    """Run the command line, or say how to install it."""
    signal.signal(signal.SIGTERM, terminate)
    try:
        _run()
    except KeyboardInterrupt as stop:  # before a command has begun; those speak for themselves
        _end(stop)
    except SystemExit as end:
        # Typer takes a stop that comes so early, says nothing, and knows only of Ctrl-C.
        behind = getattr(end.__context__, "__cause__", None)
        if not isinstance(behind, KeyboardInterrupt):
            raise
        _end(behind)
    finally:
        # All is said and done. What is left is to send workers home, which is not to be cut short.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def _end(stop: KeyboardInterrupt) -> NoReturn:
    sys.stderr.write("Interrupted: nothing was written.\n")
    sys.exit(exit_code(stop))


def _run() -> None:
    try:
        from .cli import app
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich"}:
            raise
        sys.exit('The command line needs an extra: pip install "temporalnmf[cli]".')
    app(prog_name="temporalnmf")


if __name__ == "__main__":
    main()
