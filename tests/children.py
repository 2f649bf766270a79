"""Forked children, in which no thread of another test is at work."""

import multiprocessing
import os
import signal

import pytest

HUNG = 900  # seconds; the limit on a hung test in pyproject.toml


def in_child(job):
    """What a function gives in a forked child."""
    end, child_end = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:  # no pytest in here
        signal.alarm(HUNG)  # nor anything that outlives a hung test
        try:
            child_end.send(job())
        finally:
            os._exit(0)
    child_end.close()
    try:
        return end.recv()
    except EOFError:
        pytest.fail("the child ended without a result")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
