# Needs Python 3.11 to 3.13, Java 17 and make. Everything else goes into .venv and the user's cache.

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
JARS := $(VENV)/.jars
# PYTHON=/path/to/python picks the interpreter; else the first of these that fits is taken.
PYTHONS := $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python)

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps

# fits <python>: is it there, and of a version that the lock file is for?
FITS := fits() { "$$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
  2> /dev/null; }; fits
define FIND_PYTHON
for candidate in $(PYTHONS); do if fits "$$candidate"; then python=$$candidate; break; fi; done; \
if [ -z "$$python" ]; then \
  echo "No Python 3.11, 3.12 or 3.13 found (tried: $(PYTHONS))." >&2; \
  echo "Install one, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; \
elif ! "$$python" -c 'import ensurepip, venv' 2> /dev/null; then \
  echo "$$python cannot make virtual environments: install its venv module" >&2; \
  echo "(Debian and Ubuntu: the package python3-venv)." >&2; exit 1; \
fi
endef

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-adapter test-fast fuzz fuzz-engine fuzz-delta bench \
  bench-changes bench-many bench-engine simulation lint format lock wheel jars clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(JARS) ## Build and refresh dynamic tables on a local Spark, step by step
	@$(BIN)/python -m dbt.adapters.spark_dynamic.demo --project-dir integration_tests

# dbt-tests-adapter has some two hundred classes; these show that the adapter is one.
BASIC := tests/functional/adapter/test_basic.py

# Shows that the fuzzer on Delta finds bugs; `make fuzz-delta` runs it.
PLANTED_BUGS := tests/functional/engine/mutants

# What runs in one Spark and on its tables; the rest is unit tests, and processes of their own.
TABLES := tests/functional/engine tests/functional/dynamic_table --ignore $(PLANTED_BUGS)
REST := tests/unit $(BASIC) tests/functional/changes tests/functional/connections \
  $(addprefix tests/functional/test_,packaging.py fresh_checkout.py demo.py)
PYTEST := $(BIN)/python -m pytest --durations 15
SIDE_BY_SIDE := $(BIN)/python .ci/side_by_side.py

test: lint $(JARS) ## Run lint, unit tests, and functional tests on a real Spark
	$(SIDE_BY_SIDE) '$(PYTEST) -m "not nightly" $(TABLES)' '$(PYTEST) -m "not nightly" $(REST)'

test-all: lint $(JARS) ## Run all of that, rarer corners on Spark, and all of dbt's own adapter tests
	$(SIDE_BY_SIDE) '$(PYTEST) $(TABLES)' '$(PYTEST) $(REST)'
	$(PYTEST) tests/functional/adapter

test-adapter: $(JARS) ## Run all classes of dbt-tests-adapter on a real Spark (a quarter of an hour)
	$(BIN)/python -m pytest tests/functional/adapter

test-fast: lint ## Run lint and unit tests, without Spark and without long random ones
	$(BIN)/python -m pytest tests/unit -m "not thorough"

# CASES=1000 runs so many, CHANGES=100 so many change queries; BUGS=0 plants no bugs. SEED=7 begins
# with that one, else the first seed is random.
fuzz: fuzz-engine fuzz-delta ## Check random queries over random changes, on DuckDB and on Delta

fuzz-engine: $(INSTALLED) ## Check deltas, applying them, and change queries on DuckDB (half an hour)
	PYTHONPATH=tests $(BIN)/python -m fuzz --cases $(or $(CASES),20000) \
	  --changes $(or $(CHANGES),1000) --bugs $(or $(BUGS),5000) --seed $(or $(SEED),0)

# Every seed is a project of seven models, refreshed three times: 21 cases. Of 5, 9 and 10
# chance leaves most models as they are.
SEEDS ?= 1,2,3,4,6,7,8,11,12,13,14,15,16,18,24

fuzz-delta: $(JARS) ## Check random queries over random changes end to end, on Delta (an hour)
	FUZZ_SEEDS=$(SEEDS) $(BIN)/python -m pytest $(PLANTED_BUGS) \
	  tests/functional/dynamic_table/test_fuzz_on_delta.py \
	  tests/functional/engine/test_change_fuzz.py

# SCALE=10 takes ten times as much data; REPEATS=1 is enough for a look.
bench: $(JARS) ## Measure dynamic tables against rebuilt and hand-written ones, on TPC-H (two hours)
	$(BIN)/python -m benchmarks --scale $(or $(SCALE),1) --repeats $(or $(REPEATS),5)

bench-changes: $(JARS) ## Measure change queries of a join and of one table, on TPC-H
	$(BIN)/python -m benchmarks.change_queries --scale $(or $(SCALE),1) --repeats $(or $(REPEATS),5)

bench-many: $(JARS) ## Measure 200 dynamic tables with nothing to do against dbt's own models
	$(BIN)/python -m benchmarks.many_models --repeats $(or $(REPEATS),5)

# The last DuckDB with the texts of TPC-DS built in; they are not ours to copy.
TPCDS := $(VENV)/tpcds

bench-engine: $(INSTALLED) ## Measure the engine alone, from a text to its statements, on TPC-DS
	@test -d $(TPCDS) || $(PIP) --target $(TPCDS) duckdb==1.1.3
	$(BIN)/python -m benchmarks.engine_time --package $(TPCDS)

# Not TABLES, which is a list of tests here.
simulation: $(INSTALLED) ## Run the schedule of 1,000 tables for two simulated weeks, by the real code
	PYTHONPATH=tests $(BIN)/python -m simulation --tables $(or $(MODELS),1000) --days $(or $(DAYS),14)

lint: $(INSTALLED) ## Check style, types, file lengths, and that all tests can be collected
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python .ci/file_lengths.py
	@$(BIN)/python -m pytest --collect-only -qq > .pytest_collected || (cat .pytest_collected; exit 1)

format: $(INSTALLED) ## Format the code and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(INSTALLED) ## Renew requirements.lock from pyproject.toml (UPGRADE=1 takes newer versions)
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
	  --generate-hashes --no-strip-extras --no-annotate --no-emit-index-url --quiet \
	  --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade) --output-file requirements.lock

wheel: $(INSTALLED) ## Build the wheel and the source distribution into dist/
	$(BIN)/python -m build --outdir dist

jars: $(JARS) ## Fetch the Delta jars into the user's cache, archive Spark's classes

clean: ## Remove the environment and everything that was built
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .pytest_collected
	rm -rf integration_tests/.spark_dynamic integration_tests/target integration_tests/logs
	rm -rf integration_tests/dbt_packages integration_tests/package-lock.yml
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(JARS): $(INSTALLED)
	@echo "Fetching the Delta jars, unless they are in the cache already ..."
	@$(BIN)/python -W ignore::RuntimeWarning -m dbt.adapters.spark_dynamic.jars > /dev/null
	@echo "Archiving Spark's classes, so that it starts faster: this takes half a minute ..."
	@$(BIN)/python -W ignore::RuntimeWarning -m dbt.adapters.spark_dynamic.class_archive > /dev/null
	@touch $@

$(INSTALLED): requirements.lock pyproject.toml
	@$(FITS) $(BIN)/python || { $(FIND_PYTHON); "$$python" -m venv --clear $(VENV); }
	@echo "Installing into $(VENV), from requirements.lock: this takes a minute or two ..."
	@$(PIP) --require-hashes -r requirements.lock
	@$(PIP) --editable .
	@touch $@
