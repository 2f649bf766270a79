"""The runner of fuzzing: the same numbers are the same cases, and what fails is kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from fuzzing import files, fits
from fuzzing.workers import result_of

import trials

ROOT = Path(__file__).parents[1]
# Workers import the script that started them, so that what is changed here is changed there. The
# files of one loader are made sooner than all.
SCRIPT = """
import sys
import fuzz, trials
from fuzzing import files, fits

files._seeds = lambda scratch: {"records": [files._records()]}
%s
if __name__ == "__main__":
    sys.exit(fuzz.main())
"""


def fuzzed(folder: Path, *arguments: object, change: str | None = None):
    """Exit code and figures of a run, whose corpus is in a folder."""
    script = ROOT / "tools" / "fuzz.py"
    if change is not None:
        script = folder / "script.py"
        script.write_text(SCRIPT % change)
    paths = os.pathsep.join(str(ROOT / name) for name in ("tools", "tests", "src"))
    place = ["--corpus", folder / "corpus", "--json", folder / "figures.json"]
    done = subprocess.run(
        [sys.executable, script, *map(str, [*arguments, "--jobs", 1, *place])],
        env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads((folder / "figures.json").read_text()), done.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("mode", "cases"), [("fits", 4), pytest.param("files", 40, marks=pytest.mark.long)]
)
def test_cases_of_the_same_numbers_end_in_the_same_way(mode, cases, tmp_path):
    """Once by the runner, and once here."""
    code, found, _ = fuzzed(tmp_path, mode, "--cases", cases, "--seed", 7)
    make, run = fits.random_trial, fits.run
    if mode == "files":
        make, run = partial(files.make_case, files.make_seeds(tmp_path / "seeds")), files.run
    again = {seed: result_of(make, run, seed) for seed in range(7, 7 + cases)}
    assert found["outcomes"] == Counter(outcome for outcome, _ in again.values())
    assert found["cases"] == cases
    assert len(found["outcomes"]) > 1, "not all of them end in the same way"
    failed = {seed for seed, (_, error) in again.items() if error}
    assert {case["seed"] for case in found["unexpected"]} == failed
    assert code == bool(failed)


@pytest.mark.long
def test_a_file_that_fails_is_kept_and_fails_again(tmp_path, monkeypatch):
    broken = "files.LOADERS['records'] = (trials.read_or_fail, None)"
    code, found, told = fuzzed(tmp_path, "files", "--cases", 30, "--seed", 100, change=broken)
    assert code == 1
    kept = sorted((tmp_path / "corpus" / "files").iterdir())
    assert found["outcomes"]["failed"] == len(found["unexpected"]) == len(kept) > 3
    assert found["outcomes"]["read"] > 3
    assert {case["file"] for case in found["unexpected"]} == {path.name for path in kept}
    assert all(f"written to {path}" in told for path in kept)
    before = {path: files.run(files.kept(path)).partition(":")[0] for path in kept}
    assert set(before.values()) <= {"read", "refused"}, "they do not fail by themselves"
    monkeypatch.setitem(files.LOADERS, "records", (trials.read_or_fail, None))
    for path in kept:
        assert path.name.startswith("records-1")
        assert "KeyError_lost" in path.name
        with pytest.raises(files.UnexpectedError, match="KeyError: 'lost'"):
            files.run(files.kept(path))


@pytest.mark.long
def test_a_fit_that_fails_is_kept_and_fails_again(tmp_path, monkeypatch):
    broken = "fits._check_again = trials.break_promise"
    code, found, _ = fuzzed(tmp_path, "fits", "--cases", 4, change=broken)
    assert code == 1
    assert found["unexpected"]
    for case in found["unexpected"]:
        trial = fits.Trial.read(tmp_path / "corpus" / "fits" / case["file"])
        assert trial == fits.random_trial(case["seed"])
        with monkeypatch.context() as changed:
            changed.setattr(fits, "_check_again", trials.break_promise)
            with pytest.raises(fits.PromiseError, match="broken on purpose"):
                fits.run(trial)
        fits.run(trial)


@pytest.mark.long
def test_a_run_ends_in_time_and_well_if_nothing_fails(tmp_path):
    slow = "files.LOADERS['records'] = (trials.take_a_moment, None)"
    code, found, _ = fuzzed(tmp_path, "files", "--seconds", 0.2, change=slow)
    assert code == 0
    assert 0 < found["cases"] <= 100, "in batches of 50"
    assert found["outcomes"] == {"read": found["cases"]}
    assert not (tmp_path / "corpus").exists()
