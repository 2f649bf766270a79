"""Experiments on a Dask cluster: the records of local workers."""

import json
import os
import re
import signal
from contextlib import suppress

import numpy as np
import psutil
import pytest
from scipy import sparse

from clusters import a_client, a_client_of_its_own, eventually, separate  # noqa: F401
from commands import done, refused, started
from protocols import counts, small, without_seconds
from temporalnmf.cluster import connected, local
from temporalnmf.experiments import our_protocol, run
from temporalnmf.experiments.runner import read_records
from temporalnmf.selection import HiddenEntries, select


def same(records):
    """What does not depend on who made the fits, in a fixed order; NaN equals itself as text."""
    return sorted(json.dumps(part, sort_keys=True) for part in without_seconds(records))


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "counts.csv"
    lines = [",".join(f"{value:g}" for value in row) for row in counts()]
    path.write_text("\n".join(["a,b,c,d,e,f", *lines]) + "\n")
    return path


# In Python


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", [*(pytest.param(k, marks=pytest.mark.long) for k in ("dense", "sparse")), "gaps"]
)
def test_records_of_a_cluster_are_those_of_local_workers(client, tmp_path, kind):
    X = sparse.csr_array(counts()) if kind == "sparse" else counts()
    if kind == "gaps":
        X[5], X[7, 2] = np.nan, np.nan
    seen = []
    here = run(small(), X, tmp_path / "here")
    there = run(
        small(), X, tmp_path / "there", client=client, progress=lambda *now: seen.append(now)
    )
    assert same(there) == same(here)
    assert [r["point"] for r in there] == [r["point"] for r in here]  # in the order of the tasks
    assert seen == [(n, len(here)) for n in range(1, len(here) + 1)]
    assert same(read_records(tmp_path / "there" / "fits.jsonl")) == same(here)


@pytest.mark.long
def test_records_of_workers_with_several_threads_are_those_of_local_workers(tmp_path):
    """Fits side by side in one process, with draws among them."""
    protocol = our_protocol(2, n_splits=1, n_inits=2, max_iter=30, n_tune=5, n_draws=5)
    protocol = protocol.only(["gap", "rate", "shape"]).with_draws()
    here = run(protocol, counts(), tmp_path / "here")
    with local(1, threads_per_worker=3) as client:
        there = run(protocol, counts(), tmp_path / "there", client=client)
    assert same(there) == same(here)


@pytest.mark.long
def test_a_cluster_goes_on_where_a_run_was_stopped(client, tmp_path):
    """Begun by local workers, stopped, and ended by a cluster."""
    expected = run(small(), counts(), tmp_path / "calm")

    def stop(done, wanted):
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(small(), counts(), tmp_path / "stopped", progress=stop)
    with pytest.raises(KeyboardInterrupt):
        run(small(), counts(), tmp_path / "cluster", client=client, progress=stop)
    for folder in (tmp_path / "stopped", tmp_path / "cluster"):
        assert len(read_records(folder / "fits.jsonl")) == 7
        ended = run(small(), counts(), folder, client=client)
        assert same(ended) == same(expected)
        assert len(read_records(folder / "fits.jsonl")) == len(expected)  # none twice


@pytest.mark.long
def test_a_worker_killed_in_the_middle_of_a_run_changes_no_record(own_client, tmp_path):
    protocol = small(n_splits=4, n_inits=4)
    expected = run(protocol, counts(), tmp_path / "calm")
    victim = next(iter(own_client.run(os.getpid).values()))

    def kill(done, wanted):
        if done == 10:
            os.kill(victim, signal.SIGKILL)

    disturbed = run(protocol, counts(), tmp_path / "killed", client=own_client, progress=kill)
    assert same(disturbed) == same(expected)
    assert len(read_records(tmp_path / "killed" / "fits.jsonl")) == len(expected)
    eventually(lambda: len(own_client.nthreads()) == 2)
    assert victim not in own_client.run(os.getpid).values()


@pytest.mark.long
def test_a_fit_that_fails_says_the_same_as_here(client, tmp_path):
    """A step hides the only counts: nothing is left to fit."""
    X = np.zeros((20, 3))
    X[-1] = 5.0  # always hidden
    said = []
    for name, settings in {"here": {}, "there": {"client": client}}.items():
        with pytest.raises(ValueError, match="nothing to factorize") as raised:
            run(small(), X, tmp_path / name, **settings)
        said.append(str(raised.value))
    assert said[0] == said[1]


@pytest.mark.long
def test_a_scheduler_that_disappears_leaves_the_finished_records(tmp_path, capfd):
    folder, protocol = tmp_path / "fits", small(n_splits=4, n_inits=4)
    expected = run(protocol, counts(), tmp_path / "calm")
    with separate(tmp_path) as (process, address), connected(address) as client:

        def kill(done, wanted):
            if done == 5:
                process.kill()

        with pytest.raises(
            ConnectionError,
            match=rf"{address} is lost.* fits are in {folder}: the same com",
        ):
            run(protocol, counts(), folder, client=client, progress=kill)
    assert 5 <= len(read_records(folder / "fits.jsonl")) < len(expected)
    assert same(run(protocol, counts(), folder)) == same(expected)
    assert capfd.readouterr() == ("", "")


