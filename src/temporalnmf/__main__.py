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
    # joblib's resource tracker, a process, may miss resources that a terminated command freed.
    known = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [known, "ignore:resource_tracker"]))
    signal.signal(signal.SIGTERM, stop)
    # Shells start background commands with SIGINT ignored: leave it so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop)
    try:
        try:
            run()
        finally:
            ignore_stops()
    except KeyboardInterrupt as stopped:
        ignore_stops()
        if isinstance(ended := stopped.__context__, SystemExit):  # the command had ended
            raise ended from None
        _end(stopped)  # before the command began; commands print their own messages
    except SystemExit as end:
        # Typer turns such an early signal into exit code 130, even for SIGTERM, without a message.
        behind = getattr(end.__context__, "__cause__", None)
        if not isinstance(behind, KeyboardInterrupt):
            raise
        _end(behind)
    except Exception:
        # An interrupted import may raise another exception.
        if (swallowed := stop_that_came()) is None:
            raise
        _end(swallowed)


def ignore_stops() -> None:
    """Ignore further signals, so that the shutdown of workers is not interrupted."""
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
