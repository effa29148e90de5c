# `make demo` and `make test` need Python 3.11+ and nothing else: they make their own environment.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
TEST_READY := .venv/.ready-for-tests
BENCH_BIN := .venv-bench/bin
BENCH_READY := .venv-bench/.ready
# tick reads its own documentation with numpydoc, and does not ask for it; ipython is for adelie
PEERS := scikit-learn liblinear-official cyanure snapml skglm celer glum blitzl1 copt tick numpydoc ipython
# adelie asks for NumPy 1, and works with the NumPy 2 that tick asks for
PEERS_ALONE := adelie
# Named beside the extras that ask for PyTorch, so that they do not bring in another build.
TORCH ?= torch==2.13.0

# The bounds in pyproject.toml.
NUMBA_oldest := 0.60.0
NUMBA_newest := 0.68.*
# What compiles in ways of its own: users' parts, the cache, draws, each kind of step. The quick part is a minute.
NUMBA_TESTS := tests/test_jit.py tests/test_losses.py tests/test_penalties.py tests/samplers tests/solvers
NUMBA_QUICK := tests/test_jit.py -k "helper or own_parts or same_time or full_disk or internals or redefined"

.PHONY: demo test test-numba test-numba-quick test-slow zoo lint bench bench-peers bench-quick bench-samplers \
  bench-cv bench-torch bench-torch-study bench-dask docs dist clean

demo: $(READY)
	$(BIN)/banditgrad demo

# The two environments are made at the same time. Each worker has neighbouring tests, which share compiled code.
test:
	$(MAKE) -j2 lint test-numba-quick
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

# The oldest and the newest numba that pyproject.toml admits, each in an environment of its own. Ten minutes each.
test-numba: .venv-numba-oldest/.ready .venv-numba-newest/.ready
	for age in oldest newest; do .venv-numba-$$age/bin/python -m pytest -m "not slow" $(NUMBA_TESTS) || exit 1; done

# The environment of `make test` has the newest already.
test-numba-quick: .venv-numba-oldest/.ready
	.venv-numba-oldest/bin/python -m pytest --quiet $(NUMBA_QUICK)

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

# Four minutes, both halves.
bench-quick: $(BENCH_READY)
	$(BENCH_BIN)/python benchmarks/peers.py --quick --out out/bench-quick

# The tables of docs/how-to/choosing-alpha.md: an hour. Stopped, it goes on where it was.
bench-cv: $(BENCH_READY)
	$(BENCH_BIN)/python benchmarks/cross_validation.py --document docs/how-to/choosing-alpha.md

# The figures and numbers of docs/torch.md: about a quarter of an hour.
bench-torch: $(TEST_READY)
	$(BIN)/python benchmarks/torch_unbiased.py
	$(BIN)/python benchmarks/torch_costs.py
	$(BIN)/python benchmarks/torch_training.py

# The table and figure of what sampling saves, in docs/torch.md: hours; real data are found through BANDITGRAD_DATA.
# Stopped, it goes on where it was; `rm out/torch-study.jsonl` begins anew.
bench-torch-study: $(TEST_READY)
	$(BIN)/python benchmarks/torch_study.py --seeds 5

# The figure and numbers of docs/dask.md: about a quarter of an hour.
bench-dask: $(TEST_READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check dask-ml || echo "no dask-ml"
	$(BIN)/python benchmarks/dask_training.py

# The table of docs/samplers.md. Many hours; stopped, it goes on where it was.
bench-samplers: $(TEST_READY)
	$(BIN)/python benchmarks/samplers.py --document docs/samplers.md

docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[viz,tables]"
	touch $(READY)

$(TEST_READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$(TORCH)" \
	  --editable ".[viz,tables,onnx,dask,torch,dev,torch-dev]"
	touch $(READY) $(TEST_READY)

$(BENCH_READY): pyproject.toml Makefile
	$(PYTHON) -m venv .venv-bench
	$(BENCH_BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[viz]"
	for peer in $(PEERS); do \
	  $(BENCH_BIN)/python -m pip install --quiet --disable-pip-version-check $$peer || echo "no $$peer"; \
	done
	for peer in $(PEERS_ALONE); do \
	  $(BENCH_BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $$peer || echo "no $$peer"; \
	done
	touch $(BENCH_READY)

.venv-numba-%/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-numba-$*
	.venv-numba-$*/bin/python -m pip install --quiet --disable-pip-version-check --editable . "numba==$(NUMBA_$*)" \
	  hypothesis pytest pytest-timeout
	touch $@

# Builds wheel and sdist and uses each, installed where nothing of the sources is found.
dist:
	rm -rf dist .venv-dist .venv-installed
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/python -m pip install --quiet --disable-pip-version-check build twine
	.venv-dist/bin/python -m build --outdir dist .
	.venv-dist/bin/twine check --strict dist/*
	$(PYTHON) -m venv .venv-installed
	for file in dist/*.whl dist/*.tar.gz; do \
	  .venv-installed/bin/python -m pip uninstall --quiet --yes banditgrad; \
	  .venv-installed/bin/python -m pip install --quiet --disable-pip-version-check $$file || exit 1; \
	  .venv-installed/bin/python -I tests/installed.py || exit 1; \
	done

clean:
	rm -rf .venv .venv-* build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
