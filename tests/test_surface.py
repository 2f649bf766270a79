"""What SECURITY.md promises of network, cluster and supply."""

import json
import os
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from typer.main import get_command

from temporalnmf.cli import app
from temporalnmf.datasets import fetch_icews, fetch_lastfm, fetch_nips, icews, lastfm, nips

HERE = Path(__file__).parents[1]

# Python tells a hook of every name that is looked up and of every address that is spoken to.
GUARD = """
import json, sys
asked = []
WORDS = ("socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostby",
         "socket.send", "http.client.connect", "ftplib.connect", "webbrowser.open")


def guard(event, arguments):
    if event == "socket.bind" and arguments[1][0] in ("127.0.0.1", "::1"):
        return  # urllib3 tries out whether there is IPv6
    if event.startswith(WORDS):
        asked.append(f"{event} {arguments!r}")
        raise OSError("there is no network in this test")


sys.addaudithook(guard)
"""

EVERYTHING = (
    GUARD
    + """
import importlib, pkgutil, warnings
warnings.simplefilter("ignore")
import temporalnmf

for module in pkgutil.walk_packages(temporalnmf.__path__, "temporalnmf."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from temporalnmf.datasets import load_sotu
from temporalnmf.reading import read_table
from temporalnmf.report import write_report
from typer.testing import CliRunner

load_sotu(as_frame=True)
table = read_table("counts.csv")
model = temporalnmf.TemporalNMF(2, max_iter=5, random_state=0).fit(table)
model.forecast(2, n_samples=9)
write_report(temporalnmf.load(model.save("saved.npz")), "direct.html")

directly, ends = list(asked), []
for line in json.loads(sys.argv[1]):
    before = len(asked)
    result = CliRunner().invoke(temporalnmf.cli.app, line.split())
    ends.append([result.exit_code, result.output + repr(result.exception), asked[before:]])
print(json.dumps({"directly": directly, "ends": ends}))
"""
)

COMMANDS = [
    "--help",
    "demo --out demo --components 1 --starts 1 --calibrate 0",
    "fit counts.csv --components 1 --out model.npz",
    "append model.npz more.csv --out longer.npz",
    "forecast model.npz --steps 2 --out ahead.csv",
    "impute model.npz --out filled.csv",
    "report model.npz --out report.html",
    "info model.npz",
    "shard counts.csv --out shards",
    "compare counts.csv --out compared --components 1 --splits 1 --inits 1 --chains gap --jobs 1",
    "select-rank counts.csv --largest 1 --splits 1 --inits 1 --jobs 1",
    "simulate rate --n-steps 5 --n-paths 2 --csv paths.csv",
    "figures --out figures",
]
FETCHES = "reproduce nips --out reproduced"


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    """The folder and the findings of a process that does all there is to do, without a network."""
    folder = tmp_path_factory.mktemp("surface")
    header = "year,=cmd,<img src=//a.example/x>,ok\n"
    rows = [f"{2000 + n},{n % 5 + 2},{9 - n % 4},{n % 7}\n" for n in range(27)]
    (folder / "counts.csv").write_text(header + "".join(rows[:-3]))
    (folder / "more.csv").write_text(header + "".join(rows))
    environment = {
        **{k: v for k, v in os.environ.items() if k != "TEMPORALNMF_DATA"},
        "TEMPORALNMF_CACHE": str(folder / "cache"),
        "MPLBACKEND": "agg",
    }
    command = [sys.executable, "-c", EVERYTHING, json.dumps([*COMMANDS, FETCHES])]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.long
def test_nothing_but_a_fetch_speaks_to_the_network(quiet):
    _, found = quiet
    assert found["directly"] == []
    *ends, last = found["ends"]
    for line, (code, output, asked) in zip(COMMANDS, ends, strict=True):
        assert code == 0, f"{line}: {output}"
        assert asked == [], line
    code, output, asked = last
    said = " ".join(output.split())
    assert code == 2
    assert nips.NIPS.url in said.replace(" ", "")
    assert "set TEMPORALNMF_DATA" in said
    assert asked  # this one did try, and nobody else
    assert all("archive.ics.uci.edu" in address for address in asked), asked


def test_every_command_is_tried_without_a_network():
    assert {line.split()[0] for line in [*COMMANDS[1:], FETCHES]} == set(get_command(app).commands)


