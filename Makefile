# What contributors need each day; tools/campaign list shows longer checks and experiments. Requires Python >= 3.11, make
# and PyPI; everything else is installed into .venv.
# Each target sets up its dependencies; stamps in .venv skip that if nothing changed.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
LINTERS := lint-ruff lint-format lint-mypy lint-imports lint-deptry lint-hadolint lint-workflows lint-commits
unexport PYTHONDONTWRITEBYTECODE

INSTALL := .ci/install $(BIN)

.DEFAULT_GOAL := help
.PHONY: help setup demo check check-instructions test lint format generate docs dist clean

help: ## show this help
	@$(PYTHON) -c 'import re, sys; print(*(f"make {target:17} {text}" for target, text in re.findall("^([a-z-]+):.*## (.*)", open(sys.argv[1]).read(), re.M)), sep="\n")' $(firstword $(MAKEFILE_LIST))

# Compile what has changed, so that the first start is as fast as later ones, even if Python may not write bytecode.
setup: $(READY) ## prepare .venv for development, without PySpark
	@$(BIN)/python -m compileall -q sluice $(wildcard sluice/*/)

# Without build isolation: the build tool is in the lock, so no unpinned package is downloaded. Packages are compiled at
# once on all cores, except those of which tests import little (a few contain templates that are no Python, hence || true).
$(READY): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("expected Python >= 3.11, got %d.%d ($(PYTHON)); run make PYTHON=python3.13 setup" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || { echo "setup: creating .venv"; $(PYTHON) -m venv .venv; }
	@echo "setup: installing up to $$(cat $< | wc -l) packages from $<"
	@$(BIN)/python -m pip --disable-pip-version-check --quiet install "$$(grep ^uv== $<)"
	@$(INSTALL) -r $<
	@echo "setup: installing this checkout"
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@echo "setup: compiling"
	@$(BIN)/python -m compileall -qq -j 0 -x '/(tests|pip|setuptools|docutils|fontTools|pandas|mypy|mypyc|schemathesis|graphql|playwright|werkzeug)/' .venv/lib sluice $(wildcard sluice/*/) >/dev/null || true
	@touch $@

demo: setup ## throttle real clients for 35 s and check their rates
	$(BIN)/sluice demo

check: lint ## run the linters and the unit tests
	$(BIN)/python -m tools.run_tests --unit

# Record intended changes by python -m bench.instructions --write.
check-instructions: setup ## compare the instructions of a start, of requests and of a scrape with the recorded ones
	$(BIN)/python -m bench.instructions

# If Java is found, PySpark (500 MB) is installed while the first tests run; SPARK=no skips it.
test: setup ## run the whole test suite
	$(BIN)/python -m tools.run_tests

lint: setup ## run ruff, mypy, import-linter, deptry, hadolint and zizmor, and check commit messages
	@$(MAKE) --no-print-directory --jobs 3 --keep-going $(if $(filter output-sync,$(.FEATURES)),--output-sync) $(LINTERS)

.PHONY: $(LINTERS)
lint-ruff:
	$(BIN)/ruff check .
lint-format:
	$(BIN)/ruff format --check .
lint-mypy:
	$(BIN)/mypy
lint-imports:
	$(BIN)/lint-imports
lint-deptry:
	$(BIN)/deptry .
lint-hadolint:
	$(BIN)/hadolint Dockerfile deploy/spark.Dockerfile
lint-workflows:
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/zizmor --offline --quiet .github/workflows
lint-commits:
	$(BIN)/python -m tools.commits

format: setup ## format the code and apply automatic fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: setup ## write generated files
	$(BIN)/python -m tools.generate

docs: setup ## build the documentation site in build/docs/html
	$(INSTALL) -r requirements/docs.lock
	$(BIN)/python -m tools.docs.site

# The SBOM lists the locked versions in a clean environment.
dist: setup ## build and check wheel and sdist, and write their SBOM
	$(INSTALL) -r requirements/dist.lock
	rm -rf dist build/clean
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(PYTHON) -m venv build/clean
	build/clean/bin/python -m pip --disable-pip-version-check --quiet install -c requirements/dev.lock dist/*.whl
	build/clean/bin/sluice --version
	build/clean/bin/python -m pip --quiet uninstall --yes pip setuptools
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file dist/sluice.cdx.json build/clean/bin/python

clean: ## remove all generated files and .venv
	rm -rf .venv build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .schemathesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