@pytest.mark.long
def test_selection_on_a_cluster_is_that_of_local_workers(client):
    seen = []
    settings = {"n_components": [1, 2, 3], "chains": ["rate", "gap"], "n_init": 2, "tol": 1e-3}

    def found(**more):
        splitter = HiddenEntries(2, random_state=3)
        return select(counts(), splitter=splitter, random_state=3, **settings, **more)

    here, there = found(), found(client=client, progress=lambda *now: seen.append(now))
    assert here.rows() == there.rows()
    assert (here.n_fits, here.n_unconverged) == (there.n_fits, there.n_unconverged)
    np.testing.assert_array_equal(here.model.components_, there.model.components_)
    assert seen == [(n, 84) for n in range(1, 85)]  # 7 settings, 3 ranks, 2 splits, 2 starts


def test_processes_beside_a_cluster_are_refused(client, tmp_path):
    with pytest.raises(ValueError, match="n_jobs=2 and client="):
        run(small(), counts(), tmp_path / "new", n_jobs=2, client=client)
    assert not (tmp_path / "new").exists()
    with pytest.raises(ValueError, match="n_jobs=1 and client="):
        select(counts(), n_jobs=1, client=client)


# On the command line


def compared(table, out, *more):
    return (
        "compare", table, "--components", 2, "--splits", 2, "--inits", 1, "--chains", "gap,rate",
        "--out", out, *more,
    )  # fmt: skip


@pytest.mark.long
def test_compare_on_a_cluster_writes_the_table_of_local_workers(client, table, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    done(*compared(table, here, "--jobs", 1))
    words = compared(table, there, "--scheduler", client.scheduler.address)
    first = done(*words)
    log = there / "fits.jsonl"
    assert same(read_records(log)) == same(read_records(here / "fits.jsonl"))
    assert (there / "table.md").read_text() == (here / "table.md").read_text()
    # Resumed: a record is missing, the rest stays.
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:-1]))
    again = done(*words)
    assert log.read_text().splitlines(keepends=True)[:-1] == lines[:-1]
    assert same(read_records(log)) == same(read_records(here / "fits.jsonl"))
    assert again.stdout == first.stdout


@pytest.mark.long
def test_select_rank_on_a_cluster_writes_the_tables_of_local_workers(client, table, tmp_path):
    words = ("select-rank", table, "--largest", 2, "--splits", 2)
    done(*words, "--out", tmp_path / "here")
    done(*words, "--out", tmp_path / "there", "--scheduler", client.scheduler.address)
    for name in ("records.csv", "table.csv"):
        assert (tmp_path / "there" / name).read_text() == (tmp_path / "here" / name).read_text()


@pytest.mark.long
def test_reproduce_on_a_cluster_writes_the_records_of_local_workers(client, tmp_path):
    sparse.save_npz(tmp_path / "icews.npz", sparse.csr_array(counts().T))
    words = (
        "reproduce", "icews", "--data", tmp_path / "icews.npz", "--splits", 1, "--inits", 1,
        "--chains", "rate",
    )  # fmt: skip
    done(*words, "--out", tmp_path / "here")
    done(*words, "--out", tmp_path / "there", "--scheduler", client.scheduler.address)
    here, there = (read_records(tmp_path / name / "fits.jsonl") for name in ("here", "there"))
    assert len(here) == 3
    assert same(there) == same(here)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            ("--jobs", 2, "--scheduler", "tcp://a:1"),
            "--jobs 2 is .*: leave out --jobs or --scheduler",
        ),
        (("--jobs", 1, "--dask", "local"), "--jobs 1 is .*: leave out --jobs or --dask"),
        (("--dask", "cloud"), "Choose local"),
        (("--dask", "local", "--scheduler", "tcp://a:1"), "--scheduler tcp://a:1 and --dask lo"),
        (("--workers", 2), "--workers 2 is for a cluster on this machine: --dask local"),
        (("--dask", "local", "--memory-limit", "lots"), "--memory-limit lots: expected a size"),
        (("--scheduler", "nowhere"), "Error: --scheduler nowhere: expected the address"),
    ],
)
@pytest.mark.parametrize("command", ["compare", "select-rank", "reproduce"])
def test_wrong_cluster_options_are_refused_before_anything_is_read(
    command, more, words, table, tmp_path
):
    source = "nips" if command == "reproduce" else table
    said = refused(command, source, "--out", tmp_path / "new", *more)
    assert re.search(words, said), said
    assert not (tmp_path / "new").exists()


def running(group):
    """Processes of a group, but for dead ones that nobody asked about."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                yield process


@pytest.mark.long
def test_ctrl_c_ends_a_local_cluster(table, tmp_path):
    """Ctrl-C in a terminal goes to every process of the command."""
    out = tmp_path / "out"
    words = compared(table, out, "--dask", "local", "--workers", 2)
    words = [str(word) for word in words]
    words[words.index("--splits") + 1] = "80"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = started(*words, start_new_session=True, text=True, env=environment)
    with process:
        # The stop may undo the record that is being written.
        log = out / "fits.jsonl"
        eventually(lambda: len(read_records(log)) > 2 or process.poll() is not None)
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate()[1]
    told = "Interrupted: the same command continues where it stopped.\n"
    assert (process.returncode, said) == (130, told)
    eventually(lambda: not list(running(process.pid)))
    assert not list(tmp_path.glob("temporalnmf-*"))
    assert 0 < len(read_records(out / "fits.jsonl")) < 960
