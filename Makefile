# Each target does its own set-up, in .venv inside the checkout. Needs Python 3.11 or newer and the package index.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
# One more than there are cores: many tests wait for a server.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
READY := .venv/.ready

.PHONY: demo test check slow bench system format clean

demo: $(READY)
	$(BIN)/masa demo

test: check
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

check: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

slow: $(READY)
	$(BIN)/pytest -n $(WORKERS) -m slow tests
	$(BIN)/pytest tests/slow

bench: $(READY)
	$(BIN)/python benchmarks/draws.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/live.py

# What Debian has and pip has not: a program that speaks, for the tests of speech services, and a
# browser, for those of pages.
system:
	@command -v espeak-ng >/dev/null && command -v chromium >/dev/null || \
		{ apt-get update -qq && apt-get install -y -qq espeak-ng chromium; }

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf .venv dist build

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "masa needs Python 3.11 or newer; install it, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || { echo "no virtual environment could be made; on Debian: apt-get install python3-venv" >&2; rm -rf .venv; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@
