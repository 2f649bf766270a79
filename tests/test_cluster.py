"""Dask clusters: reaching them, starting them, giving them work."""

import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from clusters import (
    a_client,  # noqa: F401
    a_client_of_its_own,  # noqa: F401
    eventually,
    fails_at_three,
    finds_nothing,
    folder_of,
    hide_package,
    kills,
    limit_of,
    process_of,
    scaled,
    set_version,
    show_package,
)
from temporalnmf.cluster import clients as cluster
from temporalnmf.cluster import connected, local
from temporalnmf.cluster.clients import check_workers, serving, spread


def entered(context):
    with context:
        pass


# Connections


@pytest.mark.parametrize(
    "wrong", ["localhost", "", "foo://host:8786", "tcp://host:port", "tcp://host:99999",
              "http://127.0.0.1:8787", "tcp://:8786", "tcp://host:8786/more"],
)  # fmt: skip
def test_malformed_addresses_are_refused_at_once(wrong, monkeypatch):
    monkeypatch.setattr(cluster, "_greet", None)  # nobody is asked
    with pytest.raises(ValueError, match=r"scheduler=.*: expected the address") as raised:
        entered(connected(wrong))
    assert f"scheduler={wrong!r}" in str(raised.value)


@pytest.mark.long
@pytest.mark.parametrize("listens", [False, True], ids=["nobody", "somebody silent"])
def test_unreachable_schedulers_are_given_up(listens, capfd):
    """A port where nobody listens, and one where somebody does who does not speak Dask."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        if listens:
            other.listen()
        address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ConnectionError, match=r"no Dask scheduler answered within 0.5 s\. Is"):
            entered(connected(address, timeout=0.5))
    assert capfd.readouterr() == ("", "")


def test_a_scheduler_behind_tls_says_what_is_missing():
    with pytest.raises(ConnectionError, match="ssl_context"):
        entered(connected("tls://127.0.0.1:1", timeout=0.5))


@pytest.mark.long
def test_a_client_of_a_scheduler_is_closed_at_the_end(client):
    with connected(client.scheduler.address) as other:
        assert other.submit(sum, [1, 2, 3]).result() == 6
    assert other.status == "closed"


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    for attempt in (local(), connected("tcp://host:1")):
        with pytest.raises(ImportError, match=r'pip install "temporalnmf\[dask\]"'):
            entered(attempt)


# Local clusters


def _pages(dask_scheduler):
    """Where its HTTP server listens; an error if it serves a dashboard."""
    assert not any("status" in str(route) for route in dask_scheduler.http_application.applications)
    return [s.getsockname()[0] for s in dask_scheduler.http_server._sockets.values()]


@pytest.mark.long
def test_a_local_cluster_leaves_nothing_behind(capfd):
    found = {}

    def fail():
        with local(1, memory_limit="500MB") as mine:
            found["client"] = mine
            for what in (folder_of, limit_of, os.getpid):
                (found[what.__name__],) = mine.run(what).values()
            assert Path(found["folder_of"]).exists()
            assert list(mine.nthreads().values()) == [1]
            assert mine.run_on_scheduler(_pages) == ["127.0.0.1"]
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail()
    assert found["limit_of"] == 500_000_000
    assert not Path(found["folder_of"]).parents[1].exists()
    with pytest.raises(ProcessLookupError):
        os.kill(found["getpid"], 0)
    assert found["client"].status == "closed"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("limit", "words"),
    [("lots", "expected a size"), ("1 parsec", "expected a size"), ("infGB", "expected a size"),
     ("1MB", "is 0.95 MiB, too little"), ("0.5", "too little"), (-1, "too little")],
)  # fmt: skip
def test_invalid_memory_limits_are_refused_by_name(limit, words):
    with pytest.raises(ValueError, match=rf"memory_limit={limit!r}.*{words}"):
        entered(local(1, memory_limit=limit))


def test_a_local_cluster_without_workers_is_refused():
    with pytest.raises(ValueError, match="n_workers=0"):
        entered(local(0))


# What a command was asked for


def test_without_options_there_is_no_cluster():
    with serving() as nothing:
        assert nothing is None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"scheduler": "tcp://a:1", "dask": "local"}, "two clusters. Give one"),
        ({"dask": "cloud"}, "dask='cloud' is not known. Choose local"),
        ({"n_workers": 2}, "n_workers=2 is for .* dask='local'"),
        ({"scheduler": "tcp://a:1", "memory_limit": "1GB"}, "memory_limit='1GB' is for"),
        ({"dask": "local", "memory_limit": "lots"}, "expected a size"),
        ({"scheduler": "nowhere"}, "expected the address"),
    ],
)
def test_options_that_exclude_each_other_are_refused_before_a_cluster_starts(asked, words):
    with pytest.raises(ValueError, match=words):
        serving(**asked)


@pytest.mark.long
def test_a_local_cluster_starts_if_asked_for():
    with serving(dask="local", n_workers=1) as mine:
        check_workers(mine)


# Workers


@pytest.mark.long
def test_workers_with_another_version_are_named(client):
    worker = list(client.nthreads())[1]
    before = client.run(set_version, "0.0.1", workers=[worker])[worker]
    try:
        words = (
            rf"Worker {worker} has temporalnmf 0.0.1, and this process has temporalnmf {before}\."
        )
        with pytest.raises(ValueError, match=words):
            check_workers(client)
    finally:
        client.run(set_version, before, workers=[worker])
    check_workers(client)


@pytest.mark.long
def test_workers_without_the_package_are_named(client):
    worker = list(client.nthreads())[1]
    client.run(hide_package, workers=[worker])
    try:
        with pytest.raises(ValueError, match=rf"Worker {worker} has no temporalnmf .*pip install"):
            next(spread(client, scaled, {"factor": 2}, [(1,)]))
    finally:
        client.run(show_package, workers=[worker])
    check_workers(client)


def test_a_scheduler_without_the_package_is_named(client, monkeypatch):
    """It has to unpack what it hands out. Here it lives in this process."""
    monkeypatch.setitem(sys.modules, "temporalnmf", None)
    with pytest.raises(ValueError, match=r"The scheduler tcp://\S+ has no temporalnmf .*pip"):
        next(spread(client, scaled, {"factor": 2}, [(1,)]))


def test_a_scheduler_without_workers_says_how_to_start_one():
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as empty, Client(empty) as mine:
        words = rf"no workers after 0.2 s. `dask worker {empty.scheduler_address}`"
        with pytest.raises(ConnectionError, match=words):
            check_workers(mine, timeout=0.2)


# Work


def test_every_task_is_done_once_and_has_its_number(client):
    tasks = [(i,) for i in range(90)]
    assert sorted(spread(client, scaled, {"factor": 3}, tasks)) == [(i, 3 * i) for i in range(90)]
    assert list(spread(client, scaled, {"factor": 3}, [])) == []


def test_tasks_are_submitted_a_limited_number_at_a_time(client, monkeypatch):
    flying, most, submit = 0, 0, client.submit

    def counted(*args, **settings):
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        return submit(*args, **settings)

    monkeypatch.setattr(client, "submit", counted)
    for _ in spread(client, scaled, {"factor": 1}, [(i,) for i in range(120)]):
        flying -= 1
    assert flying == 0
    assert most == 64 + 4 * 2  # and four per worker


def test_data_are_broadcast_to_the_workers_once(client, monkeypatch):
    sent, scatter = [], client.scatter

    def counted(*args, **settings):
        sent.append(settings)
        return scatter(*args, **settings)

    monkeypatch.setattr(client, "scatter", counted)
    done = list(spread(client, process_of, {}, [(i,) for i in range(40)]))
    assert {process for _, process in done} == set(client.run(os.getpid).values())
    assert [call["broadcast"] for call in sent] == [True]


def test_an_error_of_a_task_is_raised_here(client, capfd):
    with pytest.raises(ValueError, match=r"^i=3: three is no good\.$"):
        list(spread(client, fails_at_three, {}, [(i,) for i in range(10)]))
    assert capfd.readouterr() == ("", "")


def test_a_connection_that_breaks_is_no_error_of_a_task(client, monkeypatch):
    """Both are an OSError where a result is taken."""
    from distributed import Future
    from distributed.comm import CommClosedError

    with pytest.raises(FileNotFoundError, match=r"^no file 0$"):
        list(spread(client, finds_nothing, {}, [(0,)]))

    def broken(future):
        raise CommClosedError("while the result was on its way")

    monkeypatch.setattr(Future, "result", broken)
    with pytest.raises(ConnectionError, match=r"connection to the scheduler tcp://.* is lost"):
        list(spread(client, scaled, {"factor": 1}, [(0,)]))


def test_closing_early_cancels_the_tasks_that_wait(client, tmp_path):
    gate = tmp_path / "gate"
    results = spread(client, scaled, {"factor": 1}, [(0,), *((i, gate) for i in range(1, 60))])
    assert next(results) == (0, 0)
    results.close()
    eventually(lambda: not client.run_on_scheduler(_n_tasks))  # none of which could end
    gate.touch()


def _n_tasks(dask_scheduler):
    return len([key for key in dask_scheduler.tasks if str(key).startswith("scaled")])


@pytest.mark.parametrize(
    "n_killed",
    [
        pytest.param(1, id="one worker"),
        pytest.param(2, id="all that have the data", marks=pytest.mark.long),
    ],
)
def test_tasks_of_a_killed_worker_are_done_again(own_client, n_killed, tmp_path, capfd):
    gate = tmp_path / "gate"
    # The first alone does not wait: a second one may stand behind a task that does.
    results = spread(own_client, scaled, {"factor": 3}, [(0,), *((i, gate) for i in range(1, 120))])
    done = [next(results)]
    processes = list(own_client.run(os.getpid).values())
    for process in processes[:n_killed]:
        os.kill(process, signal.SIGKILL)
    gate.touch()
    done += results
    assert sorted(done) == [(i, 3 * i) for i in range(120)]
    eventually(lambda: len(own_client.nthreads()) == 2)
    assert not set(own_client.run(os.getpid).values()) & set(processes[:n_killed])


@pytest.mark.long
def test_work_that_kills_its_workers_ends_with_an_error(monkeypatch):
    monkeypatch.setattr(cluster, "_LOSSES", 1)
    with local(1) as mine, pytest.raises(OSError, match=r"died again and again.*memory_limit="):
        list(spread(mine, kills, {}, [(0,)]))
