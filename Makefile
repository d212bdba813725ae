# Everything a contributor or a user runs. `make` alone prints this list.
.DEFAULT_GOAL := help
.PHONY: help setup tools path packages bench show site serve test test-quick test-cuda pytest controls lint lint-workflows \
	bench-harness bench-site bench-changes bench-compare bench-results demo docs pictures clean

PYTHON ?= python3
MODEL ?= ResNet50
BENCH ?=
SITE ?=
SERVE ?= 1
PORT ?= 8000
DEMO ?= .demo
VENV ?= .venv
APT ?= sudo apt-get
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

help:  ## Print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/.cpu  ## Make .venv with the pinned stack `cpu` and the commands

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "machmeter needs Python 3.11 or newer: make PYTHON=python3.11")'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "cannot make $(VENV): install venv (Debian: apt install python3-venv)"; exit 1; }

$(VENV)/.cpu: $(VENV)/bin/python requirements/cpu.txt requirements/tools.txt pyproject.toml
	@echo "Installing the stack cpu into $(VENV) (about 5.5 GB, one to five minutes) ..."
	$(PIP) -r requirements/cpu.txt -r requirements/tools.txt
	$(PIP) --no-deps --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.cpu requirements/dev.txt
	$(PIP) -r requirements/dev.txt
	@touch $@

tools: $(VENV)/.tools  ## Make .venv with the commands alone: no framework (what a workflow needs that measures in asv's own environments)

$(VENV)/.tools: $(VENV)/bin/python requirements/minimal.txt requirements/tools.txt pyproject.toml
	$(PIP) --no-compile -r requirements/minimal.txt -r requirements/tools.txt
	$(PIP) --no-deps --editable .
	@touch $@

path:  ## In a job of GitHub Actions: let the later steps find the commands
	@test -n "$(GITHUB_PATH)" || { echo "GITHUB_PATH is not set: this is for jobs of GitHub Actions"; exit 1; }
	@echo "$(abspath $(BIN))" >> "$(GITHUB_PATH)"

packages:  ## Install the Debian packages that tests and the tuning ladder use beside the README's (asks for root)
	$(APT) update -qq
	$(APT) install -y -qq numactl libtcmalloc-minimal4 libjemalloc2 libtbb12

controls: $(VENV)/.cpu  ## Let asv check every benchmark, and run the machine controls once
	$(BIN)/asv machine --yes
	$(BIN)/asv check --python=same
	$(BIN)/asv run --python=same --quick --show-stderr --bench '^control\.(Null|Machine)\.'

bench: setup  ## Measure MODEL (default ResNet50; 'all' for every model) on every CPU backend, then show the table; BENCH=... passes options
	$(BIN)/machmeter bench $(foreach model,$(MODEL),--model $(model)) $(BENCH)

show: setup  ## Show what was measured so far
	$(BIN)/machmeter show

site: setup node_modules/.site  ## Build the history site of the local results into html/; SITE=... passes options
	$(BIN)/machmeter site build --cache .asv/site $(SITE)

serve: site  ## Build the site and show it on http://127.0.0.1:8000/
	$(BIN)/machmeter site serve

demo: $(VENV)/.tools node_modules/.site  ## Show the site of real results of ours (examples/) on port 8000: no framework; SERVE=0 only builds it
	$(BIN)/machmeter site build --results examples/results --repository . --output $(DEMO)/html
ifneq ($(SERVE),0)
	$(BIN)/machmeter site serve --output $(DEMO)/html --port $(PORT)
endif

# The chart library. Without npm the site has static plots only, and says so.
node_modules/.site: package.json package-lock.json
	@if command -v npm >/dev/null; then npm ci --omit=dev --no-audit --no-fund --loglevel=error && touch $@ || echo "npm ci failed: plots will be static"; \
	else echo "npm is not installed: plots will be static (Debian: apt install npm)"; fi

# And what tests need: the accessibility checker, and GitHub's description of its interface (390 MB).
node_modules/.ready: package.json package-lock.json
	@if command -v npm >/dev/null; then npm ci --no-audit --no-fund --loglevel=error && touch node_modules/.site $@ || echo "npm ci failed"; \
	else echo "npm is not installed: plots will be static, and tests of GitHub fail (Debian: apt install npm)"; fi

# Two passes: what may run beside other tests, in as many processes as there are CPUs, then what measures, alone.
# Artifacts of real models are made once for both. A pass to which nothing belongs is none that failed.
SIDE_BY_SIDE := -n auto --dist loadfile --no-loadscope-reorder --durations 10
run_tests = store=$$(mktemp -d) && trap 'rm -rf "$$store"' EXIT && export MACHMETER_TEST_STORE="$$store"; \
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "$(1) not quiet"; beside=$$?; \
	$(BIN)/python -m pytest --durations 10 -m "$(1) quiet"; alone=$$?; \
	{ [ $$beside = 0 ] || [ $$beside = 5 ]; } && { [ $$alone = 0 ] || [ $$alone = 5 ]; } && [ $$beside$$alone != 55 ]

test: $(VENV)/.dev node_modules/.ready lint  ## Check the style and run every test (real models, real asv: about 15 minutes on 2 cores)
	@$(call run_tests,)

pytest: $(VENV)/.dev node_modules/.ready  ## Run every test, without the style checks
	@$(call run_tests,)

test-quick: $(VENV)/.dev node_modules/.ready  ## Run the tests that need no real model (some minutes, no network)
	@$(call run_tests,not models and not network and)

test-cuda:  ## Try the GPU backends on this machine's GPU (under 8 minutes; needs torch and NumPy, installs nothing)
	$(PYTHON) tools/experiments/try_gpu.py $(BENCH)

lint: $(VENV)/.dev lint-workflows  ## ruff, mypy, the layers of imports, and what checks the workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=tools $(BIN)/lint-imports --no-logo

lint-workflows: $(VENV)/.dev  ## Check .github/ (needs no network)
	$(BIN)/zizmor --offline --quiet --no-progress --persona pedantic .github
	$(BIN)/jactionlint --no-online --strict-exit --shellcheck $(BIN)/shellcheck
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/yamllint --strict .github
	$(BIN)/machmeter runners check >/dev/null

bench-harness: setup  ## Measure what our harness itself costs, against each runtime's own tools
	$(BIN)/python tools/experiments/bench_harness.py

bench-site: setup node_modules/.site  ## Measure building the sites of two large generated stores, a foreign one and our own (BENCH=--publish: asv's own pages too)
	$(BIN)/python tools/experiments/bench_site.py $(BENCH)

bench-changes: $(VENV)/.dev  ## Try detectors of steps, asv's among them, on simulated histories (a minute on 2 idle cores)
	$(BIN)/python tools/experiments/bench_changes.py

bench-results: setup  ## Measure the results branch: pushing onto 5,000 files, eight at once, its size
	$(BIN)/python tools/experiments/bench_results.py $(BENCH)

bench-compare: $(VENV)/.dev  ## Try the judgement of comparisons on simulated measurements, asv's rule beside it (a minute)
	$(BIN)/python tools/experiments/bench_compare.py $(BENCH)

docs: $(VENV)/.tools  ## Write docs/commands.md and docs/metrics.md from the code
	$(BIN)/python tools/docs/write_pages.py

pictures: $(VENV)/.dev node_modules/.site  ## Take the pictures of the README (docs/pictures/) with an installed Chromium
	$(BIN)/python tools/docs/take_pictures.py

clean:  ## Remove the environment and asv's builds; results, evidence and the artifact store stay
	rm -rf $(VENV) .asv .demo build tools/*.egg-info