@pytest.mark.parametrize(
    ("fetch", "dataset"),
    [(fetch_nips, nips.NIPS), (fetch_lastfm, lastfm.LASTFM), (fetch_icews, icews.ICEWS)],
)
def test_a_fetch_without_network_names_the_address_and_what_to_do(
    fetch, dataset, monkeypatch, tmp_path
):
    def closed(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr("socket.getaddrinfo", closed)
    monkeypatch.setattr("socket.socket.connect", closed)
    monkeypatch.delenv("TEMPORALNMF_DATA", raising=False)
    monkeypatch.setenv("TEMPORALNMF_CACHE", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="set TEMPORALNMF_DATA") as raised:
        fetch()
    assert dataset.url in str(raised.value)
    assert dataset.url.startswith("https://")  # nobody on the way can change it
    assert not list(tmp_path.iterdir())


class _Links(HTMLParser):
    """Everything in a page that a browser would follow or load by itself."""

    def __init__(self):
        super().__init__()
        self.found, self.style = [], False

    def handle_starttag(self, tag, attributes):
        self.style = tag == "style"
        for name, value in attributes:
            if name in {"src", "href", "srcset", "action", "data", "poster", "xlink:href"}:
                self.found.append(value)
            elif name == "style":
                self.handle_data(value, style=True)

    def handle_data(self, text, style=False):
        if style or self.style:
            self.found += re.findall(r"url\(([^)]*)\)|@import\s*(\S+)", text)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["report.html", "direct.html", "demo/report.html", "demo/flights_report.html"]
)
def test_reports_load_nothing_from_elsewhere(quiet, name):
    page = (quiet[0] / name).read_text(encoding="utf-8")
    links = _Links()
    links.feed(page)
    assert [link for link in links.found if not str(link).startswith(("#", "data:"))] == []
    assert "default-src 'none'" in page
    if not name.startswith("demo/"):  # a name from the data is text
        assert "&lt;img src=//a.example/x&gt;" in page


# A cluster of our own


LOCAL = """
import json
from temporalnmf.cluster import local


def listening():
    import psutil
    from threadpoolctl import threadpool_info

    open_ports = psutil.Process().net_connections("inet")
    addresses = [c.laddr.ip for c in open_ports if c.status == psutil.CONN_LISTEN]
    return addresses, [library["num_threads"] for library in threadpool_info()]


if __name__ == "__main__":
    with local(2) as client:
        print(json.dumps([listening()[0], client.run(listening)]))
"""


@pytest.mark.long
def test_a_local_cluster_is_for_this_machine_only(tmp_path):
    """Addresses on which it accepts connections, in a process without clusters of other tests."""
    program = tmp_path / "program.py"
    program.write_text(LOCAL)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    here, there = json.loads(done.stdout.splitlines()[-1])
    assert len(here) >= 4  # the scheduler, its pages, and the nannies
    assert len(there) == 2
    for addresses, blas in there.values():
        assert set(addresses) == {"127.0.0.1"}
        assert set(blas) <= {1}  # workers share the cores
    assert set(here) == {"127.0.0.1"}


# Supply


def _locked(file="requirements.lock"):
    """Versions and hashes by name."""
    text = (HERE / file).read_text()
    found = {}
    for entry in re.split(r"\n(?=\S)", text.strip()):
        name, version = re.match(r"([\w.-]+)==(\S+)", entry).groups()
        found[canonicalize_name(name)] = version, re.findall(r"--hash=sha256:([0-9a-f]{64})", entry)
    return found


def _project():
    return tomllib.loads((HERE / "pyproject.toml").read_text())


def _requirements(*extras):
    project = _project()["project"]
    wanted = [*project["dependencies"]] if not extras else []
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    found = map(Requirement, wanted)
    return {canonicalize_name(r.name): r.specifier for r in found if r.name != "temporalnmf"}


def test_every_locked_version_has_hashes():
    locked = _locked()
    assert len(locked) > 100
    assert [name for name, (_, hashes) in locked.items() if not hashes] == []
    for compiled in ("numpy", "numba", "scipy", "pyarrow"):  # wheels for several systems
        assert len(locked[compiled][1]) > 10
    assert "--require-hashes" in (HERE / "Makefile").read_text()


def test_what_running_needs_is_locked_with_the_same_files():
    """And can be installed without anything else: it, its extras, and what builds it."""
    running, every = _locked("requirements-run.lock"), _locked()
    assert {name: every[name] for name in running} == running
    wanted = {**_requirements(), **_requirements("cli", "io", "plot", "report")}
    assert {*wanted, "hatchling", "editables"} <= set(running)
    assert len(running) < len(every) / 2


def test_locked_versions_are_those_asked_for():
    locked, extras = _locked(), _project()["project"]["optional-dependencies"]
    asked = {**_requirements(), **_requirements(*extras)}
    assert {"hypothesis", "psutil", "hatchling", "editables"} <= set(asked)
    wrong = [name for name, allowed in asked.items() if locked[name][0] not in allowed]
    assert wrong == []


# The last version with a hole that data from elsewhere, or a page, can reach.
HOLES = {
    "pyarrow": "14.0.0",
    "jinja2": "3.1.5",
    "distributed": "2025.12.0",
    "scikit-learn": "1.4.2",
}


@pytest.mark.parametrize("name", HOLES)
def test_versions_with_known_holes_are_not_admitted(name):
    asked = {**_requirements(), **_requirements("io", "report", "dask")}
    assert Version(HOLES[name]) not in asked[name]


def test_the_review_of_dependencies_is_of_the_locked_versions():
    locked = _locked()
    text = (HERE / "SECURITY.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([\w-]+) \| (\d[\w.]+) \|", text, flags=re.MULTILINE))
    wanted = {
        **_requirements(),
        **_requirements("cli", "io", "plot", "data", "report", "bayes", "dask"),
    }
    assert set(rows) >= {*wanted, "llvmlite", "joblib", "threadpoolctl"}
    assert rows == {name: locked[name][0] for name in rows}
    assert len(text.splitlines()) <= 120
