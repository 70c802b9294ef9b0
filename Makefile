# make demo and make test set everything up from nothing but Python >= 3.11 and make.
PY ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
# PySpark comes without a wheel; that which uv builds and unpacks need not be compressed in between.
STORED := --config-settings-package pyspark:--build-option=--compression=stored
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python $(STORED)
ADAPT_DATA ?= ../shared/data
export ADAPT_DATA
# Modules are compiled once, not in each process that starts, where the environment says otherwise.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test check format lint types bench soak paper reality reality-rekeyed lock clean

demo: .venv/.run
	$(BIN)/adapt demo --out adapt-demo

test: .venv/.dev
	$(BIN)/python -m pytest --numprocesses auto --dist loadgroup --no-loadscope-reorder

check: format lint types test

# What the program needs, and the program itself. uv installs in seconds what takes pip a minute; where it cannot, such as
# behind an index that only pip is configured for, pip does.
.venv/.run: installer.lock requirements.lock pyproject.toml
	$(PY) -m venv .venv
	-$(PIP) --require-hashes --requirement installer.lock
	$(UV) --require-hashes --requirement requirements.lock || $(PIP) --require-hashes --requirement requirements.lock
	$(UV) --no-deps --no-build-isolation --editable . || $(PIP) --no-deps --no-build-isolation --editable .
	touch $@

# What only the tests need.
.venv/.dev: .venv/.run requirements-dev.lock
	$(UV) --require-hashes --requirement requirements-dev.lock || $(PIP) --require-hashes --requirement requirements-dev.lock
	touch $@

format: .venv/.dev
	$(BIN)/ruff format --check .

lint: .venv/.dev
	$(BIN)/ruff check .

# The folders as the package that they are imported as; paper is imported from here.
types: .venv/.dev
	mkdir -p build/types/adapt
	for part in api/*.py* cli core traces; do ln -sfn ../../../$$part build/types/adapt/; done
	$(BIN)/mypy

# Every claim of speed or size, each against a named peer or a literal reference in the same run.
bench: .venv/.dev
	@status=0; for script in benchmarks/[a-z]*.py; do \
		grep -q '^def main' $$script || continue; \
		$(BIN)/python $$script || status=1; done; exit $$status

# The long tier too: claims of papers, the rehearsal of their page, large sources, many more random examples and kills.
soak: .venv/.dev
	ADAPT_SOAK=1 $(BIN)/python -m pytest --numprocesses auto --dist loadgroup --no-loadscope-reorder

# What the papers claim, held against this program: as tests, then as a page under build/paper, which goes on where an
# interrupted run ended. PAPER=--quick rehearses it; PAPER="--only flux" measures one paper;
# PAPER=--huge adds a domain of 100 million keys.
paper: .venv/.dev
	$(BIN)/python -m pytest tests/claims --verbose
	$(BIN)/python -m paper $(PAPER)

# The simulator's predictions against worker processes, Flink and Spark, as a page and JSON under build/reality, which
# docs/reality.md sums up. Runs are kept there, and an interrupted set goes on. An engine that is not here is left out with a
# sentence; ADAPT_FLINK_JAR names Flink's jar. REALITY="--quick --runs 1" rehearses it, REALITY="--only flink" runs one engine.
reality: .venv/.dev
	$(BIN)/python -m reality $(REALITY)

# The same job by natural, pinned and split keys on Flink and Spark, likewise. REALITY="--runs 1" rehearses it.
reality-rekeyed: .venv/.dev
	$(BIN)/python -m reality.rekeyed $(REALITY)

# New locks from pyproject.toml: hashes of every platform's files, no address of any index.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url
lock: .venv/.dev
	echo uv | $(LOCK) - --output-file installer.lock
	$(LOCK) --extra demo build-requirements.in pyproject.toml --output-file requirements.lock
	$(LOCK) --extra dev --constraint requirements.lock pyproject.toml --output-file requirements-dev.lock

clean:
	rm -rf .venv build dist adapt-demo *.egg-info
