"""`temporalnmf` and `python -m temporalnmf`."""

import os
import signal
import sys
from typing import NoReturn

from .runtime.signals import exit_code, not_raised, nothing, so_far, stop, stop_that_came, tell_by


def main() -> None:
    """Run the command line, or say how to install it."""
    tell_by(nothing)
    sys.unraisablehook = not_raised
    # For the process that tidies up after workers of joblib: of a command that was terminated it
    # may miss what is gone already.
    known = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [known, "ignore:resource_tracker"]))
    signal.signal(signal.SIGTERM, stop)
    # Who is started in the background by a shell is to ignore Ctrl-C, and goes on doing so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop)
    try:
        try:
            run()
        finally:
            ignore_stops()
    except KeyboardInterrupt as stopped:
        ignore_stops()
        if isinstance(ended := stopped.__context__, SystemExit):  # it came when all was done
            raise ended from None
        _end(stopped)  # before a command has begun; those speak for themselves
    except SystemExit as end:
        # Typer takes a stop that comes so early, says nothing, and knows only of Ctrl-C.
        behind = getattr(end.__context__, "__cause__", None)
        if not isinstance(behind, KeyboardInterrupt):
            raise
        _end(behind)
    except Exception:
        # An import that is cut short fails in words of its own.
        if (swallowed := stop_that_came()) is None:
            raise
        _end(swallowed)


def ignore_stops() -> None:
    """All is said and done. What is left is to send workers home, which is not to be cut short."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _end(stopped: KeyboardInterrupt) -> NoReturn:
    sys.stderr.write(f"{so_far()}\n")
    sys.exit(exit_code(stopped))


def run() -> None:
    try:
        from .cli import app
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich"}:
            raise
        sys.exit('The command line needs an extra: pip install "temporalnmf[cli]".')
    app(prog_name="temporalnmf")


if __name__ == "__main__":
    main()
