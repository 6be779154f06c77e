# Every target sets up what it needs: an own .venv with the pins of requirements.lock (tools/setup.sh).
# In an environment you made yourself (conda, an IDE's): make VENV="$CONDA_PREFIX" READY= TARGET

VENV  ?= .venv
READY ?= $(VENV)/.ready
BIN    = $(VENV)/bin
PY     = $(BIN)/python
export MPLBACKEND ?= Agg

.DEFAULT_GOAL := help
.PHONY: help setup tour lab test test-quick test-slow lint types docs notebooks bench lock clean

help:  ## this list
	@grep -E '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z-]+):[^#]*## /make \1\t/' | expand -t 18

setup: $(READY)  ## make the environment, and nothing else

$(VENV)/.ready: pyproject.toml requirements.lock tools/setup.sh
	@sh tools/setup.sh $(VENV)

tour: $(READY)  ## fit a real table end to end; the report goes to out/tour/report.html
	$(BIN)/scalingkit tour

lab: $(READY)  ## JupyterLab on the notebooks
	MPLBACKEND= $(BIN)/jupyter lab --notebook-dir=notebooks $(shell [ "$$(id -u)" != 0 ] || echo --allow-root)

test: lint types test-quick  ## what a change must pass: style, floors, types, quick tests, notebooks, browser

test-quick: $(READY)  ## the quick tests alone
	$(PY) -m pytest

test-slow: $(READY)  ## the long statistical checks: coverage, calibration, recovery
	$(PY) -m pytest -m slow --timeout=7200

lint: $(READY)  ## style and floors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: $(READY)  ## mypy on the public surface
	$(BIN)/mypy

docs: $(READY)  ## the documentation, offline, into docs/_build/html
	$(PY) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

notebooks: $(READY)  ## execute every notebook in full and keep its outputs
	$(PY) tools/notebooks.py notebooks

bench: $(READY)  ## every script in benchmarks/, one after the other
	@for script in benchmarks/[a-z]*.py; do [ -e "$$script" ] || continue; echo "== $$script"; $(PY) "$$script" || exit 1; done

lock: $(READY)  ## write requirements.lock anew from pyproject.toml
	sh tools/lock.sh $(PY)

clean:  ## remove the environment, caches and what was built
	rm -rf $(VENV) out dist build docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
