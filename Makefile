# Every target sets up .venv by itself; `make help` lists them.
PYTHON ?= python3
CONSTRAINTS ?= -c requirements.lock  # empty for the newest dependencies
BIN := .venv/bin
STAMP := .venv/.installed

unexport PYTHONDONTWRITEBYTECODE  # every process that tests start would compile all modules anew

.PHONY: help demo test browser lint bench judges docs site
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 8

demo: $(STAMP)  ## solve the rail-only study, verify the plan and write its page
	mkdir -p out
	$(BIN)/coopt solve instances/rail-only-gpt-1t.toml -o out/plan.json
	$(BIN)/coopt verify instances/rail-only-gpt-1t.toml out/plan.json
	$(BIN)/coopt report instances/rail-only-gpt-1t.toml out/plan.json -o out/report.html

test: $(STAMP) $(if $(COOPT_NO_BROWSER),,browser)  ## run the tests, in a browser as well
	$(BIN)/pytest

# Root on Debian gets the browser. Whoever does not goes without: the last line of the tests says so.
INSTALL := DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends
browser:
	@command -v chromedriver >/dev/null || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null || \
	{ apt-get update -qq && $(INSTALL) chromium-headless-shell chromium-driver >/dev/null; } || true

lint: $(STAMP)  ## check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(STAMP)  ## run the benchmarks and rewrite their table
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/lp_bounds.py
	$(BIN)/python benchmarks/model.py
	$(BIN)/python benchmarks/routing.py
	$(BIN)/python benchmarks/collectives.py
	$(BIN)/python benchmarks/partition.py
	$(BIN)/python benchmarks/pareto.py
	$(BIN)/python benchmarks/suite.py
	$(BIN)/python benchmarks/shared.py
	$(BIN)/python benchmarks/all_kinds.py

judges: $(STAMP)  ## let real programs read what coopt writes, and rewrite docs/judges.md
	$(BIN)/python -m tests.judges

docs: $(STAMP)  ## write the generated pages of docs/ from code, catalog, schema and published runs, and draw docs/pictures
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/mathematics.py
	$(BIN)/python docs/keys.py
	$(BIN)/python docs/commands.py
	$(BIN)/python docs/model_errors.py
	$(BIN)/python benchmarks/errors.py
	$(BIN)/python docs/draw.py
	$(BIN)/python docs/draw_fleet.py

site: $(STAMP)  ## build the site from docs/ into out/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file docs/site/mkdocs.yml

HAS_VENV := 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))'
NEEDS_VENV := 'coopt needs Python 3.11 or newer with its module venv (Debian: apt-get install \
	python3-venv); PYTHON=... names another python3'
$(STAMP): pyproject.toml requirements.lock
	@test -x $(BIN)/pip || $(PYTHON) -c $(HAS_VENV) 2>/dev/null || { echo $(NEEDS_VENV) >&2; exit 1; }
	test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile $(CONSTRAINTS) -e '.[dev]'
	touch $(STAMP)
