# `make demo` and `make test` need Python 3.11+ and nothing else: they make their own environment.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
TEST_READY := .venv/.ready-for-tests
BENCH_BIN := .venv-bench/bin
BENCH_READY := .venv-bench/.ready
# tick reads its own documentation with numpydoc, and does not ask for it
PEERS := scikit-learn liblinear-official cyanure snapml skglm celer copt tick numpydoc
# Installed before the extras that ask for PyTorch, so that they do not bring in a build for GPUs.
TORCH ?= torch==2.13.0

.PHONY: demo test test-slow zoo lint bench bench-peers bench-quick bench-torch bench-dask docs clean

demo: $(READY)
	$(BIN)/banditgrad demo

test: lint
	$(BIN)/python -m pytest -n auto -m "not slow"

test-slow: $(TEST_READY)
	$(BIN)/python -m pytest -m slow

# Does every fit reach the minimum? Many hours; the real sets are found through BANDITGRAD_DATA.
# Stopped, it goes on where it was; `rm out/zoo.jsonl` begins anew.
zoo: $(TEST_READY)
	$(BIN)/python benchmarks/zoo.py

lint: $(TEST_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The peers have an environment of their own; one that does not install is left out with a note.
bench: $(BENCH_READY)
	$(BENCH_BIN)/python benchmarks/draws.py
	$(BENCH_BIN)/python benchmarks/steps.py --dense
	$(BENCH_BIN)/python benchmarks/everything_auto.py
	$(BENCH_BIN)/python benchmarks/sampling_cost.py
	$(BENCH_BIN)/python benchmarks/growth.py
	$(MAKE) bench-peers

# Hours. Stopped, it goes on where it was; `rm -r out/bench` begins anew.
bench-peers: $(BENCH_READY)
	$(BENCH_BIN)/python benchmarks/peers.py --resume

# Three minutes.
bench-quick: $(BENCH_READY)
	$(BENCH_BIN)/python benchmarks/peers.py --quick --out out/bench-quick

# The figures and numbers of docs/torch.md: about a quarter of an hour.
bench-torch: $(TEST_READY)
	$(BIN)/python benchmarks/torch_unbiased.py
	$(BIN)/python benchmarks/torch_costs.py
	$(BIN)/python benchmarks/torch_training.py

# The figure and numbers of docs/dask.md: about a quarter of an hour.
bench-dask: $(TEST_READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check dask-ml || echo "no dask-ml"
	$(BIN)/python benchmarks/dask_training.py

docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[viz,tables]"
	touch $(READY)

$(TEST_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$(TORCH)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[viz,tables,dask,torch,dev,torch-dev]"
	touch $(TEST_READY)

$(BENCH_READY): pyproject.toml Makefile
	$(PYTHON) -m venv .venv-bench
	$(BENCH_BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[viz]"
	for peer in $(PEERS); do \
	  $(BENCH_BIN)/python -m pip install --quiet --disable-pip-version-check $$peer || echo "no $$peer"; \
	done
	touch $(BENCH_READY)

clean:
	rm -rf .venv .venv-bench build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
