PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
PYTEST := # more options of pytest
BIN := $(VENV)/bin
ATLAS := $(BIN)/atlas

.PHONY: demo fleet-demo test check bench eval-live mutants golden docs coverage clean

demo: $(VENV)/demo.stamp  ## the main job end to end: no key, no network
	$(ATLAS) demo

fleet-demo: $(VENV)/dev.stamp  ## many repositories, two workers of which one is killed: all on loopback
	$(BIN)/python bench/fleet.py demo

test: $(VENV)/dev.stamp  ## install and run the tests
	$(BIN)/python -m compileall -q atlas_retry # what the tests start writes no bytecode
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 5 -m "not slow" $(PYTEST) # most tests wait for processes

test-all: $(VENV)/dev.stamp  ## the slow tests as well
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 5

check: $(VENV)/dev.stamp  ## atlas passes its own gates
	PATH="$(CURDIR)/$(BIN):$$PATH" $(ATLAS) validate $(GATES)

bench: $(VENV)/dev.stamp  ## speed, as ratios in one run
	$(BIN)/python bench/run.py

eval-live: $(VENV)/dev.stamp  ## what a real agent fixes, with your key: CASES=cases.json USD=5, see bench/live.py
	$(BIN)/python bench/live.py $(CASES) --max-cost-usd $(USD) --json live.json --markdown live.md

PART ?= guard
COUNT ?= 40
SEED ?= 1
MINUTES ?= 60
mutants: $(VENV)/dev.stamp  ## which random mutants of a part its tests kill: PART=guard COUNT=40 SEED=1 MINUTES=60
	$(BIN)/python bench/mutants.py $(PART) $(COUNT) $(SEED) $(MINUTES)

golden: $(VENV)/dev.stamp  ## make the expected results of the golden outputs anew
	$(BIN)/python tests/goldens/regenerate.py
	$(BIN)/python -m tests.screens.regenerate

docs: $(VENV)/dev.stamp  ## make what the documentation takes from the code anew
	$(BIN)/python docs/make_reference.py
	$(BIN)/python docs/make_svg.py

coverage: $(VENV)/dev.stamp
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --skip-covered

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	touch $@

$(VENV)/dev.stamp: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

clean:
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache dist
