# Everything a developer does, one word each. Needs Python >= 3.11, make and PyPI; all else goes into .venv.
# Each target sets up what it needs; a stamp in .venv makes that free when nothing changed.

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
# PySpark is 500 MB and of use only with Java: it comes where Java is found, unless SPARK=no is said.
SPARK ?= $(if $(or $(JAVA_HOME),$(shell command -v java)),yes,no)
# Half of the time of the tests is spent waiting for clients: more of them at once than a small machine has cores.
WORKERS ?= 3
SPARK_READY := .venv/.ready-spark
# pytest rewrites what tests assert, which takes two thirds of collecting them: once for all workers, where it may be
# kept. What cannot be imported is told by the tests themselves.
ASSERTS_READY := .venv/.ready-asserts
unexport PYTHONDONTWRITEBYTECODE
TEST_MODULES := $(shell find tests -name 'test_*.py')

PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-api test-spark scenarios test-clients test-crash test-week test-audit matrix fault-table audit lint format generate bench bench-client bench-page bench-quota bench-storage bench-spark bench-peers docs dist test-dist clean

help: ## show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Compiled ahead, so that the first start takes no longer than the next, also where Python may not write bytecode.
setup: $(READY) $(if $(filter yes,$(SPARK)),$(SPARK_READY)) ## prepare .venv for development
	@$(BIN)/python -m compileall -q sluice audit broker cli client pipeline protocol purgatory quotas streams web
	@test -e $(SPARK_READY) || echo "setup: without PySpark, as there is no Java here (or SPARK=no): tests/spark will be skipped"

# The project itself goes in without isolation: its build tool is in the lock, so nothing unpinned is fetched.
$(READY): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python >= 3.11 is needed, $(PYTHON) is %d.%d: make PYTHON=python3.13 setup" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
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

demo: setup ## throttle real clients for 35 s and check what they got
	$(BIN)/sluice demo

# Tests that measure the wall clock run after the others, one at a time (5: pytest found none to run), and so do those
# with a browser and with Spark, of each of which one serves them all.
test: setup $(ASSERTS_READY) ## run the whole test suite
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not browser and not realtime and not spark and not spark_long" \
		--ignore tests/browser --ignore tests/spark
	$(BIN)/pytest -m browser tests/browser || test $$? -eq 5
	$(BIN)/pytest -m realtime $$(grep -l mark.realtime $(TEST_MODULES)) || test $$? -eq 5
	$(BIN)/pytest -m spark tests/spark || test $$? -eq 5

# Some minutes: every way to get a fault rule or a scenario wrong is asked.
test-api: setup ## ask the admin port anything that its OpenAPI document tells of
	$(BIN)/pytest -s --api-examples 100 --timeout 1800 tests/property/test_admin_api.py

test-spark: setup ## Spark with all of its timeouts: the tests that make test leaves out too
	$(BIN)/pytest -m "spark or spark_long" tests/spark tests/docs

scenarios: setup ## run the whole catalogue of scenarios with real clients
	$(BIN)/python -m tests.scenarios

# Builds what the tools that are here can build; the tests say what is missing.
test-clients: setup ## run the client matrix with Java, Go and Node as well
	$(BIN)/python -m tests.clients.build
	$(BIN)/pytest -n auto --maxprocesses 4 tests/clients/test_matrix.py

# With pytest's -s each run says how many records it was about.
test-crash: setup ## kill the broker 50 times while it writes, with and without flush.messages=1
	$(BIN)/pytest -s --kills 50 --timeout 900 tests/crash

# A thousand times ten minutes; a seed that fails is told with the command that runs it again.
test-week: setup ## a week of failures for the producer, in virtual time: 1,000 seeds, and as many of transactions
	$(BIN)/pytest -n auto --maxprocesses 4 --week-seeds 1000 tests/property/test_week_of_failures.py tests/property/test_week_of_transactions.py

# Clients that are known to do right or wrong: about half an hour of processor time.
test-audit: setup ## judge 76 synthetic clients with 20 seeds each, and our own by default with 100
	$(BIN)/pytest -n auto --maxprocesses 4 --timeout 900 --audit-seeds 20 tests/property/test_audit_verdicts.py tests/property/test_ten_minutes.py

