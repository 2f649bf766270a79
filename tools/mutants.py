"""Mutation testing of the chains and the root finders.

Changes one operator or number at a time, by the operators of cosmic-ray, in a copy of the
repository, and asks whether a test notices. See docs/reliability/survivors.md.

    pip install cosmic-ray==8.7.0
    python tools/mutants.py --sample 600 --seed 0 --out docs/reliability/mutants.json

What is compiled stays in a cache whose keys say what a function calls, so that a mutant compiles
what its change reaches and nothing else. A process that has imported all third-party code forks
one child per mutant; the child imports the package anew, and runs the tests that may notice, those
that have noticed most so far in front, until one fails.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import hashlib
import importlib
import json
import math
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/temporalnmf")
COPIED = ("src", "tests", "tools", "benchmarks", "pyproject.toml")
CHAINS = ("gap", "gar", "rate", "hier_rate", "shape", "hier_shape", "bgar", "arg")
TESTS = ["chains", "expansion", "updates", "processes"]
# Files without a part in a fit, which the tests of updates cannot notice.
LAWS = ("gar", "multiplicative", "outlook", "parameters", "process", "regime", "stationary")
# Where data lie is no matter of the chains; (W2) and the quadrature are in other files.
UNRELATED = re.compile(r"dask|blocks|simplex|density_equals_its_integral|with_tiny_powers")
# Seconds of tests per mutant, the quick ones first; --thorough has no limit.
BUDGET = 10.0

# One neighbour per arithmetic operator; for comparisons the boundary and the negation. Left out:
# bit operators in the place of arithmetic and `is` in the place of `==`, which fail at the first
# call, and powers and remainders in the place of sums, which no test could overlook: all would
# only flatter. Without its decorator a function does the same, more slowly.
OPERATORS = (
    [f"ReplaceBinaryOperator_{pair}" for pair in (
        "Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "Pow_Mul", "FloorDiv_Mul", "Mod_Mul",
        "BitAnd_BitOr", "BitOr_BitAnd",
    )]
    + [f"ReplaceComparisonOperator_{pair}" for pair in (
        "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt",
        "Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is",
    )]
    + [
        "ReplaceUnaryOperator_Delete_USub", "ReplaceUnaryOperator_Delete_Not", "AddNot",
        "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd",
        "ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ExceptionReplacer",
        "NumberReplacer", "ZeroIterationForLoop",
    ]
)  # fmt: skip


class Mutant(NamedTuple):
    """A change at one place in a file."""

    file: str  # below the package
    line: int
    operator: str
    occurrence: int

    def applied(self, source: str) -> str:
        """The text of the file with the change."""
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator

        return mutate_code(source, get_operator(f"core/{self.operator}")(), self.occurrence)


def difference(before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0)
    return [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")]


# Which mutants there are


def without_effect(tree: ast.Module) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Places that no test checks: decorators, annotations, texts of errors, names of types."""
    found: list[Any] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found += node.decorator_list
        if isinstance(node, ast.FunctionDef):
            found.append(node.returns)
        if isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
        if isinstance(node, ast.Raise):
            found.append(node)
    for node in tree.body:  # Parameter = float | Array | str
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp | ast.Subscript):
            found.append(node.value)
    return [
        ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
        for node in found
        if node is not None
    ]


