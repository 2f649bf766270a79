"""Interrupt commands at random moments, and check what they leave behind.

    python tools/faults.py --seed 0 --rounds 20

Each command runs on small data: first undisturbed, to record its time, its files and its result,
then repeatedly with a fault: SIGKILL, SIGTERM, Ctrl-C or a full disk.
Signals are sent at a random time, or as soon as a file is being written. A full disk is a limit on
the size of files or, where we may mount one, a file system with a few kB left. A fault that came
too late, or a disk with enough space, is drawn again, a few times; a round in which no fault
occurred is "missed".

After each fault the result is the one from before, to the bit, or the complete new one; exit code
and message are right; no process and, unless it was a kill, no partial file is left; and the same
command, run again, resumes from what was saved and ends with the undisturbed result.
"""

from __future__ import annotations

import argparse
import atexit
import csv
import fcntl
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "int": signal.SIGINT}
FAULTS = (*SIGNALS, "disk")
CODES = {"kill": -signal.SIGKILL, "term": 143, "int": 130, "disk": 2}
OUTCOMES = ("old", "new", "resumed", "missed", "wrong")
ROOM = 4 << 20  # of a disk of our own
TRIES = 5  # per round, until a fault lands
_KEPT = "--checkpoint state.ckpt --checkpoint-every 0"
_WORDS = {
    "fit": "fit table.csv --components 3 --starts 6 --tol 1e-9 --jobs 2 --out model.npz --force",
    "compare": "compare table.csv --components 2 --splits 2 --inits 1 --chains gap,rate --out out",
    "report": "report fitted.npz --out report.html --force",
    "gibbs": "fit table.csv --components 3 --solver gibbs --draws 60 --tune 20 --runs 2 --jobs 1 "
    f"--out model.npz --force {_KEPT}",
    "save": "",
    "accelerated": "fit table.csv --components 3 --starts 4 --tol 1e-12 --jobs 2 "
    f"--out model.npz --force {_KEPT}",
}
COMMANDS = tuple(_WORDS)
_RESULTS = dict.fromkeys(COMMANDS, "model.npz") | {"report": "report.html"}
_OF_COMPARE = ("config.json", "records.csv", "table.csv", "table.md", "table.tex",
               "differences.png", "fits.jsonl")  # fmt: skip
# The models are by number of components; the last is what was there before.
_MODELS = {"fitted.npz": 3, "other.npz": 2, "before.npz": 1}


def table(path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(2.0, 1.0, (40, 3)) @ rng.gamma(0.5, 4.0, (3, 30)))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["year", *(f"feature {i}" for i in range(X.shape[1]))])
        writer.writerows([1980 + n, *row] for n, row in enumerate(X))


def saves(folder: Path) -> None:
    """Save two models in turn, for a while; the smaller one first, which may still have room."""
    from temporalnmf import load

    models = [load(folder / name) for name in ("other.npz", "fitted.npz")]
    for _ in range(300):
        for model in models:
            model.save(folder / "model.npz", overwrite=True)


def act(command: str, words: list[str]) -> None:
    """In a process of its own: a command, as the shell would start it."""
    from temporalnmf.__main__ import main
    from temporalnmf.runtime import signals as stopping

    if command != "save":
        sys.argv = ["temporalnmf", *words]
        main()
        return
    sys.unraisablehook = stopping.not_raised
    signal.signal(signal.SIGTERM, stopping.stop)
    try:
        saves(Path())
    except KeyboardInterrupt as stop:
        sys.stderr.write("Interrupted: saves\n")
        sys.exit(stopping.exit_code(stop))
    except OSError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(2)


