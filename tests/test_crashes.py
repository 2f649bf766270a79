"""Kills, Ctrl-C, SIGTERM and full disks: the old file or the new one, and work that goes on."""

import errno
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from contextlib import contextmanager, suppress
from pathlib import Path

import faults
import numpy as np
import psutil
import pytest
from numba import njit
from numba.extending import overload

from clusters import eventually
from commands import invoke
from temporalnmf import __main__, load
from temporalnmf.cli.console import clean_errors
from temporalnmf.experiments import runner
from temporalnmf.runtime import signals as stopping
from temporalnmf.runtime.compilation import guarded
from temporalnmf.runtime.files import room_told, watched_writes, written_whole
from temporalnmf.runtime.interrupts import between_sweeps
from temporalnmf.runtime.signals import Terminated, end_with, exit_code, stop_behind
from temporalnmf.solvers.accelerated import Accelerated

TOOLS = Path(__file__).parents[1] / "tools"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@contextmanager
def full(n_bytes):
    """No file may be larger; Python ignores the signal, and writing fails."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


@pytest.fixture
def handlers(monkeypatch):
    """Handlers of signals as they are in a shell, and afterwards as they were."""
    monkeypatch.setattr(stopping, "_received", None)
    monkeypatch.setattr(stopping, "_tell", stopping.nothing)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setenv("PYTHONWARNINGS", "")
    usual = [(n, signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGTERM)]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, stopping.stop)
    yield
    for number, handler in usual:
        signal.signal(number, handler)


# Files


@pytest.mark.parametrize("error", [KeyboardInterrupt, Terminated, MemoryError])
def test_a_write_that_fails_leaves_the_old_file(error, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    with pytest.raises(error), written_whole(path) as partial:  # noqa: PT012
        partial.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.csv"]


def test_two_writers_at_once_do_not_share_a_file(tmp_path):
    path = tmp_path / "a.csv"
    with written_whole(path) as first, first.open("w") as file:
        file.write("first")
        with written_whole(path) as second:
            second.write_text("second")
        assert path.read_text() == "second"
        file.write(", to the end")
        file.flush()
        assert path.read_text() == "second"  # what goes on being written is not what is read
    assert path.read_text() == "first, to the end"
    assert first != second
    assert names(tmp_path) == ["a.csv"]
    assert str(os.getpid()) in first.name  # nor with another process


def test_leftovers_of_dead_writers_are_removed(tmp_path):
    path = tmp_path / "a+-1.csv"
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with written_whole(path) as partial:
        partial.write_text("x")
    own = partial.name

    def left(process=dead.pid, name=own, machine=None):
        found = name.replace(f"-{os.getpid()}-", f"-{process}-")
        if machine is not None:
            found = re.sub(r"\.[0-9a-f]{8}-", f".{machine}-", found)
        (tmp_path / found).write_text("half")
        return found

    gone = left()
    alive = left(os.getppid())
    others = left(machine="01234567"), left(name=own.replace("a+-1.csv", "a+-2.csv"))
    with written_whole(path) as partial:
        partial.write_text("y")
    assert names(tmp_path) == sorted(["a+-1.csv", alive, *others])
    assert gone not in names(tmp_path)


def test_a_writer_that_was_killed_is_cleaned_up_after(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from temporalnmf.runtime.files import written_whole\n"
        "with written_whole(Path(sys.argv[1])) as partial:\n"
        "    partial.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, path], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    assert len(names(tmp_path)) == 2
    with written_whole(path) as partial:
        partial.write_text("new")
    assert path.read_text() == "new"
    assert names(tmp_path) == ["a.csv"]


def test_content_is_on_the_disk_before_the_name(tmp_path, monkeypatch):
    """And the name after it: else a power cut may leave a name without content."""
    done, fsync, replace = [], os.fsync, Path.replace

    def synced(number):
        done.append(("fsync", os.fstat(number).st_ino))
        fsync(number)

    def renamed(self, target):
        done.append(("replace", self.stat().st_ino))
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    with written_whole(tmp_path / "a.csv") as partial:
        partial.write_text("x")
    file, folder = (path.stat().st_ino for path in (tmp_path / "a.csv", tmp_path))
    assert done == [("fsync", file), ("replace", file), ("fsync", folder)]


def test_a_new_file_has_the_permissions_of_the_user_and_a_replaced_one_its_own(tmp_path):
    """Those of the user for a new one, and its own for one that is replaced."""
    path, private = tmp_path / "a.csv", tmp_path / "b.csv"
    private.write_text("old")
    private.chmod(0o600)
    usual = os.umask(0o027)
    try:
        for one in (path, private):
            with written_whole(one) as partial:
                partial.write_text("new")
    finally:
        os.umask(usual)
    assert path.stat().st_mode & 0o777 == 0o640
    assert private.stat().st_mode & 0o777 == 0o600
    assert private.read_text() == "new"


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    link, file = tmp_path / "link.csv", tmp_path / "there" / "file.csv"
    file.write_text("old")
    link.symlink_to(file)
    with written_whole(link) as partial:
        partial.write_text("new")
    assert link.is_symlink()
    assert file.read_text() == "new"
    assert names(tmp_path) == ["link.csv", "there"]
    assert names(tmp_path / "there") == ["file.csv"]


def test_a_pipe_is_not_replaced(tmp_path):
    """Nor is /dev/null."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="pipe is a device or a pipe"), written_whole(pipe) as partial:
        partial.write_text("x")
    assert pipe.is_fifo()


