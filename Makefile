# Development tasks. Requires Python >= 3.11, make and PyPI; everything else is installed into .venv.
# Each target sets up its dependencies; stamps in .venv skip that if nothing changed.

PYTHON ?= python3
PEERS ?= ../shared/peers
PEERS_ARGS ?= --reps 7
PEERS_TARGETS ?= --target kafka --target kfake --target rdmock \
	--target 'sluice=$(CURDIR)/.venv/bin/sluice serve --port {port} --admin-port 0'
BENCH_CLIENT_ARGS ?=
PAGE_ARGS ?=
QUOTA_ARGS ?=
SPARK_ARGS ?=
AUDIT_ARGS ?=
PLAN_ARGS ?=
BIN := .venv/bin
READY := .venv/.ready
# PySpark (500 MB) requires Java, so it is installed only if Java is found. Set SPARK=no to skip it.
SPARK ?= $(if $(or $(JAVA_HOME),$(shell command -v java)),yes,no)
# Tests spend half of their time waiting for clients, so there are more workers than a small machine has cores.
WORKERS ?= 3
SPARK_READY := .venv/.ready-spark
# Rewriting asserts takes two thirds of pytest's collection, so it is done once for all workers, if bytecode may be
# written. The test run itself reports import errors.
ASSERTS_READY := .venv/.ready-asserts
unexport PYTHONDONTWRITEBYTECODE
TEST_MODULES := $(shell find tests -name 'test_*.py')

PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-api test-spark scenarios test-clients test-quick-starts test-crash test-week test-audit matrix fault-table audit lint format generate bench bench-client bench-page bench-quota bench-storage bench-spark bench-peers docs dist test-dist clean

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Compile first, so that the first start is as fast as later ones, even if Python may not write bytecode.
setup: $(READY) $(if $(filter yes,$(SPARK)),$(SPARK_READY)) ## prepare .venv for development
	@$(BIN)/python -m compileall -q sluice audit broker cli client pipeline protocol purgatory quotas streams web
	@test -e $(SPARK_READY) || echo "setup: no Java found (or SPARK=no), so without PySpark; tests/spark will be skipped"

# Without build isolation: the build tool is in the lock, so no unpinned package is downloaded.
$(READY): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("expected Python >= 3.11, got %d.%d ($(PYTHON)); run make PYTHON=python3.13 setup" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) install -r requirements/dev.lock
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(SPARK_READY): requirements/spark.lock $(READY)
	$(PIP) install -r requirements/spark.lock
	@touch $@

$(ASSERTS_READY): $(TEST_MODULES) | setup
	@echo $? | xargs -P 2 -n 250 $(BIN)/pytest --collect-only -qq -o python_functions=- -o python_classes=- >/dev/null || true
	@touch $@

demo: setup ## throttle real clients for 35 s and check their rates
	$(BIN)/sluice demo

# Tests with a browser and with Spark run after the others, as they share one browser and one Spark session (exit code 5:
# no tests found).
test: setup $(ASSERTS_READY) ## run the whole test suite
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not browser and not spark and not spark_long" \
		--ignore tests/browser --ignore tests/spark
	$(BIN)/pytest -m browser tests/browser || test $$? -eq 5
	$(BIN)/pytest -m spark tests/spark || test $$? -eq 5

# Takes some minutes: includes all kinds of invalid fault rules and scenarios.
test-api: setup ## fuzz the admin port by its OpenAPI document
	$(BIN)/pytest -s --api-examples 100 --timeout 1800 tests/property/test_admin_api.py

test-spark: setup ## run all Spark tests, including those with long timeouts that make test omits
	$(BIN)/pytest -m "spark or spark_long" tests/spark tests/docs

scenarios: setup ## run all built-in scenarios with real clients
	$(BIN)/python -m tests.scenarios

# Builds clients for the installed toolchains; tests report missing ones.
test-clients: setup ## run the client matrix, including Java, Go and Node
	$(BIN)/python -m tests.clients.build
	$(BIN)/pytest -n auto --maxprocesses 4 tests/clients/test_matrix.py

# Needs the network: Maven Central, proxy.golang.org, npm, crates.io, NuGet. A language without its tools is skipped.
test-quick-starts: setup ## run the quick starts of the documentation in Java, Go, Node.js, .NET and Rust
	$(BIN)/pytest -v -rs --quick-starts tests/docs/test_quick_starts.py

# -s shows the number of records of each run.
test-crash: setup ## kill the broker 50 times during writes, with and without flush.messages=1, and flip 1,000 bits of its files
	$(BIN)/pytest -s --kills 50 --timeout 900 tests/crash

# A thousand runs of ten minutes; a failure shows the command that repeats its seed.
test-week: setup ## run a week of failures in virtual time: 1,000 seeds for the producer, and 1,000 for transactions
	$(BIN)/pytest -n auto --maxprocesses 4 --week-seeds 1000 tests/property/test_week_of_failures.py tests/property/test_week_of_transactions.py

