# Needs only Python 3.11+, make and a package index. Everything lives in .venv.
PYTHON ?= python3
# Keep byte code: without it, every process that tests start compiles the sources again.
export PYTHONDONTWRITEBYTECODE :=
BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install
# Install what running needs, and what development needs.
RUNNABLE := .venv/.run
INSTALLED := .venv/.installed
PYTEST := $(BIN)/python -m pytest -n 2

.PHONY: run test test-long browser calibrate results results-draws evidence coverage bench bench-cluster fuzz reliability bounds mutants docs lint types lock audit clean

# Fit, forecast and report on the embedded data; ends with the paths of two reports.
run: $(RUNNABLE)
	$(BIN)/temporalnmf demo --out results/demo --force

# Types are checked while the tests run; the last line is pytest's summary.
test: lint browser
	@$(BIN)/mypy > .venv/types.log 2>&1 & types=$$!; \
	$(PYTEST) -m "not long"; tests=$$?; \
	wait $$types || { cat .venv/types.log; exit 1; }; exit $$tests

# All tests, including long ones and all combinations of cases, and the examples of docstrings.
test-long: $(INSTALLED) browser
	$(PYTEST) -q --doctest-modules tests src

# Chromium for the tests of the report, where it may be installed.
browser:
	@tools/browser.sh

# The paper's NIPS experiment, compared with its published numbers; needs TEMPORALNMF_DATA.
calibrate: $(INSTALLED)
	$(BIN)/python benchmarks/calibration.py

# The paper's tables and ours (docs/results), 15 minutes or more; needs TEMPORALNMF_DATA.
RESULTS := results/tables
results: $(INSTALLED)
	for way in paper ours; do \
	  for data in nips lastfm icews; do \
	    $(BIN)/temporalnmf reproduce $$data --way $$way --jobs 2 --out $(RESULTS)/$${data}_$$way || exit 1; \
	  done; \
	  $(BIN)/temporalnmf compare sotu --way $$way --components 6 --seed 20200928 --jobs 2 --origins 0 \
	    --out $(RESULTS)/sotu_$$way || exit 1; \
	done
	$(BIN)/python tools/sync_results.py $(RESULTS)

# The same with posterior draws, an hour or more on two cores; needs TEMPORALNMF_DATA.
BAYES := --way ours --inits 1 --jobs 2
results-draws: $(INSTALLED)
	$(BIN)/temporalnmf reproduce nips $(BAYES) --inference gibbs --chains \
	  gap,rate,hier_rate,shape,bgar --choose-smoothing 3 --out $(RESULTS)/nips_gibbs
	for data in lastfm icews; do \
	  $(BIN)/temporalnmf reproduce $$data $(BAYES) --inference gibbs --choose-smoothing learn,3 \
	    --out $(RESULTS)/$${data}_gibbs || exit 1; \
	done
	for way in paper ours; do \
	  $(BIN)/temporalnmf reproduce nips --way $$way --inits 1 --jobs 2 \
	    --out $(RESULTS)/nips_$${way}_one || exit 1; \
	done
	$(BIN)/temporalnmf reproduce nips $(BAYES) --chains gap,rate --choose-components 3,6,10 \
	  --choose-smoothing 0.1,1,3 --out $(RESULTS)/nips_map_k
	$(BIN)/temporalnmf reproduce nips $(BAYES) --chains gap,rate --choose-components 3,6,10 \
	  --inference gibbs --choose-smoothing learn,3 --out $(RESULTS)/nips_gibbs_k
	$(BIN)/python tools/sync_results.py $(RESULTS)

# Held-out error behind the default hyper-parameters (docs/defaults.md).
evidence: $(INSTALLED)
	$(BIN)/python benchmarks/defaults.py --out docs/defaults.csv

# Coverage of 90 % intervals at rolling origins (docs/calibration.md); needs TEMPORALNMF_DATA.
coverage: $(INSTALLED)
	$(BIN)/python benchmarks/rolling_origin.py --out docs/calibration.csv
	$(BIN)/python benchmarks/rolling_origin.py --out docs/calibration.csv --solver gibbs --chains rate

# Speed and memory (docs/benchmarks); needs TEMPORALNMF_DATA and half an hour on an idle machine. To
# measure torchnmf as well, set TEMPORALNMF_TORCH_PYTHON to an interpreter that has it.
bench: $(INSTALLED)
	$(BIN)/python benchmarks/bench.py