def mutants_of(file: str) -> Iterator[Mutant]:
    """All mutants of a file."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator

    source = (ROOT / PACKAGE / file).read_text()
    idle, lines = without_effect(ast.parse(source)), source.splitlines()
    nodes = list(ast_nodes(get_ast(source)))
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        places = [(node, at) for node in nodes for at, _ in operator.mutation_positions(node)]
        for occurrence, (node, (line, column)) in enumerate(places):
            column = len(lines[line - 1][:column].encode())  # as ast counts
            if any(start <= (line, column) < end for start, end in idle):
                continue
            if name == "NumberReplacer" and abs(float(node.value)) > 1e17:
                continue  # plus or minus one is the same double
            if node.parent is not None and node.parent.type == "parameters":
                continue  # the star of keyword-only arguments
            yield Mutant(file, line, name, occurrence)


def drawn(mutants: list[Mutant], size: int, seed: int) -> list[Mutant]:
    """A random sample with every file in proportion, and so is every beginning of it."""
    import numpy as np

    rng = np.random.default_rng(seed)
    turns = []
    for file in sorted({mutant.file for mutant in mutants}):
        own = [mutant for mutant in mutants if mutant.file == file]
        quota = min(len(own), math.ceil(size * len(own) / len(mutants)))
        picked = rng.permutation(len(own))[:quota]
        turns += [((i + 0.5) / quota, own[j]) for i, j in enumerate(picked)]
    return [mutant for _, mutant in sorted(turns, key=lambda turn: turn[0])]


# Compiled code


def fingerprint(function: Any, seen: set[Any] | None = None) -> str:
    """Of what a compiled function does: its code, and all it reads and calls by global names."""
    seen = set() if seen is None else seen
    seen.add(function)
    parts: list[Any] = []

    def add(code: CodeType) -> None:
        parts.extend((code.co_code, code.co_names))
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                add(constant)
            else:
                parts.append(constant)
        for name in code.co_names:
            value = function.__globals__.get(name)
            called = getattr(value, "py_func", None)
            if called is not None and called not in seen:
                parts.append(fingerprint(called, seen))
            elif isinstance(value, int | float | tuple):
                parts.append((name, value))

    add(function.__code__)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def cache_by_content(*, write: bool) -> None:
    """Numba's cache by what functions do and call, not by the age of the file they are in."""
    from numba.core import caching

    key = caching.Cache._index_key
    caching.Cache._index_key = lambda self, sig, codegen: (
        *key(self, sig, codegen), fingerprint(self._py_func)
    )  # fmt: skip
    caching._SourceFileBackedLocatorMixin.get_source_stamp = lambda self: "by content"
    if not write:
        caching.Cache.save_overload = lambda self, sig, data: None


# Tests


def relevant(test: str, file: str) -> bool:
    """Whether a test may notice a change: it names the chain of the file, or no chain."""
    test = test.lower()
    named = {name for name in CHAINS if re.search(rf"(?<!hier_)(?<!hier){name}|{name}\(", test)}
    if not re.search(r"(?<![a-z])arg(?![a-z])", test):  # it is part of other words
        named.discard("arg")
    named |= {f"hier_{name}" for name in ("rate", "shape") if f"hier{name}" in test}
    named |= {name for name in ("hier_rate", "hier_shape") if name in test}
    own = Path(file).stem
    unlike = {"tests/test_processes"} if own == "roots" else set()
    unlike |= {"tests/test_updates", "tests/test_descent"} if own in LAWS else set()
    if test.startswith(tuple(unlike)):
        return False
    return own not in CHAINS or not named or own in named


class Watch:
    """A pytest plugin: chooses and orders the tests, limits their time, notes the first failure.

    A test may take as many seconds of processor time as the limit says; then the process is ended
    by the signal of the timer, whose default that is, since compiled code heeds no handler.
    """

    def __init__(
        self,
        chosen: list[str] | None,
        limits: dict[str, float] | None = None,
        unrelated: re.Pattern[str] | None = None,
    ) -> None:
        self.chosen, self.limits, self.unrelated = chosen, limits or {}, unrelated
        self.seconds: dict[str, float] = {}
        self.failed = ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self.unrelated:
            items[:] = [item for item in items if not self.unrelated.search(item.nodeid)]
        if self.chosen is not None:
            place = {test: i for i, test in enumerate(self.chosen)}
            items[:] = sorted(
                (item for item in items if item.nodeid in place), key=lambda i: place[i.nodeid]
            )

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.seconds[nodeid] = -time.process_time()
        signal.setitimer(signal.ITIMER_PROF, self.limits.get(nodeid, 0.0))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        self.seconds[nodeid] += time.process_time()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid or "collection"


def run_tests(copy: Path, files: list[str], watch: Watch, log: Path) -> None:
    """Run pytest in the copy; for a child, which it leaves as the tests have left it."""
    import pytest

    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(copy)
    sys.path[:0] = [str(copy / "src"), *(str(copy / name) for name in ("tests", "tools"))]
    code = pytest.main(
        [*files, "-x", "-q", "-p", "no:cacheprovider", "-m", "not long"], plugins=[watch]
    )
    if code == pytest.ExitCode.OK:
        import temporalnmf

        assert Path(temporalnmf.__file__).is_relative_to(copy), temporalnmf.__file__
    elif code == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise RuntimeError("no tests")
    elif not watch.failed:  # for instance, the package cannot be imported
        watch.failed = f"pytest ended with {code!r}"