def test_long_names_can_be_written(tmp_path):
    path = tmp_path / f"{'é' * 120}.csv"  # 244 bytes of the 255 there are
    with written_whole(path) as partial:
        partial.write_text("x")
    assert names(tmp_path) == [path.name]


def _text(partial):
    partial.write_text("x" * 5000)


def _array(partial):
    """NumPy tells how much it wrote, and not why it stopped."""
    with partial.open("wb") as file:
        np.save(file, np.zeros(5000))


def _archive(partial):
    with partial.open("wb") as file:
        np.savez(file, a=np.zeros(5000))


@pytest.mark.parametrize("write", [_text, _array, _archive])
def test_a_full_disk_is_reported_with_the_file_and_what_to_do(write, tmp_path):
    path = tmp_path / "a.npz"
    path.write_text("old")
    with full(1000), pytest.raises(OSError) as caught, written_whole(path) as partial:  # noqa: PT011
        write(partial)
    said = str(caught.value)
    assert said.startswith(f"{path} could not be written, and is unchanged: ")
    assert said.endswith(". Free space on the disk, or name a file on another one.")
    if write is not _array:
        assert "File too large" in said
        assert caught.value.errno == errno.EFBIG
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.npz"]


def test_no_space_left_is_reported_with_the_file(tmp_path):
    said = r"a\.csv could not .*: No space left on device\. Free space"
    with pytest.raises(OSError, match=said), room_told(tmp_path / "a.csv"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_errors_other_than_a_full_disk_stay_what_they_are(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, written_whole(tmp_path / "a"):
        (tmp_path / "b").read_text()
    assert caught.value.filename == str(tmp_path / "b")
    with pytest.raises(IsADirectoryError) as caught, written_whole(tmp_path / "a") as partial:
        raise IsADirectoryError(errno.EISDIR, "Is a directory", str(partial))
    assert caught.value.filename == str(tmp_path / "a")  # not the name that nobody knows


def test_watched_writes_list_the_files_that_were_put_in_place(tmp_path, monkeypatch):
    one, other = tmp_path / "one", tmp_path / "other"
    other.write_text("old")

    def stopped(self, target):
        raise KeyboardInterrupt

    with watched_writes() as there:
        with written_whole(one) as partial:
            partial.write_text("x")
            assert there() == []
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", stopped)
            with pytest.raises(KeyboardInterrupt), written_whole(other) as partial:
                partial.write_text("x")
        assert there() == [one]
    with written_whole(tmp_path / "later") as partial:
        partial.write_text("x")
    assert there() == [one]


def test_a_stop_is_raised_as_one_whatever_a_library_makes_of_it(tmp_path):
    """It comes after zipfile has opened a member, and before anybody can close it."""
    path = tmp_path / "a.zip"
    with pytest.raises(Terminated), written_whole(path) as partial:  # noqa: PT012, SIM117
        with zipfile.ZipFile(partial, "w") as file:
            handle = file.open("member", "w")
            raise Terminated
    handle.close()
    assert names(tmp_path) == []


def test_the_stop_behind_an_error_is_found():
    error = ValueError()
    error.__context__ = ImportError()
    error.__context__.__cause__ = Terminated()
    assert stop_behind(error) is error.__context__.__cause__
    assert exit_code(stop_behind(error)) == 143
    assert stop_behind(ValueError()) is None
    assert exit_code(KeyboardInterrupt()) == 130


# Signals


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_signals_wait_for_the_end_of_a_sweep(number, kind, handlers):
    """And are not lost, even if nobody looked."""
    reached = False
    with pytest.raises(KeyboardInterrupt) as caught, between_sweeps() as interrupt:  # noqa: PT012
        assert not interrupt.pressed
        signal.raise_signal(number)
        assert interrupt.pressed
        reached = True
    assert reached
    assert caught.type is kind
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is stopping.stop


def test_a_stop_that_the_sweeps_raise_is_that_of_the_signal(handlers):
    with pytest.raises(Terminated), between_sweeps() as interrupt:  # noqa: PT012
        signal.raise_signal(signal.SIGTERM)
        if interrupt.pressed:
            raise KeyboardInterrupt


def test_a_handler_of_somebody_else_is_left_alone(handlers):
    came = []
    signal.signal(signal.SIGTERM, lambda *_: came.append(1))
    with between_sweeps() as interrupt:
        signal.raise_signal(signal.SIGTERM)
        assert came == [1]
        assert not interrupt.pressed


@pytest.mark.parametrize(("stop", "code"), [(KeyboardInterrupt, 130), (Terminated, 143)])
def test_a_stop_before_the_command_has_begun_says_that_nothing_was_written(
    stop, code, handlers, monkeypatch, capsys
):
    def stopped():
        for number in (signal.SIGINT, signal.SIGTERM):
            assert signal.getsignal(number) is stopping.stop
        raise stop

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    monkeypatch.setattr(__main__, "run", stopped)
    with pytest.raises(SystemExit) as caught:
        __main__.main()
    assert caught.value.code == code
    assert capsys.readouterr().err == "Interrupted: nothing was written.\n"
    # What is left is not to be cut short.
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


@pytest.mark.parametrize("code", [0, 2])
def test_a_stop_after_the_command_has_ended_changes_nothing(code, handlers, monkeypatch, capsys):
    """It comes while main sees to it that no stop does any harm from then on."""
    ignore = __main__.ignore_stops

    def stopped():
        monkeypatch.setattr(__main__, "ignore_stops", ignore)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(__main__, "run", lambda: sys.exit(code))
    monkeypatch.setattr(__main__, "ignore_stops", stopped)
    with pytest.raises(SystemExit) as caught:
        __main__.main()
    assert caught.value.code == code
    assert capsys.readouterr().err == ""
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_a_stop_between_the_end_of_a_command_and_that_of_main_tells_what_was_written(
    handlers, monkeypatch, capsys
):
    def run():
        with clean_errors() as voice:
            voice.wrote(Path("m.npz"))
        raise Terminated

    monkeypatch.setattr(__main__, "run", run)
    with pytest.raises(SystemExit) as caught:
        __main__.main()
    assert caught.value.code == 143
    assert capsys.readouterr().err == "Interrupted. Written before: m.npz.\n"


@pytest.mark.parametrize("stopped", [True, False])
def test_an_import_that_is_cut_short_is_a_stop(stopped, handlers, monkeypatch, capsys):
    """Python's parser calls it a SyntaxError if unicodedata cannot be loaded."""

    def run():
        if stopped:
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        raise SyntaxError("can't load unicodedata module")

    monkeypatch.setattr(__main__, "run", run)
    with pytest.raises(SystemExit if stopped else SyntaxError) as caught:
        __main__.main()
    if stopped:
        assert caught.value.code == 130
        assert capsys.readouterr().err == "Interrupted: nothing was written.\n"


class _Dropped:
    """Stops the process when it is let go; Python swallows what comes up there."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("then", ["goes on", "fails"])
def test_a_stop_that_is_swallowed_is_not_lost(then, handlers, table, tmp_path, monkeypatch):
    """Ctrl-C that comes in a finaliser, as compilers have many; numba may fail for it later."""
    signal.signal(signal.SIGINT, stopping.stop)
    solve, looks = Accelerated.solve, []

    def solved(self, *arguments, **others):
        dropped = _Dropped()
        del dropped
        looks.append(stopping.stop_that_came())
        if then == "fails":
            raise RuntimeError("no compiled object yet")
        solve(self, *arguments, **others)
        looks.append("solved")

    monkeypatch.setattr(Accelerated, "solve", solved)
    out = tmp_path / "m.npz"
    result = invoke("fit", table, "--components", 1, "--starts", 9, "--out", out)
    assert [type(look) for look in looks] == [KeyboardInterrupt]
    assert result.exit_code == 130
    assert result.stderr.endswith("Interrupted: nothing was written.\n")
    assert not out.exists()


def test_a_stop_that_is_swallowed_prints_no_traceback(capfd):
    """Of other exceptions it does."""
    program = """
import signal, sys
from temporalnmf import __main__

class Dropped:
    def __init__(self, act):
        self.act = act
    def __del__(self):
        self.act()

def run():
    Dropped(lambda: signal.raise_signal(signal.SIGINT))
    Dropped(lambda: {}["lost"])
    print("goes on")

__main__.run = run
signal.signal(signal.SIGINT, signal.default_int_handler)
__main__.main()
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    out, errors = capfd.readouterr()
    assert out == "goes on\n"
    assert "KeyboardInterrupt" not in errors
    assert errors.rstrip().endswith("KeyError: 'lost'")


def test_ctrl_c_waits_while_a_function_is_compiled(handlers):
    """Numba would swallow it, or fail with words of its own."""
    done = []

    def five(x):
        return 5

    @overload(five)
    def _five(x):  # called by the compiler
        signal.raise_signal(signal.SIGINT)
        done.append("typed")
        return lambda x: 5

    function = njit(lambda x: five(x))
    with pytest.raises(KeyboardInterrupt), guarded():
        function(1.0)
    assert "typed" in done
    assert len(function.signatures) == 1
    assert function(1.0) == 5
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(("stop", "code"), [(KeyboardInterrupt, 130), (Terminated, 143)])
def test_a_stop_that_typer_takes_is_reported(stop, code, handlers, monkeypatch, capsys):
    """It comes after Typer has begun, and before a command has: Typer would end without a word."""
    monkeypatch.setattr(sys, "argv", ["temporalnmf", "info", "x.npz"])

    def stopped(*_, **__):
        raise stop

    monkeypatch.setattr("typer.core.TyperGroup.make_context", stopped)
    with pytest.raises(SystemExit) as caught:
        __main__.main()
    assert caught.value.code == code
    assert capsys.readouterr().err.strip() == "Interrupted: nothing was written."


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    rows = np.random.default_rng(0).poisson(5.0, (12, 4))
    lines = [
        "year,a,b,c,d",
        *(f"{2000 + n},{','.join(map(str, row))}" for n, row in enumerate(rows)),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_stop_after_a_file_was_put_in_place_names_it(table, tmp_path, monkeypatch):
    """Also if the stop comes the moment after."""
    replace, out = Path.replace, tmp_path / "m.npz"

    def stopped(self, target):
        replace(self, target)
        raise Terminated

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stopped)
        result = invoke("fit", table, "--components", 1, "--starts", 1, "--out", out)
    assert result.exit_code == 143
    assert result.stderr == f"Interrupted. Written before: {out}.\n"
    assert load(out).n_components == 1


@pytest.mark.parametrize("stop", [Terminated, None])
def test_a_stop_that_numba_hides_is_reported(stop, table, tmp_path, monkeypatch):
    """It comes while compiled code is handed its arguments; other errors stay what they are."""

    def hidden(*_, **__):
        raise SystemError("returned a result with an exception set") from stop

    monkeypatch.setattr("temporalnmf.cli.fit.check_out", hidden)
    result = invoke("fit", table, "--components", 1, "--out", tmp_path / "m.npz")
    if stop is None:
        assert isinstance(result.exception, SystemError)
    else:
        assert result.exit_code == 143
        assert result.stderr == "Interrupted: nothing was written.\n"


def test_a_full_disk_during_a_fit_leaves_the_old_file(table, tmp_path):
    out = tmp_path / "m.npz"
    out.write_text("old")
    with full(900):
        result = invoke("fit", table, "--components", 1, "--starts", 1, "--out", out, "--force")
    assert result.exit_code == 2
    said = f"Error: {out} could not be written, and is unchanged: File too large. Free space"
    assert said in result.stderr
    assert out.read_text() == "old"
    assert names(tmp_path) == ["m.npz", "table.csv"]


# Experiments


def test_a_record_is_added_whole_or_not_at_all(tmp_path):
    log = tmp_path / "fits.jsonl"
    record = {
        "init": 0, "model": "gap", "point": 0, "params": {}, "n_iter": 1, "stop_reason": "x" * 300,
        "kle_validation": 1.0, "kle_s": 1.0, "kle_f": 1.0, "seconds": 1.0,
    }  # fmt: skip
    lines = [json.dumps({"split": i, **record}).encode() + b"\n" for i in range(4)]
    room = len(b"".join(lines[:3])) + 20
    with log.open("ab", buffering=0) as file, full(room):
        for line in lines[:3]:
            runner.add_record(file, line)
        with pytest.raises(OSError, match=r"fits\.jsonl could not be written"), room_told(log):
            runner.add_record(file, lines[3])
    assert log.read_bytes() == b"".join(lines[:3])
    assert [record["split"] for record in runner.read_records(log)] == [0, 1, 2]


@pytest.mark.long
def test_a_comparison_goes_on_after_the_disk_was_full(table, tmp_path):
    out = tmp_path / "out"
    words = ("compare", table, "--out", out, "--components", 1, "--splits", 1, "--inits", 1)
    words = (*words, "--chains", "gap,rate")
    with full(1500):
        result = invoke(*words)
    assert result.exit_code == 2
    assert f"{out / 'fits.jsonl'} could not be written, and is unchanged: File" in result.stderr
    kept = (out / "fits.jsonl").read_bytes()
    assert kept.endswith(b"\n")
    assert invoke(*words).exit_code == 0
    assert (out / "fits.jsonl").read_bytes().startswith(kept)
    assert len(runner.read_records(out / "fits.jsonl")) > len(kept.splitlines()) > 0


WORKER = """
import os, sys
from temporalnmf.runtime.signals import end_with
say, parent = int(sys.argv[1]), int(sys.argv[2])
end_with(parent)
end_with(parent)
os.write(say, b"ready")
sys.stdin.read()
os.write(say, b"late")
"""
PARENT = """
import os, subprocess, sys
worker = [sys.executable, "-c", sys.argv[2], sys.argv[1], str(os.getpid())]
subprocess.run(worker, pass_fds=[int(sys.argv[1])])
"""


def test_workers_end_with_a_process_that_was_killed():
    """Of those of joblib nobody else takes care."""
    hear, say = os.pipe()
    words = [sys.executable, "-c", PARENT, str(say), WORKER]
    with subprocess.Popen(words, pass_fds=[say], stdin=subprocess.PIPE) as parent:
        os.close(say)
        assert os.read(hear, 5) == b"ready"
        parent.kill()
        assert os.read(hear, 5) == b""  # when the last one that could speak has gone
    os.close(hear)


@pytest.mark.parametrize(("name", "code"), [("LokyProcess-1", 1), ("Worker-1", 0)])
def test_a_worker_whose_parent_is_gone_when_it_starts_ends(name, code):
    """One of joblib, that is; others may have other parents."""
    program = (
        "import multiprocessing as m; from temporalnmf.runtime.signals import end_with\n"
        f"m.current_process().name = {name!r}; end_with(2**22)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == code


def test_a_process_that_is_no_child_watches_no_parent():
    before = threading.active_count()
    end_with(os.getpid())
    assert threading.active_count() == before


@pytest.mark.parametrize("stopped", [False, True])
def test_a_zip_file_that_a_stop_leaves_half_written_says_nothing(
    stopped, handlers, tmp_path, capfd
):
    sys.unraisablehook = stopping.not_raised
    file = zipfile.ZipFile(tmp_path / "half.zip", "w")
    file._writing = True  # a member is open
    if stopped:
        with pytest.raises(Terminated):
            stopping.stop(signal.SIGTERM, None)
    file.fp.close()
    del file
    assert ("Can't close the ZIP file" in capfd.readouterr().err) is not stopped


def test_workers_that_are_ended_print_no_warnings(handlers, monkeypatch, capfd):
    """The tracker of joblib, a process of its own, warns of what is gone already."""
    words = "resource_tracker: There appear to be 1 leaked semlock objects"
    program = [sys.executable, "-c", f"import warnings; warnings.warn({words!r})"]
    monkeypatch.setattr(__main__, "run", lambda: subprocess.run(program, check=True))
    subprocess.run(program, check=True)
    assert words in capfd.readouterr().err
    __main__.main()
    assert capfd.readouterr().err == ""


@pytest.mark.long
@pytest.mark.parametrize("how", ["--jobs 2", "--dask local --workers 2"])
def test_sigterm_ends_the_workers(how, table, tmp_path):
    out = tmp_path / "out"
    words = f"compare {table} --out {out} --components 1 --splits 90 --inits 5 {how}".split()
    program = [sys.executable, "-m", "temporalnmf", *words]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as process:
        eventually(lambda: runner.read_records(out / "fits.jsonl") or process.poll() is not None)
        workers = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        said = process.communicate()[1]
    assert len(workers) >= 2
    assert process.returncode == 143
    # Dask may have said before that its scheduler lost a worker.
    assert said.endswith("Interrupted: the same command continues where it stopped.\n")
    assert psutil.wait_procs(workers)[1] == []


# All of it, in processes of their own


def broken_off(tmp_path, *words):
    """What tools/faults.py finds; see there."""
    out = tmp_path / "found.json"
    program = [sys.executable, TOOLS / "faults.py", "--json", out, *map(str, words)]
    ended = subprocess.run(program, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = json.loads(out.read_text())
    assert found["wrong"] == []
    return found["landed"]


@pytest.mark.long
@pytest.mark.parametrize("command", ["save", "fit"])
def test_commands_that_are_interrupted_leave_whole_files(command, tmp_path):
    landed = broken_off(tmp_path, "--command", command, "--rounds", 1)
    assert len(landed) == 4
    assert landed[f"{command} disk"] == 1  # a signal may come too late


@pytest.mark.long
def test_a_fit_that_is_killed_goes_on(tmp_path):
    words = ("--command", "accelerated", "--fault", "kill", "--rounds", 2)
    assert list(broken_off(tmp_path, *words)) == ["accelerated kill"]


@pytest.mark.long
@pytest.mark.parametrize("command", faults.COMMANDS)
def test_commands_that_are_interrupted_many_times_leave_whole_files(command, tmp_path):
    landed = broken_off(tmp_path, "--command", command, "--rounds", 10, "--seed", 1)
    assert len(landed) == 4
    assert min(landed.values()) > 0, landed  # most of them; some come too late


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    folder = tmp_path_factory.mktemp("comparison")
    faults.table(folder / "table.csv")
    words = ["--components", "1", "--splits", "1", "--inits", "1", "--chains", "gap,rate"]
    result = invoke("compare", folder / "table.csv", "--out", folder / "out", *words)
    assert result.exit_code == 0
    return folder


@pytest.fixture
def compared(comparison, tmp_path):
    """What tools/faults.py knows of a comparison that has ended."""
    shutil.copytree(comparison / "out", tmp_path / "out")
    case = object.__new__(faults.Case)
    case.command, case.folder, case.old = "compare", tmp_path, None
    case.new = [faults.contents("compare", tmp_path)]
    assert None not in case.new[0].values()
    assert case._state() == ("new", [])
    return case


@pytest.mark.parametrize("fault", ["kill", "term"])
@pytest.mark.parametrize("name", faults._OF_COMPARE)
def test_the_fault_check_notices_half_a_file(name, fault, compared):
    path = compared.folder / "out" / name
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    if name == "fits.jsonl" and fault == "kill":  # which may cut the last line short, and no more
        assert compared._state(fault) == ("resumed", [])
        path.write_bytes(whole[: len(whole) // 2] + b"\n")
    state, reason = compared._state(fault)
    assert state in ("half", "other")
    assert reason


def test_the_fault_check_notices_half_a_record_before_whole_ones(compared):
    path = compared.folder / "out" / "fits.jsonl"
    path.write_bytes(b'{"i": \n' + path.read_bytes())
    assert compared._state("kill")[0] == "half"


def test_the_fault_check_notices_a_run_that_starts_over(compared, monkeypatch):
    """Records differ in the seconds that fits took."""
    path = compared.folder / "out" / "fits.jsonl"
    compared.checkpoint = compared.folder / "state.ckpt"
    monkeypatch.setattr(compared, "run", lambda more, disturb: (0, "", []), raising=False)
    assert compared._again(()) == []

    def anew(more, disturb):
        path.write_text(path.read_text().replace('"seconds": ', '"seconds": 1'))
        return 0, "", []

    monkeypatch.setattr(compared, "run", anew)
    assert compared._again(()) == ["it did not go on from the records that were there"]
