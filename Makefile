# `make demo` and `make test` need Python 3.11+ and nothing else: they make their own environment.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
BENCH_BIN := .venv-bench/bin
BENCH_READY := .venv-bench/.ready
PEERS := scikit-learn cyanure

.PHONY: demo test test-slow lint bench clean

demo: $(READY)
	$(BIN)/python examples/three_samplers.py

test: lint
	$(BIN)/python -m pytest -n auto -m "not slow"

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The peers have an environment of their own; one that does not install is left out with a note.
bench: $(BENCH_READY)
	$(BENCH_BIN)/python benchmarks/draws.py
	$(BENCH_BIN)/python benchmarks/steps.py --dense

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[viz,dev]"
	touch $(READY)

$(BENCH_READY): pyproject.toml Makefile
	$(PYTHON) -m venv .venv-bench
	$(BENCH_BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	for peer in $(PEERS); do \
	  $(BENCH_BIN)/python -m pip install --quiet --disable-pip-version-check $$peer || echo "no $$peer"; \
	done
	touch $(BENCH_READY)

clean:
	rm -rf .venv .venv-bench build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