# Fits on a local cluster (docs/benchmarks/cluster.md): 20 minutes on an idle machine with
# 16 GB of memory and 8 GB of disk.
bench-cluster: $(INSTALLED)
	$(BIN)/python benchmarks/cluster.py all --out results/cluster

# A part of the fuzzing of docs/reliability; set SEED=… to try other cases.
SEED := 0
fuzz: $(INSTALLED)
	$(BIN)/python tools/fuzz.py fits --cases 20 --seed $(SEED)
	$(BIN)/python tools/fuzz.py files --cases 1000 --seed $(SEED)

# All figures of docs/reliability except those of mutants: 45 minutes on two cores.
RELIABILITY := docs/reliability
reliability: $(INSTALLED)
	$(BIN)/python tools/fuzz.py fits --cases 20000 --json $(RELIABILITY)/fits.json
	$(BIN)/python tools/fuzz.py files --cases 200000 --json $(RELIABILITY)/files.json
	$(BIN)/python tools/faults.py --rounds 10 --json $(RELIABILITY)/faults.json
	$(BIN)/python tools/leaks.py --fits 1000 --json $(RELIABILITY)/leaks.json
	$(BIN)/python tools/sync_reliability.py

# Compiled code with bounds checks: a few minutes, mostly compilation.
bounds: $(INSTALLED)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.bounds $(PYTEST) -q -m "not long" \
		-k "not dask" tests/test_descent.py tests/test_expansion.py tests/test_statistics.py

# Mutation testing of chains and roots, another hour; in a separate environment, since the lock file
# does not include cosmic-ray.
mutants: $(INSTALLED)
	$(PYTHON) -m venv .venv-mutants
	.venv-mutants/bin/python -m pip install --quiet -r requirements.lock
	.venv-mutants/bin/python -m pip install --quiet --no-deps --no-build-isolation -e .
	.venv-mutants/bin/python -m pip install --quiet cosmic-ray==8.7.0
	.venv-mutants/bin/python tools/mutants.py --sample 600 --seed 0 --out $(RELIABILITY)/mutants.json
	$(BIN)/python tools/sync_reliability.py

# Build the pages in docs/_build/html, running guides that changed; a warning is an error. Also runs
# the examples of pages and docstrings.
docs: $(INSTALLED)
	$(PYTEST) -q --doctest-modules tests/test_docs.py tests/test_pages.py src
	$(BIN)/sphinx-build -b html -W --keep-going --quiet docs docs/_build/html
	@echo "written: docs/_build/html/index.html"

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo --no-cache

types: $(INSTALLED)
	$(BIN)/mypy

# The locked versions are the ones that CI tests with; the ranges are in pyproject.toml.
$(RUNNABLE): requirements-run.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) --require-hashes -r requirements-run.lock
	$(PIP) --no-deps --no-build-isolation -e .
	touch $@

$(INSTALLED): $(RUNNABLE) requirements.lock
	$(PIP) --require-hashes -r requirements.lock
	touch $@

# requirements-run.lock is the part of the lock file that running and installing need.
COMPILE := .venv-lock/bin/pip-compile --quiet --strip-extras --no-emit-index-url \
	--no-emit-find-links --no-emit-trusted-host --no-annotate --no-header --allow-unsafe \
	--generate-hashes
lock:
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet pip-tools
	$(COMPILE) --extra dev --output-file requirements.lock pyproject.toml
	sed -i.bak -e '/^temporalnmf/d' -e '/^#/d' requirements.lock
	$(COMPILE) --extra cli --extra io --extra plot --extra report --build-deps-for editable \
		--constraint requirements.lock --output-file requirements-run.lock pyproject.toml
	sed -i.bak -e '/^temporalnmf/d' -e '/^#/d' requirements-run.lock
	rm -rf .venv-lock requirements.lock.bak requirements-run.lock.bak

# Known vulnerabilities of the locked versions; needs https://pypi.org, and fails without it.
audit:
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet pip-audit
	.venv-audit/bin/pip-audit --strict --disable-pip --require-hashes --requirement requirements.lock
	rm -rf .venv-audit

clean:
	rm -rf .bounds .venv .venv-lock .venv-audit .venv-mutants results .mypy_cache .ruff_cache .pytest_cache
	find src -name __pycache__ -prune -exec rm -rf {} +