class Runner:
    """The copy of the repository, what is known of its tests, and forks for mutants."""

    def __init__(self, copy: Path, tests: list[str], thorough: bool) -> None:
        self.copy, self.thorough = copy, thorough
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy / name)
        self.files = [f"tests/test_{name}.py" for name in tests] + [str(PACKAGE / "chains")]
        self.kills: Counter[tuple[str, str]] = Counter()
        report = self.child(self.baseline, None)
        self.seconds: dict[str, float] = report["seconds"]
        compiling = [test for test, seconds in self.seconds.items() if seconds > 0.5]
        self.seconds |= self.child(self.baseline, compiling)["seconds"]
        for name in report["modules"]:
            try:
                importlib.import_module(name)
            except Exception:  # not meant to be imported on its own
                continue
        warm_up()
        print(f"{len(self.seconds)} tests, {sum(self.seconds.values()):.0f} s", flush=True)

    def child(self, work: Any, *arguments: Any) -> dict[str, Any]:
        """What `work` reports in a fork."""
        answer = self.copy / "answer.json"
        answer.unlink(missing_ok=True)
        process = os.fork()
        if process == 0:
            try:
                answer.write_text(json.dumps(work(*arguments)))
            except BaseException:  # not the tests' but of this file
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(0)
        _, status = os.waitpid(process, 0)
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            if name in ("SIGTERM", "SIGKILL", "SIGINT"):
                raise SystemExit(f"Somebody ended a child by {name}.")
            return {"failed": name}
        if not answer.exists():
            raise SystemExit(f"No answer of a child:\n{(self.copy / 'log').read_text()}")
        report = json.loads(answer.read_text())
        if work == self.baseline and "failed" in report:
            log = (self.copy / "log").read_text()
            raise SystemExit(f"Without a mutant {report['failed']} fails:\n{log}")
        return report

    def baseline(self, chosen: list[str] | None) -> dict[str, Any]:
        """Without a mutant: how long tests take, and what they import."""
        cache_by_content(write=True)
        watch = Watch(chosen, unrelated=None if self.thorough else UNRELATED)
        run_tests(self.copy, self.files, watch, self.copy / "log")
        if watch.failed:
            return {"failed": watch.failed}
        own = ("temporalnmf", "test", "cases", "oracle", "clusters", "conftest", "__")
        modules = [
            name for name, module in sys.modules.items()
            if not name.startswith(own) and getattr(module, "__spec__", None)
            and not str(getattr(module, "__file__", "")).startswith(str(self.copy))
        ]  # fmt: skip
        return {"seconds": watch.seconds, "modules": modules}

    def chosen(self, file: str) -> list[str]:
        """The tests that may notice a change in a file, best first."""
        tests = [test for test in self.seconds if relevant(test, file)]
        if not self.thorough:
            tests.sort(key=self.seconds.__getitem__)
            total = accumulate(self.seconds[test] for test in tests)
            tests = [test for test, spent in zip(tests, total, strict=True) if spent < BUDGET]
        return sorted(tests, key=lambda test: (-self.kills[file, test], self.seconds[test]))

    def mutated(self, chosen: list[str]) -> dict[str, Any]:
        sys.dont_write_bytecode = True
        cache_by_content(write=False)
        # Ten times as long as without the mutant, and the time to compile.
        limits = {test: 20.0 + 10.0 * self.seconds[test] for test in chosen}
        watch = Watch(chosen, limits)
        files = sorted({test.split("::")[0] for test in chosen})
        run_tests(self.copy, files, watch, self.copy / "log")
        return {"failed": watch.failed}

    def judge(self, mutant: Mutant) -> dict[str, Any]:
        """Outcome of a mutant: killed by a test, timed out, or survived."""
        path = self.copy / PACKAGE / mutant.file
        original = path.read_text()
        code = mutant.applied(original)
        for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            stale.unlink()
        began = time.monotonic()
        path.write_text(code)
        try:
            report = self.child(self.mutated, self.chosen(mutant.file))
        finally:
            path.write_text(original)
        by = report["failed"]
        outcome = "survived" if not by else "timeout" if by == "SIGPROF" else "killed"
        self.kills[mutant.file, by] += outcome == "killed"
        return {
            "file": mutant.file, "line": mutant.line, "operator": mutant.operator,
            "occurrence": mutant.occurrence, "outcome": outcome, "by": by,
            "seconds": round(time.monotonic() - began, 1), "diff": difference(original, code),
        }  # fmt: skip


