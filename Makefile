# Any target may be run on a fresh clone: it sets up what it needs, in .venv and target.
# A second run repeats only what changed.

PYTHON ?= python3
PYTEST_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
BUILT := $(VENV)/.built
TOOLS := $(VENV)/.tools
SOURCES := pyproject.toml $(wildcard Cargo.toml Cargo.lock crates/*/Cargo.toml) \
	$(shell find crates -name '*.rs' 2>/dev/null)

# One interpreter for every cargo and maturin call: a change of it would rebuild PyO3 each time.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
unexport CONDA_PREFIX PYTHONHOME PYTHONPATH MAKEFLAGS MFLAGS
# rustup's folder is often missing from the PATH of non-login shells.
export PATH := $(PATH):$(HOME)/.cargo/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1
export CARGO_TERM_QUIET := true

# A workspace of its own: it builds with older compilers.
PREDICT := cd crates/predict && CARGO_TARGET_DIR=$(CURDIR)/target/predict

say = @printf '\033[1m%s\033[0m\n'
ifeq ($(MAKE_TERMOUT),)
say = @printf '%s\n'
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
# Every target with a plain name is a command, not a file.
.PHONY: $(shell awk -F: '/^[a-z-]+:/ { print $$1 }' $(firstword $(MAKEFILE_LIST)))

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(BUILT) ## build, then run examples/demo.py
	@$(BIN)/python examples/demo.py

test: lint test-rust test-python test-wheel test-docs ## everything a change must pass

build: $(BUILT) ## make .venv and build the extension into it, optimised

lint: lint-python lint-rust lint-workflows ## formatting, linters and types, both languages

lint-python: $(BUILT) $(TOOLS)
	$(say) 'ruff, import-linter, vermin, mypy, stubtest'
	@$(BIN)/ruff format --check --quiet . || { echo 'Not formatted: run `make format`.'; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports --no-cache >/dev/null || { $(BIN)/lint-imports --no-cache; exit 1; }
	@$(BIN)/vermin --quiet --target=3.10- --violations --no-tips --eval-annotations python/manyboost
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/stubtest --concise manyboost._core

lint-rust: cargo | $(BIN)/maturin
	$(say) 'cargo fmt, clippy'
	@cargo fmt --all --check && $(PREDICT) cargo fmt --check || { echo 'Not formatted: run `make format`.'; exit 1; }
	@cargo clippy --workspace --all-targets -- -D warnings
	@$(PREDICT) cargo clippy --all-targets --features c -- -D warnings

lint-workflows: $(TOOLS)
	$(say) 'check-jsonschema, zizmor, actionlint'
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff
	@$(BIN)/zizmor --offline --quiet .github
	@$(BIN)/actionlint -shellcheck $(BIN)/shellcheck -pyflakes ''

# The binding crate is left out: an extension module is linked by the interpreter that loads it,
# so it has no test binary; the Python tests exercise it.
test-rust: cargo ## the Rust tests
	$(say) 'cargo test'
	@cargo test --quiet --release --workspace --exclude manyboost-python
	@$(PREDICT) cargo test --quiet --release --features c

test-python: $(BUILT) $(TOOLS) browser compilers ## the Python tests; PYTEST_ARGS="-k name" selects
	$(say) 'pytest'
	@$(BIN)/python -m pytest --quiet -n 2 --dist worksteal $(PYTEST_ARGS)

test-runtimes: $(BUILT) $(TOOLS) browser compilers ## the runtime without Python, in Rust, C and the browser (a part of test-python)
	$(say) 'pytest of the runtimes'
	@$(BIN)/python -m pytest --quiet tests/runtimes

# A wheel runs where the C library is as new as here, at least; zig links to an older one, at the
# price of a build of its own.
GLIBC ?=

wheel: $(BUILT) $(TOOLS) ## build a wheel into dist; GLIBC=2.28 for older systems than this one
	$(say) 'maturin build'
	@rm -rf dist
	@$(if $(GLIBC),$(BIN)/python -m pip install ziglang)
	@$(if $(GLIBC),CARGO_ZIGBUILD_PYTHON_PATH=$(CURDIR)/$(BIN)/python) \
		$(BIN)/maturin build --quiet --release --out dist \
		$(if $(GLIBC),--zig --compatibility manylinux_$(subst .,_,$(GLIBC)))
	@ls dist/*.whl

test-wheel: wheel ## install the wheel in a clean environment, without Rust, and fit models
	$(say) 'pytest of the wheel'
	@MANYBOOST_WHEEL="$$(ls dist/*.whl)" $(BIN)/python -m pytest --quiet tests/test_wheel.py

test-versions: wheel ## the quick part of the suite on every CPython from 3.10 on, oldest and newest dependencies
	@$(BIN)/python tests/on_versions.py dist

sdist: $(BIN)/maturin ## the sources that a release has, in dist
	@rm -rf dist && $(BIN)/maturin sdist --out dist 2>/dev/null && ls dist/*.tar.gz

test-sdist: sdist ## build a wheel from these sources, and run the quick part of the suite with it
	@$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist dist/*.tar.gz
	@$(BIN)/python tests/on_versions.py --this --dependencies newest dist

tools: $(TOOLS) ## what tests, linters and the site need, into .venv

ECOSYSTEM := .venv-ecosystem/bin/python

# These packages are many and large, and disagree with the newest releases of others.
ecosystem: wheel
	@[ -x $(ECOSYSTEM) ] || $(PYTHON) -m venv .venv-ecosystem
	@$(ECOSYSTEM) -m pip install --requirement tests/ecosystem/requirements.txt
	@$(ECOSYSTEM) -m pip install --force-reinstall --no-deps dist/*.whl

test-ecosystem: ecosystem ## install forecasting libraries and others in .venv-ecosystem, and test with them
	$(say) 'pytest with other packages'
	@$(ECOSYSTEM) -m pytest --quiet tests/ecosystem tests/persistence/test_skops.py $(PYTEST_ARGS)

# Warnings are errors. Examples are run each time: the library may have changed where they did not.
docs: $(BUILT) $(TOOLS) ## build the documentation site into docs/_build/html
	$(say) 'sphinx'
	@$(BIN)/python -m sphinx -W --keep-going --quiet -d docs/_build/doctrees docs docs/_build/html
	@echo docs/_build/html/index.html

test-docs: docs ## build the site and follow its links
	$(say) 'pytest of the site'
	@MANYBOOST_SITE=docs/_build/html $(BIN)/python -m pytest --quiet tests/test_site.py

# The report is opened in a browser by its tests, which are skipped where there is none.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null || \
		{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && apt-get install -y -qq chromium fonts-dejavu-core >/dev/null; } || \
		echo 'no chromium here: the tests of the report in a browser are skipped'

# The oldest compiler that crates/predict promises, with WebAssembly; its tests take another one, or
# are skipped, where it is not.
compilers:
	@[ -x /usr/bin/rustc ] || \
		{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
		apt-get install -y -qq --no-install-recommends rustc libstd-rust-dev-wasm32 lld gcc libc6-dev >/dev/null; } || \
		echo "no compiler of the system here: crates/predict is built with cargo's, or not at all"

BENCH := .venv-bench/bin/python

# The peers at their versions, and this build, in .venv-bench.
bench-env: cargo
	@benchmarks/setup.sh

bench: bench-env ## all benchmarks against the peers, then the report (hours; resumes)
	@$(BENCH) -m benchmarks.run full
	@$(BENCH) -m benchmarks.run engine
	@$(BENCH) -m benchmarks.report

bench-quick: bench-env ## the benchmarks that matter most, then their report, into target (under five minutes)
	@$(BENCH) -m benchmarks.run quick
	@$(BENCH) -m benchmarks.report --results benchmarks/results/quick.json \
		--docs target/bench-quick --readme target/bench-quick/README.md

bench-engine: bench-env ## the time of a round on shapes of all kinds, into docs/benchmarks.md (20 minutes; resumes)
	@$(BENCH) -m benchmarks.run engine
	@$(BENCH) -m benchmarks.report

bench-builds: bench-env ## this build against the one in the folder OLD (5 minutes)
	@[ -n '$(OLD)' ] || { echo 'Name the folder that holds the earlier package: make bench-builds OLD=../before/python'; exit 1; }
	@$(BENCH) -m benchmarks.builds '$(OLD)'

bench-contest: bench-env ## the open benchmark: libraries at their defaults, into docs/contest.md (many hours; resumes)
	@$(BENCH) -m benchmarks.few_outputs
	@$(BENCH) -m benchmarks.contest

bench-data: bench-env ## sparse, imbalanced and categorical data, into docs/data-figures.md (half an hour)
	@$(BENCH) -m benchmarks.data

bench-intervals: bench-env ## coverage and width of intervals beside MAPIE, into docs/intervals.md (half an hour; resumes)
	@$(BENCH) -m benchmarks.intervals

bench-labels: $(BUILT) ## calibration and hierarchies of labels, into docs/labels.md (half an hour; resumes)
	@$(BIN)/python -m benchmarks.labels

bench-forecasting: ecosystem ## horizons as outputs beside LightGBM, into docs/guide/forecasting.md (half an hour; resumes)
	@$(ECOSYSTEM) -m benchmarks.forecasting

bench-tuning: ecosystem ## what tuning gains, into docs/guide/tuning.md (an hour; resumes)
	@$(ECOSYSTEM) -m benchmarks.tuning

bench-study: $(BUILT) ## the defaults, one change at a time, into docs/study.md (an hour; resumes)
	@$(BIN)/python -m benchmarks.study

bench-distributed: bench-env ## Dask workers beside xgboost's, into docs/guide/scaling-out.md (half an hour; resumes)
	@$(BENCH) -m benchmarks.distributed

bench-latency: bench-env ## the time of a single row, in Python and C, beside LightGBM, into docs/guide/deploy.md (2 minutes)
	@$(BENCH) -m benchmarks.latency

pages: $(BUILT) ## which generated pages are older than this build, and what makes them
	@$(BIN)/python -m benchmarks.pages

reproduce: $(BUILT) $(TOOLS) ## the paper's experiments that experiments/rows lacks, and their report (resumes)
	@$(BIN)/python -m experiments --n-jobs 2

profile: $(BUILT) ## where the time of a round goes, into docs/profile.md (2 minutes)
	@$(BIN)/python -m benchmarks.roofline

torture: $(BUILT) $(TOOLS) ## the long battery of tests, into docs/torture.md (hours)
	@$(BIN)/python -m torture

format: cargo | $(BIN)/ruff ## format all code, and repair what the linter can
	@$(BIN)/ruff check --quiet --fix --exit-zero .
	@$(BIN)/ruff format --quiet .
	@cargo fmt --all
	@$(PREDICT) cargo fmt

clean: ## remove all that the other targets made
	rm -rf $(VENV) .venv-versions target dist .hypothesis .mypy_cache .pytest_cache .ruff_cache python/manyboost/_core*.so \
		docs/_build docs/gallery docs/internals
	find python tests examples experiments benchmarks torture -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(BIN)/maturin:
	$(say) 'creating $(VENV)'
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo 'manyboost needs Python 3.10 or newer; name one with: make PYTHON=python3.12'; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ echo 'Python could not create $(VENV); on Debian and Ubuntu: apt install python3-venv'; exit 1; }
	@$(BIN)/python -m pip install 'maturin>=1.9,<2'

# maturin installs the dependencies too; Python files are used in place.
$(BUILT): $(SOURCES) | cargo $(BIN)/maturin
	$(say) 'building the extension (the first build takes a minute or two)'
	@$(BIN)/maturin develop --quiet --release
	@touch $@

# What tests, linters and the site need besides; their versions are in pyproject.toml.
$(TOOLS): pyproject.toml | $(BUILT)
	$(say) 'installing tools for tests, linters and documentation'
	@$(BIN)/maturin develop --quiet --release --extras test,dev,docs
	@touch $@

# Code that does not build can still be formatted, once the tools are there.
$(BIN)/ruff:
	@$(MAKE) --no-print-directory $(TOOLS) PYTHON='$(PYTHON)'

cargo:
	@command -v cargo >/dev/null || \
		{ echo 'manyboost is built with Rust, and cargo was not found; get it from https://rustup.rs'; exit 1; }
