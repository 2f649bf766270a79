"""Forked children, in which no thread of another test is at work."""

import multiprocessing
import os
import signal

import pytest

DEADLINE = 60.0


def in_child(job):
    """What a function gives in a forked child, which has to end in time."""
    end, child_end = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:  # no pytest in here
        signal.alarm(int(2 * DEADLINE))  # nor anything that outlives it
        try:
            child_end.send(job())
        finally:
            os._exit(0)
    child_end.close()
    try:
        if not end.poll(DEADLINE):
            pytest.fail("the child hangs")
        return end.recv()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
