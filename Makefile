# `make help` lists what there is. Everything happens in .venv; nothing outside this folder is changed but the caches of
# pip and of the demo's data, and the jar that the shim is compiled into (~/.cache/pyspark-paralagg).

.DEFAULT_GOAL := help
SHELL := /bin/sh

# A python3 that is new enough, else any such that carries its version in its name. `make PYTHON=...` decides otherwise.
IS_NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 10))
PYTHON ?= $(shell for p in python3 python3.12 python3.11 python3.13 python3.10 python; do \
	$$p -c '$(IS_NEW_ENOUGH)' 2>/dev/null && echo $$p && break; done)

VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
GRADLE ?= gradle
# The supported Sparks: a wheel has a jar for each minor, compiled against this version.
WHEEL_SPARKS := 3.5.9 4.0.5 4.1.4 4.2.0 4.3.0
# Arguments for pytest: make test PYTEST="-k doctor"
PYTEST ?=
# How many test files run at a time; each process has a Spark session of its own. 0: one process, as a debugger needs it.
# The long files of tests/cluster are the first ones.
TEST_PROCESSES ?= 2
# Of the campaigns: how many runs, and what is drawn; without a seed a new one, which is printed.
COUNT ?= 30
SEED ?=
# Query and graph of `make profile`.
QUERY ?=
# The example that `make example` runs.
NAME ?=
# `make fuzz`: for how many seconds each engine begins new programs; SEED is that of the first program.
FUZZ_SECONDS ?= inf
# A checkout of Soufflé for `make souffle`.
SOUFFLE ?=

# Tests start hundreds of Python processes (ranks, workers of Spark): without compiled modules each compiles ours again,
# which is a third of a rank's start. An empty value means that Python writes them, whatever the caller has set.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help java setup demo demo-taxonomy example notebooks test test-all faults souffle duckdb fuzz fuzz-proofs lint format format-scala lint-scala shim \
	bench profile docs \
	docs-serve jars test-spark sparks smoke wheel try-wheel clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: java $(VENV)/.demo ## travel distances on real roads: tables, and a picture in demo-output/
	$(RUN) -m examples.roads

example: java $(VENV)/.examples ## one of examples/README.md: make example NAME=lineage
	@test -n "$(NAME)" || { echo "which one? make example NAME=lineage; examples/README.md lists them"; exit 1; }
	$(RUN) -m examples.$(NAME)

notebooks: java $(VENV)/.notebooks ## makes and runs the notebooks of the examples anew
	$(RUN) -m examples.notebooks $(NAME)

demo-taxonomy: java $(VENV)/.demo ## species up the tree of life, from the NCBI taxonomy (fetches 90 MB)
	$(RUN) -m examples.taxonomy

# Spark's classes, loaded: JVMs of tests start faster (tests/jvm_options.py).
ARCHIVE := build/classes-$(shell sed -n 's/^pyspark==//p' constraints.txt).jsa
$(ARCHIVE): $(VENV)/.dev tests/class_archive.py tests/jvm_options.py
	PYTHONPATH=.:tests/cluster $(RUN) tests/class_archive.py

test: java lint $(ARCHIVE) ## ruff, mypy, pytest with the settings of the day; what CI runs
	$(RUN) -m pytest --numprocesses $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder $(PYTEST)

test-all: java lint ## the same with every setting of every fixture: before a release
	$(RUN) -m pytest --numprocesses $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder --whole $(PYTEST)

CAMPAIGN = PYTHONPATH=.:tests $(RUN) -m campaigns.programs
FUZZ = $(if $(SEED),--seed $(SEED)) --seconds $(FUZZ_SECONDS)
fuzz: java $(VENV)/.dev ## random programs on all engines (takes many hours): make fuzz SEED=1 FUZZ_SECONDS=600
	$(CAMPAIGN) simulated --count 100000 $(FUZZ)
	$(CAMPAIGN) whole --count 20000 $(FUZZ)
	$(CAMPAIGN) interpreted --count 20000 $(FUZZ)
	$(CAMPAIGN) explained --count 5000 $(FUZZ)
	$(CAMPAIGN) traced --count 5000 $(FUZZ)
	$(CAMPAIGN) local --count 500 $(FUZZ)
	$(CAMPAIGN) ranks --count 500 $(FUZZ)
	$(CAMPAIGN) forced --count 500 $(FUZZ)
	$(CAMPAIGN) spark --count 5000 $(FUZZ)
	$(CAMPAIGN) dataframe --count 500 $(FUZZ)
	$(CAMPAIGN) sql --count 2000 $(FUZZ)
	$(CAMPAIGN) delta --count 500 $(FUZZ)

