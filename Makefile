# Needs Python 3.11 or newer and make; everything else comes from the lock file.
PYTHON ?= python3
UV_VERSION := 0.13.9
UV := .venv/bin/uv

.PHONY: setup run test check format

setup: .venv/.synced

# uv lives in the environment that it fills, so that nothing outside the checkout is touched.
$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "orthorank needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	@$(PYTHON) -m venv .venv || { echo "python venv is missing (Debian: apt-get install python3-venv)"; exit 1; }
	.venv/bin/python -m pip install --quiet uv==$(UV_VERSION)

.venv/.synced: $(UV) pyproject.toml uv.lock
	@echo 'Filling .venv with what uv.lock names: a minute or two the first time'
	$(UV) sync --frozen --inexact --compile-bytecode --quiet
	@touch $@

run: setup
	.venv/bin/orthorank up --demo

check: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

test: check
	# Two processes on two cores: threads within them would only wait for each other.
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv/bin/pytest -n 2

format: setup
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
