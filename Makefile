# `make demo` and `make test` need Python 3.11+ and nothing else: they make their own environment.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Installed before the extras that ask for PyTorch, so that they do not bring in a build for GPUs.
TORCH ?= torch==2.13.0

.PHONY: demo test test-slow lint bench bench-torch clean

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

bench: $(READY)
	$(BIN)/python benchmarks/draws.py

# The figures and numbers of docs/torch.md: about a quarter of an hour.
bench-torch: $(READY)
	$(BIN)/python benchmarks/torch_unbiased.py
	$(BIN)/python benchmarks/torch_costs.py
	$(BIN)/python benchmarks/torch_training.py

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$(TORCH)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[viz,torch,dev,torch-dev]"
	touch $(READY)

clean:
	rm -rf .venv build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