class Child:
    """A command at work, forked from a process that has everything loaded, or started cold."""

    def __init__(
        self, command: str, words: list[str], folder: Path, limit: int | None, cold: bool
    ) -> None:
        self.folder = folder
        out, into = os.pipe()
        ready, go = os.pipe()
        if cold:
            code = (
                f"import os, sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); "
                f"import faults; faults._begin({str(folder)!r}, {limit!r}); "
                f"os.write({go}, b'.'); faults.act({command!r}, {words!r})"
            )
            self.process = subprocess.Popen(
                [sys.executable, "-c", code], start_new_session=True, stdout=into, stderr=into,
                pass_fds=[go],
            )  # fmt: skip
            self.pid = self.process.pid
        else:
            self.process = None
            sys.stdout.flush()
            self.pid = os.fork()
            if not self.pid:
                _forked(command, words, folder, limit, into, go)
        os.close(into)
        os.close(go)
        os.read(ready, 1)
        os.close(ready)
        self.out = out
        self.text = b""
        fcntl.fcntl(out, fcntl.F_SETFL, os.O_NONBLOCK)
        self.code: int | None = None

    def poll(self) -> int | None:
        self._drain()
        if self.code is None and self.process is not None:
            self.code = self.process.poll()
        elif self.code is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def wait(self, seconds: float = 900.0) -> int:
        until = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > until:
                os.killpg(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise TimeoutError(f"it hangs: {self.text.decode()}")
            time.sleep(0.002)
        return self.code

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            while part := os.read(self.out, 65536):
                self.text += part

    def close(self) -> str:
        self._drain()
        os.close(self.out)
        return self.text.decode(errors="replace")

    def watched_by_workers(self) -> bool:
        """Whether both joblib processes know their parent and have a thread that watches it.

        Before their first task they do not, and would sleep for five minutes after a kill.
        """
        found = []
        for process in self.others():
            with suppress(psutil.Error):
                if "popen_loky" in " ".join(process.cmdline()):
                    found.append(process.num_threads() > 1)
        return len(found) > 1 and all(found)

    def others(self) -> list[psutil.Process]:
        """Processes of its session that are still at work."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, ProcessLookupError):
                if os.getsid(process.pid) == self.pid and process.status() != "zombie":
                    found.append(process)
        return found


def _begin(folder: str, limit: int | None) -> None:
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def _forked(command, words, folder, limit, into, go):
    """Run a forked child; does not return."""
    code = 1
    try:
        os.setsid()
        os.dup2(into, 1)
        os.dup2(into, 2)
        _begin(str(folder), limit)
        os.write(go, b".")
        os.close(go)
        act(command, words)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        try:  # as the interpreter would
            threading._shutdown()
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:
            traceback.print_exc()
            code = 1
        os._exit(code)


# Contents of a folder


def content(path: Path, cut: bool = False):
    """What a file says, but for dates and times taken; None if there is none, an error if half.

    A last line of records that was cut short is left out if `cut`.
    """
    if not path.exists():
        return None
    if path.suffix == ".npz":
        with zipfile.ZipFile(path) as file:
            if file.testzip() is not None:
                raise ValueError(f"{path.name} is damaged")
            found = {name: file.read(name) for name in file.namelist()}
        header = json.loads(found["header.json"])
        if header.get("provenance"):
            header["provenance"].pop("date", None)
        return {**found, "header.json": header}
    if path.suffix == ".png":
        return path.read_bytes()
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        if not text.rstrip().endswith("</html>"):
            raise ValueError(f"{path.name} is cut short")
        return _without_dates(text)
    if path.suffix == ".jsonl":
        whole, _, rest = text.rpartition("\n")
        if rest and not cut:
            raise ValueError(f"{path.name} has a line that is cut short")
        records = [json.loads(line) for line in whole.splitlines()]
        return sorted(json.dumps({**r, "seconds": 0}, sort_keys=True) for r in records)
    if path.suffix == ".json":
        return json.loads(text)
    if path.suffix == ".csv":
        rows = list(csv.DictReader(text.splitlines()))
        return [{k: v for k, v in row.items() if "seconds" not in k} for row in rows]
    return text


def _without_dates(text: str) -> str:
    import re

    return re.sub(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(\+00:00)?( UTC)?)?", "DATE", text)


def contents(command: str, folder: Path, cut: bool = False):
    if command != "compare":
        return content(folder / _RESULTS[command])
    return {name: content(folder / "out" / name, cut) for name in _OF_COMPARE}


def records(folder: Path) -> bytes:
    """The whole lines of the records."""
    path = folder / "out" / "fits.jsonl"
    text = path.read_bytes() if path.exists() else b""
    return text[: text.rfind(b"\n") + 1]


def done(checkpoint: Path) -> tuple[int, int]:
    """Progress of a fit: the run and its sweep, or the starts and all of their iterations."""
    with np.load(checkpoint) as found:
        if "done" in found:
            return int(found["run"]), int(found["done"])
        starts = [found[name] for name in found.files if name.endswith(".iterations")]
        return len(starts), sum(int(iterations[-1]) for iterations in starts)


def partials(folder: Path) -> list[str]:
    found = [p for p in folder.rglob("*") if "partial" in p.name or "trial" in p.name]
    return sorted(str(p.relative_to(folder)) for p in found)


# Rounds


class Case:
    """A command, its folder as it is before, and its undisturbed result."""

    def __init__(self, command: str, folder: Path, pristine: Path) -> None:
        self.command, self.folder, self.pristine = command, folder, pristine
        self.words = _WORDS[command].split()
        self.checkpoint = folder / "state.ckpt"
        self.reset()
        self.old = contents(command, folder)
        if command == "save":
            self.seconds, self.n_writes = 0.5, 40
            self.largest = (pristine / "fitted.npz").stat().st_size
            self.new = [content(pristine / name) for name in ("fitted.npz", "other.npz")]
            return
        watch = Watch(self)
        began = time.monotonic()
        code, text, _ = self.run(disturb=watch)
        if code:
            raise RuntimeError(f"{command} undisturbed ended with {code}: {text}")
        self.seconds = time.monotonic() - began
        self.n_writes = max(len(watch.writes), 1)
        self.new = [contents(command, folder)]
        written = [p for p in folder.rglob("*") if p.is_file() and not (pristine / p.name).exists()]
        self.largest = max(watch.size, *(p.stat().st_size for p in written))

    def reset(self) -> None:
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name in ("table.csv", *_MODELS):
            shutil.copy(self.pristine / name, self.folder / name)
        if self.command != "compare":
            old = self.folder / _RESULTS[self.command]
            if old.suffix == ".html":
                old.write_text("<html>old</html>")
            else:
                shutil.copy(self.pristine / "before.npz", old)

    def run(self, more: tuple[str, ...] = (), limit: int | None = None, cold: bool = False,
            disturb=None) -> tuple[int, str, list[str]]:  # fmt: skip
        child = Child(self.command, [*self.words, *more], self.folder, limit, cold)
        if disturb is not None:
            disturb(child)
        code = child.wait()
        until = time.monotonic() + 120.0  # workers of joblib that nobody ends stay for 300 s
        while (left := child.others()) and time.monotonic() < until:
            time.sleep(0.05)
        names = [f"{p.pid} {' '.join(p.cmdline())[:80]}" for p in left]
        for process in left:
            process.kill()
        return code, child.close(), names

    def a_round(
        self, fault: str, rng: np.random.Generator, mounted: bool, number: int, tries: int = 0
    ) -> str:
        """What a fault led to, in a word; "wrong: ..." if it is not as it should be.

        After some tries that missed the fault comes earlier, and the disk is smaller.
        """
        self.reset()
        cold = number % 10 == 9
        # Two processes, a file that several write to; slow to start, so not often.
        more = ("--jobs", "2") if self.command == "compare" and number % 5 == 3 else ()
        limit, disturb, ballast = None, None, self.folder / "ballast"
        if fault == "disk":
            most = max(1.1 * self.largest / 2**tries, 128.0)
            free = int(math.exp(rng.uniform(math.log(64.0), math.log(most))))
            if mounted and rng.random() < 0.5:
                room = shutil.disk_usage(self.folder).free
                ballast.write_bytes(b"\1" * max(room - free, 0))
            else:
                limit = free
        else:
            disturb = self._signal(SIGNALS[fault], rng, bool(more), tries)
        code, text, orphans = self.run(more, limit, cold, disturb)
        wrong = self._judge(fault, code, text, cold)
        if orphans:
            wrong.append(f"processes stay behind: {orphans}")
        state, reason = self._state(fault)
        wrong += reason
        if code == 0 and state != "new":
            wrong.append(f"exit code 0, but the result is {state}")
        if fault != "kill" and partials(self.folder):
            wrong.append(f"left behind: {partials(self.folder)}")
        ballast.unlink(missing_ok=True)
        if code == 0 and not wrong:
            return "missed"
        if self.checkpoint.exists() and state == "old":
            state = "resumed"
        wrong += self._again(more)
        if partials(self.folder):
            wrong.append(f"left behind after the next run: {partials(self.folder)}")
        return f"wrong: {'; '.join(wrong)} (exit code {code}, {text[-600:]!r})" if wrong else state

    def _signal(self, number: int, rng: np.random.Generator, jobs: bool, tries: int):
        """Send it at a random moment, or when a file is being written, for the nth time."""
        seconds = self.seconds + 6.0 * jobs
        at_random = rng.random() < 0.4 + 0.2 * tries and not (jobs and number == signal.SIGKILL)
        when = rng.uniform(0.0, seconds / (1 + tries))
        delay = float(rng.choice([0.0, rng.uniform(0.0, 0.003)]))
        skip, names = int(rng.integers(0, self.n_writes)), ""
        if self.command != "compare" and rng.random() < 0.3:
            skip, names = 0, f".{_RESULTS[self.command]}."  # and not the checkpoint
        if jobs:
            skip //= 2  # what is written before all are at work does not count
        group = rng.random() < 0.5 and number != signal.SIGKILL
        patient = jobs and number == signal.SIGKILL

        def send(child: Child) -> None:
            until = time.monotonic() + (when if at_random else 10.0 * seconds)
            seen: set[str] = set()
            while time.monotonic() < until and child.poll() is None:
                if at_random:
                    time.sleep(0.001)
                    continue
                if patient and not (seen or child.watched_by_workers()):
                    time.sleep(0.01)
                    continue
                seen |= {name for name in self.writes() if name.startswith(names)}
                if len(seen) > skip:
                    time.sleep(delay)
                    break
            if child.poll() is None:
                (os.killpg if group else os.kill)(child.pid, number)

        return send

    def writes(self) -> set[str]:
        """Names of the files that are being written, and records so far."""
        found: set[str] = set()
        for folder in (self.folder, self.folder / "out"):
            with suppress(FileNotFoundError):
                found |= {name for name in os.listdir(folder) if ".partial" in name}
        if size := len(records(self.folder)):
            found.add(f"{size} bytes of records")
        return found

    def _judge(self, fault: str, code: int, text: str, cold: bool) -> list[str]:
        """Exit code and message."""
        if code == 0:
            return []  # it had ended before, or there was room enough
        early = "in main" not in text  # Python itself was starting
        if cold and early and fault in ("int", "term") and code in (-SIGNALS[fault], 1):
            return []
        if code != CODES[fault]:
            return ["exit code"]
        said = [line for line in text.splitlines() if line.startswith(("Interrupted", "Error:"))]
        if fault == "kill":
            return []
        if len(said) != 1 or "Traceback" in text or "Exception ignored" in text:
            return ["message"]
        if fault == "disk" and not (
            ("No space left" in said[0] or "File too large" in said[0])
            and "Free space" in said[0]
            and any(name in said[0] for name in (*_RESULTS.values(), "state.ckpt", "out/"))
        ):
            return ["message"]
        if fault == "disk" or self.command == "save":
            return []
        if self.command == "compare":
            early = not records(self.folder) and "nothing was written" in said[0]
            return [] if early or "continues where it stopped" in said[0] else ["message"]
        expected = []
        if self.checkpoint.exists():
            expected.append("continues from state.ckpt")
        if self._state(fault)[0] == "new":
            expected.append("Written before")
        expected = expected or ["nothing was written"]
        return [] if any(e in said[0] for e in expected) else [f"message, expected {expected}"]

    def _state(self, fault: str = "") -> tuple[str, list[str]]:
        """Which result is there, and what is wrong with it."""
        try:
            # Only a kill may leave half a record, which `read_records` leaves out, too.
            now = contents(self.command, self.folder, cut=fault == "kill")
        except Exception as error:
            return "half", [f"half a file: {error!r}"]
        if now in self.new:
            return "new", []
        if now == self.old:
            return "old", []
        if self.command == "compare":
            whole = self.new[0]
            good = all(now[n] in (None, whole[n]) for n in now if n != "fits.jsonl")
            if good and set(now["fits.jsonl"] or []) <= set(whole["fits.jsonl"]):
                return "resumed", []
        return "other", ["the result is neither the old nor the new one"]

    def _again(self, more: tuple[str, ...]) -> list[str]:
        """What is wrong with the same command, given once more."""
        if self.command == "save":
            _save_once(self.folder)
            return [] if content(self.folder / "model.npz") == self.new[0] else ["the next save"]
        before, watch, wrong = records(self.folder), Watch(self), []
        kept = done(self.checkpoint) if self.checkpoint.exists() else None
        code, said, _ = self.run(more, disturb=watch)
        state, reason = self._state()
        if code or state != "new":
            wrong.append(f"the same command again: {code}, {state}, {reason}, {said[-300:]!r}")
        if not records(self.folder).startswith(before):
            wrong.append("it did not go on from the records that were there")
        if kept is not None and "continuing from it" not in said:
            wrong.append("the checkpoint was not found")
        if kept is not None and watch.done and min(watch.done) < kept:
            wrong.append(f"it did not go on from {kept}, but from {min(watch.done)} or before")
        if self.checkpoint.exists():
            wrong.append("the checkpoint stays after the end")
        return wrong


class Watch:
    """Watches what a command writes, and the progress of its checkpoints."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.writes: set[str] = set()
        self.size = 0  # of the largest checkpoint
        self.done: list[tuple[int, int]] = []

    def __call__(self, child: Child) -> None:
        last = None
        while child.poll() is None:
            self.writes |= self.case.writes()
            with suppress(FileNotFoundError):
                found = self.case.checkpoint.stat()
                if last != (last := (found.st_ino, found.st_mtime_ns)):
                    self.size = max(self.size, found.st_size)
                    self.done.append(done(self.case.checkpoint))
            time.sleep(0.0005)


def _save_once(folder: Path) -> None:
    from temporalnmf import load

    load(folder / "fitted.npz").save(folder / "model.npz", overwrite=True)


def prepare(folder: Path, commands: Sequence[str]) -> None:
    """Data and models; everything is loaded and compiled on the way."""
    from temporalnmf.__main__ import run as run_command

    table(folder / "table.csv")
    before = Path.cwd()
    os.chdir(folder)
    try:
        warm = {
            "report": _WORDS["report"].replace("report.html", "warm.html"),
            "compare": _WORDS["compare"].replace("--out out", "--out warm"),
            "gibbs": "fit table.csv --components 2 --solver gibbs --draws 9 --tune 1 --runs 2 "
            "--jobs 1 --out warm.npz",
        }
        for words in (
            *(
                f"fit table.csv --components {n} --starts 2 --out {name} --jobs 1"
                for name, n in _MODELS.items()
            ),
            *(words for command, words in warm.items() if command in commands),
        ):
            sys.argv = ["temporalnmf", *words.split()]
            with open(os.devnull, "w") as nowhere:
                usual, sys.stdout = sys.stdout, nowhere
                try:
                    run_command()
                except SystemExit as end:
                    if end.code:
                        raise RuntimeError(f"{words} ended with {end.code}") from end
                finally:
                    sys.stdout = usual
    finally:
        os.chdir(before)


def run(
    commands: Sequence[str], faults: Sequence[str], rounds: int, seed: int, verbose: bool = True
) -> dict:
    """Outcomes by command and fault, and what was wrong."""
    outcomes: dict[str, Counter] = {}
    wrong = []
    # Not a TemporaryDirectory: forked children would remove it when they end.
    place = Path(tempfile.mkdtemp(prefix="faults-"))
    os.environ["LOKY_MAX_CPU_COUNT"] = "2"  # no threads of BLAS, see `watched_by_workers`
    pristine, folder = place / "pristine", place / "work"
    pristine.mkdir()
    folder.mkdir()
    prepare(pristine, commands)
    options = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(folder)]
    mounted = "disk" in faults and not subprocess.run(
        options, check=False, stderr=subprocess.DEVNULL
    ).returncode  # fmt: skip
    try:
        for command in commands:
            case = Case(command, folder, pristine)
            for fault in faults:
                rng = np.random.default_rng([seed, COMMANDS.index(command), FAULTS.index(fault)])
                found = outcomes[f"{command} {fault}"] = Counter()
                for number in range(rounds):
                    for tries in range(TRIES):
                        outcome = case.a_round(fault, rng, mounted, number, tries)
                        if outcome != "missed":
                            break
                    if outcome.startswith("wrong"):
                        wrong.append(f"{command} {fault} round {number}: {outcome}")
                        if verbose:
                            print(wrong[-1], flush=True)
                    found[outcome.split(":")[0]] += 1
                if verbose:
                    print(f"{command:12}{fault:5} {rounds:3} rounds: {dict(found)}", flush=True)
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=False)
        shutil.rmtree(place, ignore_errors=True)
    landed = {name: rounds - found["missed"] for name, found in outcomes.items()}
    return {"mounted": bool(mounted), "landed": landed, "outcomes": outcomes, "wrong": wrong}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=20, help="per command and fault")
    parser.add_argument("--command", choices=COMMANDS, action="append")
    parser.add_argument("--fault", choices=FAULTS, action="append")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = run(given.command or COMMANDS, given.fault or FAULTS, given.rounds, given.seed)
    disk = "a disk of our own and limits of size" if found["mounted"] else "limits of size"
    headings = "".join(f"{name:>9}" for name in ("rounds", "landed", *OUTCOMES))
    print(f"\nfull disks by {disk}\n{'command':13}{'fault':6}{headings}")
    for name, counts in found["outcomes"].items():
        command, fault = name.split()
        cells = [given.rounds, found["landed"][name], *(counts[outcome] for outcome in OUTCOMES)]
        print(f"{command:13}{fault:6}" + "".join(f"{cell:9}" for cell in cells))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    sys.exit(1 if found["wrong"] else 0)


if __name__ == "__main__":
    main()
