"""`temporalnmf` and `python -m temporalnmf`."""

import sys


def main() -> None:
    """Run the command line, or say how to install it."""
    try:
        from .cli import app
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich"}:
            raise
        sys.exit('The command line needs an extra: pip install "temporalnmf[cli]".')
    app(prog_name="temporalnmf")


if __name__ == "__main__":
    main()