fuzz-proofs: java $(VENV)/.dev ## random expressions: what the proof claims of them against Spark; make fuzz-proofs COUNT=20000 SEED=1
	$(RUN) tests/campaigns/proofs --count $(COUNT) $(if $(SEED),--seed $(SEED))

lint: $(VENV)/.dev ## ruff and mypy
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: $(VENV)/.dev ## ruff's formatter and its safe fixes
	$(RUN) -m ruff check --fix-only .
	$(RUN) -m ruff format .

faults: java $(VENV)/.dev ## the fault campaign: make faults COUNT=500 SEED=1 (Linux, as root or with user namespaces)
	PYTHONPATH=.:tests $(RUN) -m campaigns.faults --count $(COUNT) $(if $(SEED),--seed $(SEED))

souffle: $(VENV)/.dev ## Soufflé's own tests on `local`: make souffle SOUFFLE=path to a checkout of it
	@test -n "$(SOUFFLE)" || { echo "which checkout? make souffle SOUFFLE=path"; exit 1; }
	PYTHONPATH=.:tests $(RUN) tests/campaigns/souffle.py $(SOUFFLE)

duckdb: java $(VENV)/.dev ## DuckDB's own recursive queries in Spark: make duckdb DUCKDB=path to a checkout of it
	@test -n "$(DUCKDB)" || { echo "which checkout? make duckdb DUCKDB=path"; exit 1; }
	PYTHONPATH=. $(RUN) tests/campaigns/duckdb_sql.py $(DUCKDB)

shim: java $(VENV)/.dev ## the Scala side by Gradle: compile, run its tests
	$(GRADLE) --no-daemon --console=plain build -Ppython=$(RUN)

format-scala: $(VENV)/.dev ## scalafmt, by Gradle from Maven Central
	$(GRADLE) --no-daemon --console=plain scalafmt -Ppython=$(RUN)

lint-scala: $(VENV)/.dev ## does scalafmt have anything to change?
	$(GRADLE) --no-daemon --console=plain scalafmtCheck -Ppython=$(RUN)

bench: java $(VENV)/.dev ## all benchmarks; writes docs/benchmarks.md and its pictures (takes long)
	$(RUN) -m benchmarks --all

profile: java $(VENV)/.dev ## where the time of one query on the Spark engine goes: make profile QUERY=sssp:rmat-18
	@test -n "$(QUERY)" || { echo "which query? make profile QUERY=sssp:rmat-18; benchmarks/README.md lists them"; exit 1; }
	$(RUN) -m benchmarks.profile $(QUERY)

# The theme's authors advertise their next tool in each build otherwise.
docs docs-serve: export NO_MKDOCS_2_WARNING := 1

docs: $(VENV)/.dev ## the documentation's site in build/site; a warning is an error
	$(RUN) -m mkdocs build --strict

docs-serve: $(VENV)/.dev ## the site on this machine, made anew when a page changes
	$(RUN) -m mkdocs serve --strict

# Spark's jars are in the pyspark package; that of .venv is not downloaded again.
jars: java $(VENV)/.dev ## compiles the shim for each supported Spark into build/jars (downloads the others)
	rm -rf build/jars
	installed=$$($(RUN) -c 'import pyspark; print(pyspark.__version__)'); \
	for spark in $(WHEEL_SPARKS); do \
		home=build/spark-$$spark/pyspark; \
		if [ "$$spark" = "$$installed" ]; then home=$$($(RUN) -m pyspark_paralagg spark-home); \
		else $(MAKE) --no-print-directory build/spark-$$spark/pyspark || exit 1; \
		fi; \
		SPARK_HOME=$$(realpath "$$home") $(RUN) -m pyspark_paralagg shim --into build/jars || exit 1; \
	done