def warm_up() -> None:
    """Have the compiler load its own tables before the forks, each of which would do it."""
    import numba
    import numpy as np

    numba.njit(lambda x: math.lgamma(x[0]) + math.log(x[0]))(np.ones(2))


# Results


def wilson(killed: int, total: int) -> tuple[float, float]:
    """95 % interval of a share."""
    z, share = 1.96, killed / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * math.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    return middle - half, middle + half


def summary(results: list[dict[str, Any]], population: Counter[str]) -> dict[str, Any]:
    """Counts per file and in total."""
    files = {}
    for file, size in sorted(population.items()):
        outcomes = Counter(r["outcome"] for r in results if r["file"] == file)
        files[file] = {"all": size, "tested": outcomes.total(), **sorted_counts(outcomes)}
    outcomes = Counter(result["outcome"] for result in results)
    killed, total = outcomes.total() - outcomes["survived"], outcomes.total()
    return {
        "mutants": population.total(), "tested": total, **sorted_counts(outcomes),
        "killed_share": round(killed / total, 4),
        "interval_95": [round(end, 4) for end in wilson(killed, total)],
        "files": files,
    }  # fmt: skip


def sorted_counts(outcomes: Counter[str]) -> dict[str, int]:
    return {name: outcomes[name] for name in ("killed", "timeout", "survived")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sample", type=int, default=0, help="how many mutants; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="a file such as chains/bgar.py")
    parser.add_argument("--survivors", type=Path, help="test only those that survived in this file")
    parser.add_argument("--tests", default=",".join(TESTS), help="names of test files")
    parser.add_argument("--thorough", action="store_true", help="slow tests, too")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--list", action="store_true", help="only count the mutants")
    arguments = parser.parse_args()
    try:
        import cosmic_ray  # noqa: F401
    except ImportError:
        raise SystemExit("No cosmic-ray here: pip install cosmic-ray==8.7.0") from None

    chains = sorted((ROOT / PACKAGE / "chains").glob("*.py"))
    targets = [*chains, ROOT / PACKAGE / "kernels/roots.py"]
    files = [str(path.relative_to(ROOT / PACKAGE)) for path in targets]
    mutants = [m for file in arguments.only or files for m in mutants_of(file)]
    population = Counter(mutant.file for mutant in mutants)
    if arguments.list:
        print(population, population.total())
        return
    if arguments.survivors:
        kept = {
            (r["file"], r["operator"], r["occurrence"])
            for r in json.loads(arguments.survivors.read_text())["results"]
            if r["outcome"] == "survived"
        }
        mutants = [m for m in mutants if (m.file, m.operator, m.occurrence) in kept]
    elif arguments.sample:
        mutants = drawn(mutants, arguments.sample, arguments.seed)

    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder).resolve()
        os.environ["NUMBA_CACHE_DIR"] = str(copy / "numba")
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        began = time.monotonic()
        runner = Runner(copy, arguments.tests.split(","), arguments.thorough)
        for mutant in mutants:
            results.append(runner.judge(mutant))
            told = results[-1]
            print(told["outcome"], told["seconds"], told["file"], told["line"], *told["diff"],
                  told["by"], sep=" | ", flush=True)  # fmt: skip
            text = {
                **summary(results, population), "seed": arguments.seed,
                "seconds": round(time.monotonic() - began), "results": results,
            }  # fmt: skip
            arguments.out.write_text(json.dumps(text, indent=1, ensure_ascii=False) + "\n")
    print({name: text[name] for name in text if name not in ("results", "files")})


if __name__ == "__main__":
    main()