# Synthetic clients behave correctly or wrongly on purpose. Takes about half an hour of processor time.
test-audit: setup ## judge 76 synthetic clients with 20 seeds each, and sluice's own client with 100
	$(BIN)/pytest -n auto --maxprocesses 4 --timeout 900 --audit-seeds 20 tests/property/test_audit_verdicts.py tests/property/test_ten_minutes.py

matrix: setup ## run the client matrix and write docs/clients.md
	$(BIN)/python -m tests.clients.build
	$(BIN)/pytest -n auto --maxprocesses 4 tests/clients/test_matrix.py --write-table

fault-table: setup ## run the Python clients with every fault and write docs/faults-clients.md
	$(BIN)/pytest -n auto --maxprocesses 4 tests/clients/test_faults.py -k live_through --write-fault-table

# In real time, one client after the other. The report with all evidence stays in build/audit; create the pictures in
# docs/audit from it with python -m tests.docs.audit_pictures build/audit.
audit: setup ## audit the installed clients and write docs/audit-matrix.md (15 minutes; AUDIT_ARGS='--subject aiokafka')
	$(BIN)/sluice audit run --out build/audit $(AUDIT_ARGS)
	$(BIN)/python -m tests.docs.audit_matrix build/audit

lint: setup ## run ruff, mypy, import-linter, deptry and hadolint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/hadolint Dockerfile

format: setup ## format the code and apply automatic fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: setup ## write generated files
	$(BIN)/python -m tests.generate

bench: setup ## compare the broker with a bare asyncio server
	$(BIN)/python -m bench

bench-client: setup ## compare sluice's producer and consumer with aiokafka's (shorter: BENCH_CLIENT_ARGS='--rounds 3')
	$(BIN)/python -m bench.client $(BENCH_CLIENT_ARGS)

# Alternates between both variants, because other processes may load the machine.
bench-page: setup ## measure the cost of the web page with 500 clients and 2,000 requests/s (shorter: PAGE_ARGS='--seconds 6')
	$(BIN)/python -m bench.page $(PAGE_ARGS)

bench-quota: setup ## measure the accuracy and cost of quotas with real clients (shorter: QUOTA_ARGS='--seconds 20')
	$(BIN)/python -m bench.quota $(QUOTA_ARGS)

# Needs 10 GB of disk and page cache. Then compares produce and consume with a data directory.
bench-storage: setup ## measure starts with 10 GB, and compare --data-dir with Kafka
	$(BIN)/python -m bench.start
	@$(MAKE) --no-print-directory bench-peers PEERS_TARGETS="--target kafka \
		--target 'sluice=$(CURDIR)/$(BIN)/sluice serve --port {port} --admin-port 0 --data-dir {dir}/data'" \
		PEERS_ARGS="--cells rk1m,rk64k --reps 7"

bench-spark: setup ## measure Spark jobs on sluice, and alternately on BOOTSTRAP=HOST:PORT, and plans (shorter: SPARK_ARGS='--records 200000' PLAN_ARGS='--rows 300000')
	@$(BIN)/python -m bench.spark $(SPARK_ARGS); slower=$$?; $(BIN)/python -m bench.plan $(PLAN_ARGS) && exit $$slower

bench-peers: setup ## compare with Kafka, kfake and librdkafka's mock (PEERS=path of the harness)
	@test -x $(PEERS)/bench || { echo "bench-peers: no harness at $(PEERS); run make bench-peers PEERS=path"; exit 1; }
	@test -x "$${PEERS_WORK:-$${TMPDIR:-/tmp}/peers}/bin/rkperf" || $(PEERS)/setup kafka tools kfake librdkafka native
	$(PEERS)/bench run $(PEERS_ARGS) $(PEERS_TARGETS)

docs: setup ## build the documentation site in build/docs/html
	$(PIP) install -r requirements/docs.lock
	$(BIN)/python -m tests.docs.site

# The SBOM lists the locked versions in a clean environment.
dist: setup ## build and check wheel and sdist, and write their SBOM
	$(PIP) install -r requirements/dist.lock
	rm -rf dist build/clean
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(PYTHON) -m venv build/clean
	build/clean/bin/python -m pip --disable-pip-version-check --quiet install -c requirements/dev.lock dist/*.whl
	build/clean/bin/sluice --version
	build/clean/bin/python -m pip --quiet uninstall --yes pip setuptools
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file dist/sluice.cdx.json build/clean/bin/python

test-dist: dist ## install the wheel with the demo's clients and run the demo
	$(PYTHON) -m venv --clear build/demo
	build/demo/bin/python -m pip --disable-pip-version-check --quiet install -c requirements/dev.lock "$$(ls $(CURDIR)/dist/*.whl)[demo]"
	cd build/demo && bin/sluice demo

clean: ## remove all generated files and .venv
	rm -rf .venv build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .schemathesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