# The pinned Delta is for Spark 4.0 to 4.2; for 4.3 there is none.
build/spark-%/pyspark:
	$(RUN) -m pip --disable-pip-version-check install --quiet --no-deps --target build/spark-$* pyspark==$* \
		$(if $(filter 3.5.%,$*),delta-spark==3.3.3)

# With another Spark in front of that of .venv.
VERSION ?= 3.5.9
test-spark: java $(VENV)/.dev build/spark-$(VERSION)/pyspark ## the tests on another Spark: make test-spark VERSION=3.5.9
	PYTHONPATH=$(CURDIR)/build/spark-$(VERSION) $(RUN) -m pytest --numprocesses $(TEST_PROCESSES) --dist loadfile \
		--no-loadscope-reorder $(or $(PYTEST),--junitxml=build/sparks/$(VERSION).xml)

build/sparks/%.xml:
	$(MAKE) --no-print-directory test-spark VERSION=$* || test -f $@

# Tests of each front and engine on each Spark, as the table of docs/deployment/index.md. A report that exists counts.
sparks: $(foreach v,$(WHEEL_SPARKS),build/sparks/$(v).xml) ## counts of passed tests by front, engine and Spark (takes hours)
	PYTHONPATH=.:tests $(RUN) -m campaigns.sparks $^

SMOKE := tests/test_fixtures.py tests/sql/test_old_spark.py tests/cluster/test_two_executors.py \
	-k '(pagerank or string or min_by or negat or path or old_spark or two_executors) and not dataframes and not secured'
smoke: ## some fixtures and two executors on the oldest and the newest Spark
	for spark in $(firstword $(WHEEL_SPARKS)) $(lastword $(WHEEL_SPARKS)); do \
		$(MAKE) --no-print-directory test-spark VERSION=$$spark PYTEST="$(SMOKE)" || exit 1; \
	done

wheel: jars ## dist/*.whl, with a jar for each supported Spark
	rm -rf pyspark_paralagg/_shim/jars dist
	mkdir -p pyspark_paralagg/_shim
	cp -r build/jars pyspark_paralagg/_shim/jars
	$(RUN) -m build --wheel --no-isolation

try-wheel: ## installs that wheel with each supported Spark in a clean environment, and runs a recursion there
	$(RUN) tests/campaigns/wheels.py $(WHEEL_SPARKS)

setup: $(VENV)/.dev ## .venv with all that tests, benchmarks and demos need

clean: ## removes what was built; leaves .venv
	rm -rf build dist .gradle .mypy_cache .pytest_cache .ruff_cache pyspark_paralagg/_shim demo-output spark-warehouse

# Before anything is downloaded: without a Java all of it would be in vain.
java:
	@test -n "$(PYTHON)" || { echo "PARALAGG needs Python >= 3.10 on PATH (Debian: sudo apt-get install python3 python3-venv;" \
		"macOS: brew install python)"; exit 1; }
	@$(PYTHON) -m pyspark_paralagg java >/dev/null

$(RUN):
	@test -n "$(PYTHON)" || { echo "Python >= 3.10 is needed"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot make virtual environments (Debian: sudo apt-get install python3-venv)"; exit 1; }

$(VENV)/.demo: pyproject.toml constraints.txt | $(RUN)
	@echo "installing pyspark and the demo's needs into $(VENV) (once; pyspark alone is 450 MB)"
	$(PIP) --editable '.[demo]'
	@touch $@

$(VENV)/.examples: pyproject.toml constraints.txt | $(RUN)
	@echo "installing pyspark and the examples' needs into $(VENV) (once; pyspark alone is 450 MB)"
	$(PIP) --editable '.[demo,delta,mpi]'
	@touch $@ $(VENV)/.demo

$(VENV)/.notebooks: $(VENV)/.examples
	$(PIP) --editable '.[notebooks]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(RUN)
	@echo "installing pyspark and the tests' needs into $(VENV) (once; pyspark alone is 450 MB)"
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.demo
