"""Commands of the command line, for tests."""

import os
import subprocess
import sys

from typer.testing import CliRunner

from temporalnmf.cli import app


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def started(*words, **options):
    """A process of a command, whose output and errors are pipes unless given."""
    program = [sys.executable, "-m", "temporalnmf", *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(program, **{"stdout": pipe, "stderr": pipe, **options})


def in_terminal(*words):
    """What a command that has to succeed prints, and what its errors show in a terminal."""
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "150"}
    process = started(*words, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # Linux ends a terminal without a listener so
        pass
    os.close(ours)
    output = process.communicate()[0]
    assert process.returncode == 0
    return output, shown


def changed(patch, *words):
    """The exit code of a command in a process of its own, after some lines that change its code."""
    program = f"{patch}\nfrom temporalnmf.__main__ import main\nmain()\n"
    command = [sys.executable, "-c", program, *map(str, words)]
    return subprocess.run(command, capture_output=True, check=False).returncode


def done(*words):
    """The output of a command that has to succeed."""
    result = invoke(*words)
    assert result.exit_code == 0, f"{result.output}{result.exception!r}"
    return result


def refused(*words):
    """What a command says that has to refuse its input."""
    result = invoke(*words)
    assert result.exit_code == 2, f"{result.output}{result.exception!r}"
    assert "Traceback" not in result.output
    return " ".join(result.stderr.split())
