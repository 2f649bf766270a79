"""When a fit stops and what it says."""

import numpy as np
import pytest

from temporalnmf.solvers import Monitor

W, H = np.ones((3, 2)), np.ones((2, 4))


def _run(monitor, values):
    for value in values:
        if not monitor.running:
            break
        monitor.record(value, W, H, monitor.interval)
    return monitor


def test_a_fit_converges_on_the_relative_decrease():
    # Decreases per iteration: 3.5 tol, then 2.7 tol over the next three, then 0.2 tol over two.
    monitor = _run(Monitor(100, 1e-3), [-100.0, -100.35, -101.17, -101.21, -999.0])
    assert monitor.history == [-100.0, -100.35, -101.17, -101.21]
    assert monitor.iterations == [1, 2, 5, 7]
    assert monitor.converged
    assert monitor.reason == (
        "converged: relative decrease 2.0e-04 below tol=0.001 after 7 iterations"
    )


def test_the_objective_is_evaluated_every_ten_iterations_and_at_the_last():
    monitor = _run(Monitor(25, 1e-9), [5.0, 4.0, 3.0, 2.0, 1.0])
    assert monitor.iterations == [1, 2, 12, 22, 25]
    assert monitor.reason == "max_iter=25 reached, relative decrease still 3.3e-01"


def test_a_callback_does_not_change_when_the_objective_is_evaluated():
    values = [5.0, 4.0, 3.0, 2.0, 1.0]
    for watch in ({"callback": lambda progress: None}, {"verbose": 1}, {"verbose": 7}):
        assert _run(Monitor(25, 1e-9, **watch), values).iterations == [1, 2, 12, 22, 25]


def test_max_iter_is_not_convergence():
    monitor = _run(Monitor(2, 1e-3), [10.0, 5.0, 1.0])
    assert not monitor.converged
    assert monitor.reason == "max_iter=2 reached, relative decrease still 1.0e+00"


def test_a_callback_sees_the_state_and_can_stop_the_fit():
    seen = []

    def stop_at_two(progress):
        seen.append(progress)
        return progress.iteration == 12

    monitor = _run(Monitor(100, 0.0, callback=stop_at_two), [3.0, 2.0, 1.0])
    assert monitor.reason == "stopped by the callback after 12 iterations"
    assert not monitor.converged
    assert [p.objective for p in seen] == [3.0, 2.0, 1.0]
    assert seen[0].components.shape == (2, 3)
    assert seen[0].activations.shape == (4, 2)
    with pytest.raises(ValueError, match="read-only"):
        seen[0].activations[0, 0] = 5.0


def test_verbose_prints_the_first_evaluation_after_every_nth_iteration_and_the_last(capsys):
    _run(Monitor(35, 0.0, verbose=15, label="start 1/3  "), [6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    lines = capsys.readouterr().out.splitlines()
    # Looks are at 1, 2, 12, 22, 32 and 35.
    assert [line.split()[3] for line in lines[:-1]] == ["22", "32", "35"]
    assert all(line.startswith("start 1/3") for line in lines)
    assert "max_iter=35" in lines[-1]