matrix: setup ## run that matrix, and write docs/clients.md from what it finds
	$(BIN)/python -m tests.clients.build
	$(BIN)/pytest -n auto --maxprocesses 4 tests/clients/test_matrix.py --write-table

fault-table: setup ## meet every fault with the clients in Python, and write docs/faults-clients.md
	$(BIN)/pytest -n auto --maxprocesses 4 tests/clients/test_faults.py -k live_through --write-fault-table

# Real time, one client after the other; the report with all evidence stays in build/audit, of which
# python -m tests.docs.audit_pictures build/audit takes the pictures in docs/audit.
audit: setup ## measure what the ready clients do when brokers fail, and write docs/audit-matrix.md (a quarter of an hour; AUDIT_ARGS='--subject aiokafka')
	$(BIN)/sluice audit run --out build/audit $(AUDIT_ARGS)
	$(BIN)/python -m tests.docs.audit_matrix build/audit

lint: setup ## ruff, mypy, import-linter, deptry, hadolint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/hadolint Dockerfile

format: setup ## format, and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: setup ## write the files that are generated from declarations
	$(BIN)/python -m tests.generate

bench: setup ## ours against a bare asyncio server
	$(BIN)/python -m bench

bench-client: setup ## our producer and consumer beside aiokafka's, and how late ends are told (BENCH_CLIENT_ARGS='--rounds 3' is shorter)
	$(BIN)/python -m bench.client $(BENCH_CLIENT_ARGS)

# Segments take turns, on a machine that may be busy with other things: PAGE_ARGS='--seconds 6' is shorter.
bench-page: setup ## what the web page costs a broker with 500 clients and 2,000 requests/s
	$(BIN)/python -m bench.page $(PAGE_ARGS)

bench-quota: setup ## how exactly quotas hold real clients, and what they cost (QUOTA_ARGS='--seconds 20' is shorter)
	$(BIN)/python -m bench.quota $(QUOTA_ARGS)

# 10 GB of disk and of page cache; then produce and consume with a data directory, on both sides.
bench-storage: setup ## starts with 10 GB, and sluice with --data-dir beside Kafka
	$(BIN)/python -m bench.start
	@$(MAKE) --no-print-directory bench-peers PEERS_TARGETS="--target kafka \
		--target 'sluice=$(CURDIR)/$(BIN)/sluice serve --port {port} --admin-port 0 --data-dir {dir}/data'" \
		PEERS_ARGS="--cells rk1m,rk64k --reps 7"

bench-spark: setup ## Spark out of sluice, and in turns out of BOOTSTRAP=HOST:PORT; plans (SPARK_ARGS='--records 200000', PLAN_ARGS='--rows 300000' are shorter)
	@$(BIN)/python -m bench.spark $(SPARK_ARGS); slower=$$?; $(BIN)/python -m bench.plan $(PLAN_ARGS) && exit $$slower

bench-peers: setup ## ours beside Kafka, kfake and librdkafka's mock (PEERS=path of the harness)
	@test -x $(PEERS)/bench || { echo "bench-peers: no harness at $(PEERS); give its folder: make bench-peers PEERS=path"; exit 1; }
	@test -x "$${PEERS_WORK:-$${TMPDIR:-/tmp}/peers}/bin/rkperf" || $(PEERS)/setup kafka tools kfake librdkafka native
	$(PEERS)/bench run $(PEERS_ARGS) $(PEERS_TARGETS)

# The locks keep what they have in common at the same versions.
docs: setup ## make the documentation as a site: build/docs/html
	$(PIP) install -r requirements/docs.lock
	$(BIN)/python -m tests.docs.site

# What is installed into the clean environment is what the lock has; the SBOM says what that was.
dist: setup ## build wheel and sdist, check them, and write the SBOM beside them
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

test-dist: dist ## install what was built with the demo's clients, and run the demo from there
	$(PYTHON) -m venv --clear build/demo
	build/demo/bin/python -m pip --disable-pip-version-check --quiet install -c requirements/dev.lock "$$(ls $(CURDIR)/dist/*.whl)[demo]"
	cd build/demo && bin/sluice demo

clean: ## remove what the targets above made, .venv too
	rm -rf .venv build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .schemathesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
