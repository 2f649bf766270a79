"""Fits on a cluster: time, bytes over the network and memory, compared with a fit in memory.

    make bench-cluster                             everything, 20 minutes on an idle machine

    python benchmarks/cluster.py make DIR --nonzeros 1e8
    python benchmarks/cluster.py speed DIR              in memory and with 1, 2, 4 workers
    python benchmarks/cluster.py memory DIR             data of four times the memory of all workers
    python benchmarks/cluster.py model JSON...          cost model and docs/benchmarks/cluster.md
    python benchmarks/cluster.py all --out DIR          all of these, --quick to see whether it runs

Each writes a JSON file, by default to results/cluster. `model` makes the page from these alone.

Variants that are compared are set up once, each in its own processes, and then run alternately.
Bytes are counted by the kernel on every TCP socket of workers, scheduler and client (TCP_INFO).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import date
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

# Slow imports are inside functions, since every process of a cluster reads this file.

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/benchmarks/cluster.md"
RESULTS = ROOT / "results/cluster"
SMOOTHING, CHAIN, TRUE_COMPONENTS = 0.1, "rate", 10
# The targets.
MOST_RATIO, MOST_OVERHEAD, MOST_BYTES = 1.3, 0.050, 1.5
# Entries drawn at a time.
CELLS = 1 << 22
BANDWIDTH = 10e9 / 8

Record = dict[str, Any]


# Data.


def make(
    folder: Path, nonzeros: float, n_times: int, n_features: int, n_shards: int, seed: int
) -> Record:
    """Poisson counts with smooth activations and totals by Zipf's law, shard by shard."""
    from scipy import sparse

    from temporalnmf.shards import ShardWriter
    from temporalnmf.timeline import timeline_of

    if nonzeros > 0.9 * n_times * n_features:
        raise SystemExit(
            f"--nonzeros {nonzeros:g} do not fit into {n_times} steps × {n_features} features: "
            f"raise --times or --features."
        )
    began = time.perf_counter()
    rng = np.random.default_rng(seed)
    walk = np.cumsum(rng.normal(scale=0.1, size=(TRUE_COMPONENTS, n_times)), axis=1)
    H = np.exp(walk - walk.mean(axis=1, keepdims=True))
    H /= H.mean()

    def rates(generator: np.random.Generator, places: np.ndarray) -> np.ndarray:
        """Up to a factor, of features at places in 0 to 1 of a ranking."""
        W = generator.gamma(0.3, size=(len(places), TRUE_COMPONENTS))
        W /= W.sum(axis=1, keepdims=True) * (1.0 + n_features * places[:, None])
        return W @ H

    size = min(max(CELLS // 4 // n_times, 256), 4096)
    sample = rates(rng, (np.arange(size) + 0.5) / size)
    scale = _bisect(lambda s: -np.expm1(-s * sample).mean(), nonzeros / n_times / n_features)
    bounds = np.arange(n_shards + 1) * n_features // n_shards
    total = 0
    with ShardWriter(folder, overwrite=True) as writer:
        for shard, (first, last) in enumerate(pairwise(bounds.tolist())):
            generator, parts = np.random.default_rng([seed, shard]), []
            for start in range(first, last, max(CELLS // n_times, 1)):
                width = min(start + max(CELLS // n_times, 1), last) - start
                cells = generator.poisson(scale * rates(generator, generator.random(width)))
                parts.append(sparse.csr_array(cells, dtype=np.float64))
            rows = sparse.csr_array(sparse.vstack(parts, format="csr"))
            rows.has_canonical_format = True
            total += rows.nnz
            writer.add((f"f{i}" for i in range(first, last)), rows)
        writer.finish(timeline_of(np.arange(n_times)))
    found = {
        "what": "make",
        "seconds": time.perf_counter() - began,
        "bytes": _size(folder),
        "peak_rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        **_about(folder),
    }
    print(
        f"{folder}: {total:,} non-zeros, {n_times:,} steps × {n_features:,} features, {n_shards} "
        f"shards, {found['bytes'] / 1e9:.2f} GB in {found['seconds']:.0f} s, peak RSS "
        f"{found['peak_rss'] / 1e6:.0f} MB",
        flush=True,
    )
    return found


def _bisect(rising: Callable[[float], float], wanted: float) -> float:
    low, high = 1e-12, 1e15
    for _ in range(200):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if rising(middle) < wanted else (low, middle)
    return (low * high) ** 0.5


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def _about(folder: Path) -> Record:
    from temporalnmf.shards import Shards

    shards = Shards.open(folder)
    return {
        "nonzeros": int(shards.nonzeros.sum()),
        "n_times": shards.n_times,
        "n_features": shards.n_features,
        "n_shards": shards.n_shards,
    }


# A variant, in its own processes.


def _counter() -> Callable[[], dict[str, tuple[int, int]]]:
    """A function that is pickled by value, since workers cannot import this file."""

    def counted() -> dict[str, tuple[int, int]]:
        """Bytes that every TCP socket of a process sent and received, by the kernel's count."""
        import os
        import socket
        import sys

        found = {}
        for fd in os.listdir("/proc/self/fd"):
            try:
                name = os.readlink(f"/proc/self/fd/{fd}")
                if not name.startswith("socket:"):
                    continue
                with socket.socket(fileno=os.dup(int(fd))) as sock:
                    if sock.family not in (socket.AF_INET, socket.AF_INET6):
                        continue
                    # struct tcp_info of Linux: tcpi_bytes_acked, then tcpi_bytes_received.
                    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
            except OSError:
                continue
            sent, received = info[120:128], info[128:136]
            found[name] = (
                int.from_bytes(sent, sys.byteorder),
                int.from_bytes(received, sys.byteorder),
            )
        return found

    return counted


class Wire:
    """Bytes sent over TCP between two points in time, less those of an idle cluster."""

    def __init__(self, client: Any) -> None:
        self.client, self.count = client, _counter()
        self.fixed = self.per_second = np.zeros(3)
        with self.counted() as nothing:
            pass
        with self.counted() as idle:
            time.sleep(2.0)
        self.fixed = nothing["raw"]
        self.per_second = np.maximum(idle["raw"] - nothing["raw"], 0.0) / idle["seconds"]

    def _now(self) -> list[dict[str, tuple[int, int]]]:
        return [self.count(), *self.client.run(self.count).values()]

    @contextmanager
    def counted(self) -> Iterator[Record]:
        """Fill in the bytes that workers received and sent, and the total sent."""
        found: Record = {}
        before, began = self._now(), time.perf_counter()
        yield found
        found["seconds"] = time.perf_counter() - began
        after = self._now()
        sent, received, gone = np.zeros(len(after)), np.zeros(len(after)), 0
        for i, (old, new) in enumerate(zip(before, after, strict=True)):
            gone += len(old.keys() - new.keys())
            for name, (out, back) in new.items():
                sent[i] += out - old.get(name, (0, 0))[0]
                received[i] += back - old.get(name, (0, 0))[1]
        found["raw"] = np.array([received[1:].sum(), sent[1:].sum(), sent.sum()])
        net = found["raw"] - self.fixed - self.per_second * found["seconds"]
        found |= dict(zip(("to_workers", "from_workers", "all_wires"), net.tolist(), strict=True))
        found["sockets_gone"] = gone


class Side:
    """Data, and a solution that improves from round to round."""

    def __init__(self, spec: Record, stack: ExitStack) -> None:
        from temporalnmf import registry
        from temporalnmf.inference.starts import start_activations
        from temporalnmf.likelihoods.poisson import Poisson
        from temporalnmf.objective import Problem

        self.executor = self.wire = None
        prepared = self._on_workers if spec["workers"] else self._in_memory
        series, observe = prepared(spec, stack)
        observed = observe(Poisson())
        K = spec["components"]
        chain = registry.create(registry.CHAINS, CHAIN, "chain").resolve(observed.level, K)
        self.problem = Problem(observed, chain, "log", SMOOTHING)
        self.features = observed.blank()
        self.features.randomise(np.random.default_rng(0), K)
        self.features.only_active(SMOOTHING)
        self.H = start_activations(series, K)
        self.aux = chain.auxiliary(self.H, "log")
        self.looks = self.steps = 0
        look, accept = self.features.look, self.features.accept

        def counted_look(*arguments: Any) -> Any:
            self.looks += 1
            return look(*arguments)

        def counted_accept() -> None:
            self.steps += 1
            accept()

        self.features.look, self.features.accept = counted_look, counted_accept

    def _in_memory(self, spec: Record, stack: ExitStack) -> tuple[Any, Any]:
        """The whole matrix as one block, as `TemporalNMF(n_jobs=2)` has it."""
        from temporalnmf.observations import observe
        from temporalnmf.runtime.threads import Threads
        from temporalnmf.shards import Shards

        series = _tiny(spec) if spec["folder"] is None else None
        if series is None:
            series = _series(Shards.open(spec["folder"]).matrix())
        threads = stack.enter_context(Threads(spec["threads"]))
        return series, lambda likelihood: observe(
            series.X, series.weights, series.exposure, likelihood, threads
        )

    def _on_workers(self, spec: Record, stack: ExitStack) -> tuple[Any, Any]:
        """Blocks that stay in the memory of workers of one thread each."""
        from temporalnmf.cluster import local
        from temporalnmf.cluster.block_data import MemorySource
        from temporalnmf.cluster.dask import DaskExecutor, groups_of
        from temporalnmf.cluster.series import SplitSeries, even_bounds
        from temporalnmf.cluster.shard_source import ShardSource
        from temporalnmf.shards import Shards

        client = stack.enter_context(local(spec["workers"]))
        if spec["folder"] is None:
            series = _tiny(spec)
            bounds = even_bounds(series.X.shape[1], spec["blocks"])
            columns = pairwise(bounds.tolist())
            pieces = [MemorySource(_series(series.X[:, i:j])) for i, j in columns]
            exposure = series.exposure
        else:
            shards = Shards.open(spec["folder"])
            bounds, exposure = shards.bounds, shards.exposure
            weights = np.ones((shards.n_times, 1))
            pieces = [ShardSource(shards, i, weights, exposure) for i in range(shards.n_shards)]
        self.executor = DaskExecutor(client, groups_of(pieces, bounds, spec["workers"]), bounds)
        stack.callback(self.executor.close)
        self.wire = Wire(client)
        split = SplitSeries.of(self.executor, exposure)
        return split, split.observe

    def round(self, n: int) -> Record:
        """Some iterations of MM, then of L-BFGS, which are undone: seconds, bytes, objectives."""
        from speed.timing import iterate

        from temporalnmf.solvers.accelerated import _Path

        found: Record = {}

        def mm() -> int:
            for _ in range(n):
                self.aux = iterate(self.problem, self.features, self.H, self.aux)
            return n

        found["mm"] = self._timed(mm) | {"looks": n}
        found["mm"]["objective"] = self.problem.objective(self.features, self.H, self.aux)
        path = _Path(self.problem, self.features, self.H, False, 0)

        def accelerated() -> int:
            self.looks = self.steps = 0
            path.advance(n)
            return self.steps

        found["accelerated"] = self._timed(accelerated) | {"looks": self.looks}
        found["accelerated"]["objective"] = self.problem.objective(self.features, path.H)
        path.undo()
        self.features.log_sum()  # workers hear of it, and free the memory of the path
        return found

    def _timed(self, run: Callable[[], int]) -> Record:
        with ExitStack() as stack:
            wire = {} if self.wire is None else stack.enter_context(self.wire.counted())
            asked = getattr(self.executor, "_serial", 0)
            began = time.perf_counter()
            iterations = run()
            seconds = time.perf_counter() - began
            questions = getattr(self.executor, "_serial", 0) - asked
        wire.pop("raw", None)
        wire.pop("seconds", None)
        return {"seconds": seconds, "iterations": iterations, "questions": questions, **wire}


def _series(X: Any) -> Any:
    from temporalnmf.data.series import Series

    return Series(X, np.ones((X.shape[0], 1)), np.ones(X.shape[0]))


def _tiny(spec: Record) -> Any:
    """Four features per block, and almost no data."""
    from scipy import sparse

    N, F = spec["n_times"], 4 * spec["blocks"]
    rng = np.random.default_rng(0)
    X = sparse.random_array((N, F), density=min(16 / N, 1.0), rng=rng, format="csr")
    X.data[:] = rng.poisson(3.0, X.nnz) + 1.0
    return _series(sparse.csr_array(X))


def _serve(pipe: Connection, spec: Record) -> None:
    """A variant in a process, which runs rounds on request until it receives None."""
    with ExitStack() as stack:
        side = Side(spec, stack)
        pipe.send("ready")
        while (n := pipe.recv()) is not None:
            pipe.send(side.round(n))


@contextmanager
def _sides(specs: dict[str, Record]) -> Iterator[dict[str, Connection]]:
    """All of them, ready."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = {}, []
    try:
        for name, spec in specs.items():
            pipes[name], other = context.Pipe()
            processes.append(context.Process(target=_serve, args=(other, spec)))
            processes[-1].start()
            other.close()
            began = time.perf_counter()
            pipes[name].recv()
            print(f"  {name}: ready after {time.perf_counter() - began:.1f} s", flush=True)
        yield pipes
    finally:
        for pipe in pipes.values():
            try:
                pipe.send(None)
            except OSError:
                continue
        for process in processes:
            process.join(30)
            if process.is_alive():
                process.terminate()


def _turns(specs: dict[str, Record], n: int, rounds: int) -> dict[str, list[Record]]:
    """Rounds of all variants, which alternate; the first one is a warm-up."""
    found: dict[str, list[Record]] = {name: [] for name in specs}
    with _sides(specs) as pipes:
        for number in range(rounds + 1):
            for name, pipe in pipes.items():
                pipe.send(n if number else 2)
                answer = pipe.recv()
                if number:
                    found[name].append(answer)
    return found


def _summary(rounds: list[Record], solver: str) -> Record:
    """Best, median and worst of rounds; bytes are means."""
    rows = [row[solver] for row in rounds]
    each = np.array([row["seconds"] / max(row["iterations"], 1) for row in rows])
    looks = np.array([row["seconds"] / max(row["looks"], 1) for row in rows])
    found = {
        "best": float(each.min()),
        "median": float(np.median(each)),
        "worst": float(each.max()),
        "median_per_look": float(np.median(looks)),
        "looks": sum(row["looks"] for row in rows) / max(sum(row["iterations"] for row in rows), 1),
        "objectives": [row["objective"] for row in rows],
    }
    n_looks = sum(row["looks"] for row in rows)
    found["questions_per_look"] = sum(row["questions"] for row in rows) / n_looks
    for name in ("to_workers", "from_workers", "all_wires", "sockets_gone"):
        if name in rows[0]:
            found[f"{name}_per_look"] = sum(row[name] for row in rows) / n_looks
    return found


# Speed.


def speed(
    folder: Path, components: int, iterations: int, rounds: int, workers: list[int], overhead: bool
) -> Record:
    """Seconds of an iteration in memory and on clusters; cost of a request; bytes."""
    began = time.perf_counter()
    about = _about(folder)
    found: Record = {"what": "speed", "data": about, "components": components}
    found |= {"iterations": iterations, "rounds": rounds, "rows": [], "overhead": []}
    print(f"{folder}: {about['nonzeros']:,} non-zeros, {about['n_features']:,} features")
    common = {"folder": str(folder), "components": components}
    specs = {"in memory, 2 threads": {**common, "workers": 0, "threads": 2}}
    specs |= {_called(n): {**common, "workers": n} for n in workers}
    for name, measured in _turns(specs, iterations, rounds).items():
        for solver in ("mm", "accelerated"):
            row = {"side": name, "workers": specs[name]["workers"], "blocks": about["n_shards"]}
            row |= {"solver": solver, **_summary(measured, solver)}
            found["rows"].append(row)
    _compare_objectives(found["rows"])
    _print_rows(found["rows"])
    for solver in ("mm", "accelerated"):
        ours, memory = (_row(found["rows"], solver, n) for n in (2, 0))
        if ours and memory:
            ratio = ours["median_per_look"] / memory["median_per_look"]
            found[f"ratio_{solver}"] = ratio
            print(f"  {solver}: 2 workers / in memory {ratio:.2f} (bar {MOST_RATIO})")
    if overhead:
        found["overhead"] = _overhead(about["n_times"], components)
    return found | {"took": time.perf_counter() - began}


def _called(n: int) -> str:
    return f"{n} worker{'s' * (n > 1)}"


def _row(rows: list[Record], solver: str, workers: int) -> Record | None:
    fitting = (row for row in rows if row["solver"] == solver and row["workers"] == workers)
    return next(fitting, None)


def _compare_objectives(rows: list[Record]) -> None:
    """The largest relative difference from those in memory, at the same iterations."""
    for row in rows:
        memory = _row(rows, row["solver"], 0)
        if memory is not None:
            ours, theirs = np.array(row["objectives"]), np.array(memory["objectives"])
            row["difference"] = float(np.max(np.abs(ours - theirs) / np.abs(theirs)))


def _print_rows(rows: list[Record]) -> None:
    for row in rows:
        moved = ""
        if "all_wires_per_look" in row:
            moved = (
                f", kB per evaluation: {row['to_workers_per_look'] / 1e3:.1f} to workers, "
                f"{row['from_workers_per_look'] / 1e3:.1f} from them, "
                f"{row['all_wires_per_look'] / 1e3:.1f} in total"
            )
        print(
            f"  {row['solver']:11s} {row['side']:22s} ms {_times(row)}, "
            f"{row['looks']:.2f} evaluations, {row['questions_per_look']:.1f} requests each"
            f"{moved}, objective {row.get('difference', 0.0):.1e}",
            flush=True,
        )


def _times(row: Record) -> str:
    return " / ".join(f"{1e3 * row[name]:.4g}" for name in ("best", "median", "worst"))


def _overhead(n_times: int, components: int, n: int = 20, rounds: int = 5) -> list[Record]:
    """Seconds of an iteration with almost no data: what remains is communication."""
    common = {"folder": None, "components": components, "n_times": n_times}
    rows = []
    cases = [(2, 2), (2, 16), (2, 64), (2, 256), (1, 64), (4, 64), (8, 64)]
    for workers, blocks in cases:
        specs = {
            "in memory": {**common, "workers": 0, "threads": 1, "blocks": blocks},
            _called(workers): {**common, "workers": workers, "blocks": blocks},
        }
        for name, measured in _turns(specs, n, rounds).items():
            for solver in ("mm", "accelerated"):
                row = {"side": name, "workers": specs[name]["workers"], "blocks": blocks}
                row |= {"solver": solver, "n_features": 4 * blocks, "n_times": n_times}
                row |= {"nonzeros": 16 * 4 * blocks, "for_workers": workers}
                rows.append(row | _summary(measured, solver))
        print(f"  as good as no data, {workers} workers, {blocks} blocks")
        _print_rows(rows[-4:])
    return rows


# Memory.


def memory(
    folder: Path,
    limit: str,
    workers: int,
    components: int,
    max_iter: int,
    solver: str,
    any_size: bool,
) -> Record:
    """Fit data that are much larger than the memory of all workers."""
    from dask.utils import parse_bytes

    from temporalnmf import TemporalNMF
    from temporalnmf.cluster import local
    from temporalnmf.solvers.monitor import Monitor

    size, allowed = _size(folder), int(parse_bytes(limit))
    if size < 4 * allowed * workers and not any_size:
        raise SystemExit(
            f"{folder} has {size / 1e9:.2f} GB, less than four times the {workers} × {limit} of "
            f"the workers. Make larger data, or give them less."
        )
    marks: list[tuple[float, int]] = []
    record = Monitor.record

    def timed(self: Monitor, *arguments: Any) -> None:
        record(self, *arguments)
        marks.append((time.perf_counter(), self.iteration))

    Monitor.record = timed  # type: ignore[method-assign]
    error = None
    began = time.perf_counter()
    with local(workers, limit) as client, Watch() as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pids = set(client.run(os.getpid).values())
        model = TemporalNMF(
            components, chain=CHAIN, solver=solver, max_iter=max_iter, tol=0.0, random_state=0
        )
        try:
            model.fit(folder)
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
        seconds = time.perf_counter() - began
        pids |= set(client.run(os.getpid).values())
        watch.look()
    # The first solve is the fit; later ones have W fixed.
    fit = marks[: next((i for i in range(1, len(marks)) if marks[i][1] <= marks[i - 1][1]), None)]
    each = None
    if len(fit) > 1:
        each = (fit[-1][0] - fit[0][0]) / (fit[-1][1] - fit[0][1])
    found = {
        "what": "memory", "data": _about(folder), "bytes": size, "limit": allowed,
        "workers": workers, "components": components, "solver": solver, "max_iter": max_iter,
        "finished": error is None, "error": error, "seconds": seconds,
        "seconds_per_iteration": each, "iterations": fit[-1][1] if fit else 0,
        "lost": len(watch.seen) - workers, "unseen": len(pids - watch.seen.keys()),
        "peaks": [{"pid": pid, **peak} for pid, peak in watch.seen.items()],
        "client_peak_rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }  # fmt: skip
    print(
        f"{folder}: {size / 1e9:.2f} GB, {size / allowed / workers:.1f} times the memory of all "
        f"workers; {solver}, finished: {error is None}, workers lost: {found['lost']}, "
        f"{seconds:.0f} s in all, {each or float('nan'):.2f} s an iteration"
    )
    if error:
        print(f"  {error}")
    for peak in found["peaks"]:
        print(
            f"  worker {peak['pid']}: VmHWM {peak['high'] / 1e6:.0f} MB, "
            f"{peak['high'] / allowed:.0%} of the limit; sampled RSS {peak['rss'] / 1e6:.0f} MB, "
            f"of which not of files {peak['anonymous'] / 1e6:.0f} MB",
            flush=True,
        )
    return found


class Watch:
    """Peak memory of all child processes with a worker, including those that died."""

    def __init__(self) -> None:
        self.seen: dict[int, dict[str, int]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(0.05):
            self.look()

    def look(self) -> None:
        import psutil

        for process in psutil.Process().children(recursive=True):
            try:
                command = " ".join(process.cmdline())
                text = Path(f"/proc/{process.pid}/status").read_text()
            except (psutil.Error, OSError):
                continue
            if "spawn_main" not in command or "VmHWM" not in text:
                continue
            lines = dict(line.split(":", 1) for line in text.splitlines())
            now = {
                name: int(lines[key].split()[0]) * 1024
                for name, key in (("high", "VmHWM"), ("rss", "VmRSS"), ("anonymous", "RssAnon"))
            }
            old = self.seen.get(process.pid, now)
            self.seen[process.pid] = {name: max(now[name], old[name]) for name in now}


# Cost model and page.


def model(records: list[Record], page: Path) -> Record:
    """Fit the cost model to the rows of all speed files, and write the page."""
    speeds = [record for record in records if record["what"] == "speed"]
    found: Record = {"what": "model", "cores": os.cpu_count(), "solvers": {}}
    for solver in ("mm", "accelerated"):
        rows = [row for row in _model_rows(speeds) if row["solver"] == solver]
        if len(rows) >= len(TERMS):
            found["solvers"][solver] = _fitted(rows, found["cores"])
    text = _page(records, found)
    page.write_text(text, encoding="utf-8")
    print(f"written: {page}")
    for solver, fit in found["solvers"].items():
        numbers = ", ".join(f"{name} {value:.3g}" for name, value in fit["terms"].items())
        print(f"  {solver}: {numbers}; worst {fit['worst']:.0%} off")
    return found


# Terms of the time of an evaluation. p is min(workers, cores), q the requests per evaluation.
TERMS = {
    "per_nonzero": "ns per non-zero and component: nnz·K/p",
    "per_weight": "ns per feature and component: F·K/p",
    "per_question": "ms per request: q (includes the cost of H itself)",
    "per_worker": "ms per request and worker: q·workers",
    "per_block": "ms per request and block: q·blocks/p",
}


def _model_rows(speeds: list[Record]) -> list[Record]:
    found = []
    for record in speeds:
        for row in (*record["rows"], *record["overhead"]):
            if row["workers"]:
                found.append({**record["data"], "components": record["components"], **row})
    return found


def _work(row: Record, cores: int) -> list[float]:
    p, K, q = min(row["workers"], cores), row["components"], row["questions_per_look"]
    return [
        row["nonzeros"] * K / p, row["n_features"] * K / p, q * row.get("levels", 1),
        q * row["workers"], q * row["blocks"] / p,
    ]  # fmt: skip


def _fitted(rows: list[Record], cores: int) -> Record:
    """By least squares of relative errors, none negative."""
    from scipy.optimize import nnls

    seconds = np.array([row["median_per_look"] for row in rows])
    design = np.array([_work(row, cores) for row in rows]) / seconds[:, None]
    size = np.maximum(np.abs(design).max(axis=0), 1e-300)
    solution, _ = nnls(design / size, np.ones(len(rows)))
    solution = solution / size
    guess = design @ solution * seconds
    return {
        "terms": dict(zip(TERMS, solution.tolist(), strict=True)),
        "rows": [
            {
                name: row[name]
                for name in ("nonzeros", "n_features", "workers", "blocks", "questions_per_look")
            }
            | {"measured": measured, "predicted": predicted}
            for row, measured, predicted in zip(rows, seconds.tolist(), guess.tolist(), strict=True)
        ],
        "worst": float(np.max(np.abs(guess / seconds - 1.0))),
    }


def _levels(workers: int, fan: int = 8) -> int:
    """Of the tree in which groups are asked, see `observations/dask.py`."""
    return 1 if workers <= fan else 1 + _levels(max(-(-workers // fan) - 1, 1), fan)


def _predicted(
    fit: Record, nonzeros: float, features: float, N: int, K: int, workers: int
) -> Record:
    """A cluster with a core per worker, and a network."""
    from temporalnmf.shards.writing import shard_count

    q = float(np.median([row["questions_per_look"] for row in fit["rows"]]))
    levels, blocks = _levels(workers), shard_count(int(nonzeros), int(features))
    row = {
        "nonzeros": nonzeros, "n_features": features, "components": K, "workers": workers,
        "questions_per_look": q, "blocks": blocks,
    }  # fmt: skip
    work = _work(row, workers)
    work[2] *= levels
    work[3] = q * min(workers, 8) * levels
    parts = dict(zip(TERMS, np.array(work) * list(fit["terms"].values()), strict=True))
    nbytes = 2.0 * K * N * 8 * workers
    parts["network"] = nbytes / BANDWIDTH
    return {"parts": parts, "seconds": sum(parts.values()), "bytes": nbytes, "levels": levels}


def _table(head: str, rows: list[str]) -> str:
    line = "|" + " --- |" * (head.count("|") + 1)
    return "\n".join([f"| {head} |", line, *(f"| {row} |" for row in rows)])


MISSING = "*Not measured yet.*"


def _page(records: list[Record], fitted: Record) -> str:
    by = {what: [r for r in records if r["what"] == what] for what in ("make", "speed", "memory")}
    speeds = sorted(by["speed"], key=lambda r: -r["data"]["nonzeros"])
    machine = next((r["machine"] for r in records if "machine" in r), "")
    busy = [r["others"] for r in records if r.get("others") is not None]
    quiet = f" Other processes used up to {max(busy):.0%} of it before a part." if busy else ""
    days = sorted({r["date"] for r in records if "date" in r})
    when = " to ".join(days[:: max(len(days) - 1, 1)])
    sections = [
        f"""# On a cluster: speed, bytes and memory

This page compares fits on a local Dask cluster with the same fits in memory: time per iteration,
bytes sent over the network, and memory for data that are larger than memory. A cost model then
predicts times on larger clusters. `make bench-cluster` repeats all measurements and writes this
page.

Machine: {machine or MISSING} Measured on {when or "–"}.{quiet}

The data are simulated: Poisson counts with ten smooth components and totals of features that follow
Zipf's law, streamed to shards. The chain is `rate`, on the log scale, with smoothing {SMOOTHING}.
Times are wall-clock times, **best / median / worst** of rounds in which all variants run
alternately, each in its own processes, after a warm-up round. An iteration does not compute the
value of the objective. An *evaluation* computes the sums over the data for both factors once: MM
needs one per iteration, accelerated (its L-BFGS phase) sometimes more. Ratios compare medians per
evaluation.""",
        "## Targets\n\n" + _bars(speeds, by["memory"]),
        "## One iteration\n\n" + ("\n\n".join(map(_speed_section, speeds)) or MISSING),
        "## Overhead with almost no data\n\n" + _overhead_section(speeds),
        "## Bytes over the network\n\n" + _bytes_section(speeds),
        "## Memory\n\n" + _memory_section(by["memory"]),
        "## Cost model\n\n" + _model_section(fitted),
        "## Predictions\n\n" + _prediction(fitted),
        "## Data\n\n" + _data_section(by["make"]),
    ]
    return "\n\n".join(sections) + "\n"


def _bars(speeds: list[Record], memories: list[Record]) -> str:
    rows = []

    def bar(what: str, limit: str, measured: str, reached: bool | None) -> None:
        verdict = "–" if reached is None else "yes" if reached else "**no**"
        rows.append(f"{what} | {limit} | {measured} | {verdict}")

    ratios = {
        solver: speeds[0][f"ratio_{solver}"]
        for solver in ("mm", "accelerated")
        if speeds and f"ratio_{solver}" in speeds[0]
    }
    bar(
        "2 workers of one thread against 2 threads in memory, largest data", f"≤ {MOST_RATIO}",
        ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()) or "–",
        max(ratios.values()) <= MOST_RATIO if ratios else None,
    )  # fmt: skip
    talk = [row for s in speeds for row in s["overhead"] if row["workers"] == 2]
    worst = {
        solver: max(row["median"] for row in talk if row["solver"] == solver)
        for solver in ("mm", "accelerated")
        if talk
    }
    bar(
        "an iteration with almost no data, 2 workers, 2 to 256 blocks",
        f"< {1e3 * MOST_OVERHEAD:.0f} ms",
        ", ".join(f"{name} at most {1e3 * value:.1f} ms" for name, value in worst.items()) or "–",
        max(worst.values()) < MOST_OVERHEAD if worst else None,
    )  # fmt: skip
    for what, names in WIRES.items():
        moved = {
            solver: max(
                _excess(s, row, names) for s in speeds for row in s["rows"] if _moved(row, solver)
            )
            for solver in ("mm", "accelerated")
            if any(_moved(row, solver) for s in speeds for row in s["rows"])
        }
        bar(
            f"bytes {what} against 2·K·N·8 per worker and evaluation", f"≤ {MOST_BYTES}",
            ", ".join(f"{name} {value:.2f}" for name, value in moved.items()) or "–",
            max(moved.values()) <= MOST_BYTES if moved else None,
        )  # fmt: skip
    differences = [row["difference"] for s in speeds for row in s["rows"] if row["workers"]]
    bar(
        "relative difference of the objective from the same iterations in memory", "–",
        f"{max(differences):.1e}" if differences else "–",
        None,
    )  # fmt: skip
    done = [
        m
        for m in memories
        if m["finished"] and not m["lost"] and m["bytes"] >= 4 * m["limit"] * m["workers"]
    ]
    bar(
        "data four times as large as the memory of all workers", "finishes, no worker lost",
        ", ".join(
            f"{m['solver']}: {m['bytes'] / m['limit'] / m['workers']:.1f} times, "
            f"{m['lost']} lost, peak {max(p['high'] for p in m['peaks']) / m['limit']:.0%} of the "
            f"limit" for m in memories
        ) or "–",
        len(done) == len(memories) if memories else None,
    )  # fmt: skip
    return _table("what | target | measured | met", rows)


def _moved(row: Record, solver: str) -> bool:
    return row["solver"] == solver and "all_wires_per_look" in row


def _model_bytes(record: Record, row: Record) -> float:
    """One way."""
    return record["components"] * record["data"]["n_times"] * 8 * row["workers"]


# Which bytes of an evaluation are counted.
WIRES = {"to and from workers": ("to_workers", "from_workers"), "in total": ("all_wires",)}


def _excess(record: Record, row: Record, names: tuple[str, ...]) -> float:
    total = sum(row[f"{name}_per_look"] for name in names)
    return total / 2.0 / _model_bytes(record, row)


def _title(record: Record) -> str:
    data = record["data"]
    return (
        f"{data['nonzeros']:,} non-zeros, {data['n_times']:,} steps × {data['n_features']:,} "
        f"features, {data['n_shards']} shards, K = {record['components']}"
    )


def _speed_section(record: Record) -> str:
    rows = []
    for row in record["rows"]:
        memory = _row(record["rows"], row["solver"], 0)
        ratio = row["median_per_look"] / memory["median_per_look"] if memory else float("nan")
        rows.append(
            f"{row['solver']} | {row['side']} | {_times(row)} | {row['looks']:.2f} | {ratio:.2f} | "
            f"{row.get('difference', 0.0):.1e}"
        )
    head = (
        "solver | where | ms per iteration | evaluations per iteration | relative to memory | "
        "objective differs by"
    )
    cores = (
        f"This machine has {os.cpu_count()} cores; more workers share them and are no faster. "
        f"Iterations per round: {record['iterations']}; rounds: {record['rounds']}."
    )
    return f"### {_title(record)}\n\n{_table(head, rows)}\n\n{cores}"


def _overhead_section(speeds: list[Record]) -> str:
    measured = [row for record in speeds for row in record["overhead"]]
    if not measured:
        return MISSING
    memory = {
        (row["solver"], row["for_workers"], row["blocks"]): row
        for row in measured
        if not row["workers"]
    }
    rows = [
        f"{row['solver']} | {row['workers']} | {row['blocks']} | {_times(row)} | "
        f"{1e3 * memory[row['solver'], row['for_workers'], row['blocks']]['median']:.3g} | "
        f"{row['questions_per_look']:.1f} | "
        f"{1e3 * row['median_per_look'] / row['questions_per_look']:.2f}"
        for row in measured
        if row["workers"]
    ]
    head = "solver | workers | blocks | ms per iteration | the same in memory, ms"
    return (
        "The same N and K, but with four features per block, of about 16 non-zeros each. What "
        "remains of an iteration is communication, the fixed cost of each block, and the "
        "chain.\n\n" + _table(head + " | requests per evaluation | ms per request", rows)
    )


def _bytes_section(speeds: list[Record]) -> str:
    rows = [
        f"{record['data']['nonzeros']:,} | {row['solver']} | {row['workers']} | "
        f"{_model_bytes(record, row) / 1e3:.1f} | {row['to_workers_per_look'] / 1e3:.1f} | "
        f"{row['from_workers_per_look'] / 1e3:.1f} | {row['all_wires_per_look'] / 1e3:.1f} | "
        + " | ".join(f"{_excess(record, row, names):.2f}" for names in WIRES.values())
        for record in speeds
        for row in record["rows"]
        if "all_wires_per_look" in row
    ]
    if not rows:
        return MISSING
    head = "non-zeros | solver | workers | model, each way | to workers | from workers | total"
    return (
        "kB per evaluation, as counted by the kernel on every TCP socket of workers, scheduler and "
        "client (`tcpi_bytes_acked`, `tcpi_bytes_received`), less what an idle cluster sends in "
        "the same time. The model: H is sent to each worker, and a sum of the same size is sent "
        "back, K·N·8 bytes each way. *Total* counts every connection, so bytes that pass through "
        "the scheduler count twice.\n\n" + _table(head + " | workers / model | total / model", rows)
    )


def _memory_section(memories: list[Record]) -> str:
    if not memories:
        return MISSING
    rows = []
    for m in memories:
        for peak in m["peaks"]:
            each = m["seconds_per_iteration"]
            rows.append(
                f"{m['solver']} | {m['data']['nonzeros']:,} ({m['bytes'] / 1e9:.2f} GB) | "
                f"{m['workers']} × {m['limit'] / 1e6:.0f} MB | {peak['high'] / 1e6:.0f} MB "
                f"({peak['high'] / m['limit']:.0%}) | {peak['anonymous'] / 1e6:.0f} MB | "
                f"{m['lost']} | {'–' if each is None else f'{each:.2f} s'} | "
                f"{'yes' if m['finished'] else m['error']}"
            )
    data = memories[0]["data"]
    head = "solver | non-zeros | limits | peak of a worker | without files | lost | an iteration"
    return (
        f"`TemporalNMF(...).fit(folder)`, {data['n_times']:,} steps × {data['n_features']:,} "
        f"features in {data['n_shards']} shards, K = {memories[0]['components']}, "
        f"{memories[0]['max_iter']} iterations. There is one row per worker process, including "
        f"restarted ones. The peak is the kernel's `VmHWM`, which includes pages of files that are "
        f"being read.\n\n" + _table(head + " | finished", rows) + "\n\nData are read from disk in "
        "every pass. Weights stay in memory: 8·K bytes per feature with MM, and about 170·K with "
        "accelerated, which stores its last updates."
    )


def _model_section(fitted: Record) -> str:
    if not fitted["solvers"]:
        return MISSING
    units = {"per_nonzero": 1e9, "per_weight": 1e9}
    names = list(fitted["solvers"])
    constants = [
        f"{text} | "
        + " | ".join(
            f"{units.get(term, 1e3) * fitted['solvers'][name]['terms'][term]:.3g}" for name in names
        )
        for term, text in TERMS.items()
    ]
    rows = [
        f"{name} | {row['nonzeros']:,} | {row['n_features']:,} | {row['workers']} | "
        f"{row['blocks']} | {1e3 * row['measured']:.4g} | {1e3 * row['predicted']:.4g} | "
        f"{row['predicted'] / row['measured'] - 1:+.0%}"
        for name in names
        for row in fitted["solvers"][name]["rows"]
    ]
    worst = ", ".join(f"{name} {fit['worst']:.0%}" for name, fit in fitted["solvers"].items())
    head = "solver | non-zeros | features | workers | blocks | measured ms | predicted ms | error"
    return f"""The time of an evaluation is modelled as the sum of five non-negative terms, fitted
to medians by least squares of relative errors. q is the number of requests per evaluation.
**p is min(workers, cores)**: four workers share the {fitted["cores"]} cores of this machine and
count as {fitted["cores"]}.
The cost of H itself does not grow with the data and is part of the third term. The time to send
bytes cannot be separated from it here: {2 * 10 * 200 * 8 / 1e3:.0f} kB per worker for N = 200 and K
= 10.

{_table("term | " + " | ".join(names), constants)}

Measured and predicted times; the largest relative errors are {worst}.

{_table(head, rows)}"""


def _prediction(fitted: Record) -> str:
    if not fitted["solvers"]:
        return MISSING
    nonzeros, features, N, K, workers = 1e10, 1e8, 200, 10, 100
    rows, found = [], {}
    for name, fit in fitted["solvers"].items():
        found[name] = guess = _predicted(fit, nonzeros, features, N, K, workers)
        parts, fixed = guess["parts"], ("per_question", "per_worker", "per_block")
        rows.append(
            f"{name} | {parts['per_nonzero']:.2f} s | {parts['per_weight']:.2f} s | "
            f"{1e3 * sum(parts[part] for part in fixed):.0f} ms | "
            f"{1e3 * parts['network']:.1f} ms | {guess['bytes'] / 1e6:.1f} MB | "
            f"**{guess['seconds']:.2f} s**"
        )
    any_guess = next(iter(found.values()))
    head = "solver | passes over the data | weights | requests | network | bytes | an evaluation"
    return f"""For 10¹⁰ non-zeros, F = 10⁸, N = 200 and K = 10 on 100 workers, each with 10⁸
non-zeros and 10⁶ features (2.4 GB of data in memory), the model predicts:

{_table(head, rows)}

This was **not measured**. It assumes

- one core like those of this machine for each worker, with the same memory bandwidth;
- a network of 10 Gbit/s that sends all bytes one after the other, although they are sent along a
  tree;
- {any_guess["levels"]} levels of that tree with 8 workers each, each level as slow as a request to
  8 workers here, where they share {fitted["cores"]} cores;
- the same number of requests per evaluation;
- no slow or lost workers."""


def _data_section(makes: list[Record]) -> str:
    if not makes:
        return MISSING
    rows = [
        f"{m['nonzeros']:,} | {m['n_times']:,} | {m['n_features']:,} | {m['n_shards']} | "
        f"{m['bytes'] / 1e9:.2f} GB | {m['seconds']:.0f} s | {m['peak_rss'] / 1e6:.0f} MB"
        for m in makes
    ]
    return _table("non-zeros | steps | features | shards | size | made in | peak RSS", rows)


# All of it.


def everything(out: Path, folder: Path, quick: bool, page: Path, keep: bool) -> None:
    """Run each part in its own process, so that memory is measured separately."""
    import shutil
    import subprocess

    small = 1e-2 if quick else 1.0
    # Non-zeros, steps, features, shards: chosen so that the costs of a non-zero and of a feature
    # can be separated. The last has few weights, since accelerated stores several copies of them
    # and its workers are small.
    sizes = {
        "large": (1e8, 200, 1e6, 64), "wide": (2e7, 200, 1e6, 64), "dense": (2e7, 200, 1.5e5, 16),
        "memory": (2e8, 5000, 5e4, 256),
    }  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []

    def run(name: str, *arguments: Any) -> None:
        began = time.perf_counter()
        file = out / f"{name}.json"
        command = [sys.executable, __file__, *map(str, arguments), "--out", str(file)]
        subprocess.run(command, check=True)
        files.append(file)
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)

    for name, (nonzeros, times, features, shards) in sizes.items():
        place = folder / name
        run(
            f"make-{name}", "make", place, "--nonzeros", small * nonzeros, "--times", times,
            "--features", small * features, "--shards", shards,
        )  # fmt: skip
        if name == "memory":
            for solver in ("mm", "accelerated"):
                run(
                    f"memory-{solver}", "memory", place, "--solver", solver,
                    *["--any-size"] * quick,
                )  # fmt: skip
        else:
            once = [] if name == "large" else ["--no-overhead", "--iterations", 5]
            run(f"speed-{name}", "speed", place, *once)
        if not keep:
            shutil.rmtree(place)
    run("model", "model", *files, "--page", page)


def _others() -> float:
    """Share of this machine that other processes use, before the measurement."""
    import psutil

    return psutil.cpu_percent(interval=3.0) / 100.0


def _machine() -> str:
    import platform
    from importlib.metadata import version

    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    kinds = ", ".join(f"{n} {version(n)}" for n in ("numpy", "scipy", "numba", "distributed"))
    return (
        f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores, "
        f"{platform.platform()}. Python {platform.python_version()}, {kinds}."
    )


def arguments() -> argparse.Namespace:
    def whole(text: str) -> int:
        return int(float(text))

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(dest="part", required=True)

    def part(name: str, help: str, *, folder: bool = True) -> argparse.ArgumentParser:
        found = parts.add_parser(name, help=help)
        if folder:
            found.add_argument("folder", type=Path, help="of shards")
        found.add_argument("--out", type=Path, help="JSON file, in results/cluster if not given")
        return found

    made = part("make", "write made-up shards")
    made.add_argument("--nonzeros", type=float, default=1e8)
    made.add_argument("--times", type=whole, default=200)
    made.add_argument("--features", type=whole, default=1_000_000)
    made.add_argument("--shards", type=whole, default=64)
    made.add_argument("--seed", type=int, default=0)
    timed = part("speed", "seconds and bytes of an iteration")
    timed.add_argument("--components", type=int, default=10)
    timed.add_argument("--iterations", type=int, default=10, help="of a round")
    timed.add_argument("--rounds", type=int, default=3)
    timed.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    timed.add_argument("--no-overhead", action="store_true", help="leave out tiny data")
    tight = part("memory", "a fit of data that do not fit into memory")
    tight.add_argument("--memory-limit", default="512MB", help="of each worker")
    tight.add_argument("--workers", type=int, default=2)
    tight.add_argument("--components", type=int, default=10)
    tight.add_argument("--max-iter", type=int, default=0, help="12 of MM, 35 of accelerated")
    tight.add_argument("--solver", choices=("mm", "accelerated"), default="accelerated")
    tight.add_argument("--any-size", action="store_true", help="small data too: does it run?")
    fitted = part("model", "cost model and page", folder=False)
    fitted.add_argument("files", type=Path, nargs="*", help="JSON of the other parts")
    fitted.add_argument("--page", type=Path, default=PAGE)
    whole_lot = parts.add_parser("all", help="everything")
    whole_lot.add_argument("--out", type=Path, default=RESULTS, help="folder for JSON files")
    whole_lot.add_argument("--data", type=Path, help="folder for shards, OUT/data if not given")
    whole_lot.add_argument("--keep", action="store_true", help="keep the shards, 10 GB")
    whole_lot.add_argument("--quick", action="store_true", help="a hundredth, into OUT/cluster.md")
    return parser.parse_args()


def main() -> int:
    o = arguments()
    if o.part == "all":
        page = o.out / "cluster.md" if o.quick else PAGE
        everything(o.out, o.data or o.out / "data", o.quick, page, o.keep)
        return 0
    name, others = o.part, _others() if o.part in ("speed", "memory") else None
    if o.part == "make":
        found = make(o.folder, o.nonzeros, o.times, o.features, o.shards, o.seed)
    elif o.part == "speed":
        found = speed(o.folder, o.components, o.iterations, o.rounds, o.workers, not o.no_overhead)
    elif o.part == "memory":
        # Accelerated begins with 30 iterations of MM.
        max_iter = o.max_iter or (12 if o.solver == "mm" else 35)
        found = memory(
            o.folder, o.memory_limit, o.workers, o.components, max_iter, o.solver, o.any_size
        )
    else:
        found = model([json.loads(file.read_text()) for file in o.files], o.page)
    if hasattr(o, "folder"):
        name = f"{o.part}-{o.folder.name}"
    file = o.out or RESULTS / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    found |= {"machine": _machine(), "date": date.today().isoformat(), "others": others}
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"written: {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
