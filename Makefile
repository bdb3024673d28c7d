# Development tasks. Requires Python >= 3.11, make and PyPI; everything else is installed into .venv.
# Each target sets up its dependencies; stamps in .venv skip that if nothing changed.

PYTHON ?= python3
PEERS ?= ../shared/peers
PEERS_ARGS ?= --reps 7
PEERS_TARGETS ?= --target kafka --target kfake --target rdmock \
	--target 'sluice=$(CURDIR)/.venv/bin/sluice serve --port {port} --admin-port 0'
AUDIT_ARGS ?=
DIFFERENTIAL_ARGS ?=
FLEETS_ARGS ?=
FUZZ_SECONDS ?= 60
FRAMES ?= 10000000
SOAK_ARGS ?= --soak-hours 24 --soak-minutes 30
MUTANTS ?= 200
SEED ?= 0
BIN := .venv/bin
READY := .venv/.ready
# PySpark (500 MB) requires Java, so it is installed only if Java is found, and only for the targets that use it. Set
# SPARK=no to skip it.
SPARK ?= $(if $(or $(JAVA_HOME),$(shell command -v java)),yes,no)
# Tests spend half of their time waiting for clients, so there are more workers than a small machine has cores.
WORKERS ?= 4
SPARK_READY := .venv/.ready-spark
WITH_SPARK := $(if $(filter yes,$(SPARK)),$(SPARK_READY))
STRESS_RUNS ?= 2
ZIPAPP_SYSTEM := $(if $(filter Darwin,$(shell uname -s)),macosx_11_0,manylinux_2_28)
TOOLS := kafka-tools kafka-connect flink apicurio python-tools
TOOLS_ARGS ?=
LINTERS := lint-ruff lint-format lint-mypy lint-imports lint-deptry lint-hadolint
# Rewriting asserts takes two thirds of pytest's collection, so it is done once for all workers, if bytecode may be
# written. The test run itself reports import errors.
ASSERTS_READY := .venv/.ready-asserts
unexport PYTHONDONTWRITEBYTECODE
TEST_MODULES := $(foreach level,* */* */*/* */*/*/* */*/*/*/*,$(wildcard tests/$(level)/test_*.py))

INSTALL := .ci/install $(BIN)

.DEFAULT_GOAL := help
.PHONY: help setup setup-spark demo check check-instructions test test-stress test-api test-spark scenarios test-differential test-clients test-tools test-quick-starts test-crash fuzz fuzz-frames soak test-week test-jepsen test-mutants test-audit test-fleets test-plans matrix fault-table audit fleets lint format generate bench-stalls bench-overload bench-peers docs dist test-dist zipapp clean

help: ## show this help
	@$(PYTHON) -c 'import re, sys; print(*(f"make {target:17} {text}" for target, text in re.findall("^([a-z-]+):.*## (.*)", open(sys.argv[1]).read(), re.M)), sep="\n")' $(firstword $(MAKEFILE_LIST))

# Compile first, so that the first start is as fast as later ones, even if Python may not write bytecode.
setup: $(READY) ## prepare .venv for development, without PySpark
	@$(BIN)/python -m compileall -q sluice $(wildcard sluice/*/)

setup-spark: $(SPARK_READY) ## install PySpark (500 MB) into .venv; the targets that need it do so if Java is found

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
	@$(BIN)/python -m compileall -qq -j 0 -x '/(tests|pip|setuptools|docutils|fontTools|pandas)/' .venv/lib >/dev/null || true
	@touch $@

$(SPARK_READY): requirements/spark.lock | $(READY)
	@echo "setup-spark: installing PySpark (500 MB)"
	@$(INSTALL) -r $<
	@touch $@

$(ASSERTS_READY): $(TEST_MODULES) | setup
	@echo "setup: preparing the tests"
	@for modules in "$(filter tests/unit/broker/%,$?)" "$(filter-out tests/unit/broker/%,$?)"; do \
		test -z "$$modules" || $(BIN)/pytest --collect-only -qq -o python_functions=- -o python_classes=- $$modules >/dev/null & \
	done; wait
	@touch $@

demo: setup ## throttle real clients for 35 s and check their rates
	$(BIN)/sluice demo

check: lint $(ASSERTS_READY) ## run the linters and the unit tests
	$(BIN)/python -m tools.run_tests --unit

# Record intended changes by python -m bench.instructions --write.
check-instructions: setup ## compare the instructions of a start, of requests and of a scrape with the recorded ones
	$(BIN)/python -m bench.instructions

# PySpark is installed while the first tests run.
test: setup $(ASSERTS_READY) ## run the whole test suite
	$(BIN)/python -m tools.run_tests --workers $(WORKERS) $(if $(WITH_SPARK),--spark,--no-spark)

# Alternates between busy processes, one for each core, and one core for everything. Ends with the failures and the
# commands that repeat their order.
test-stress: setup $(ASSERTS_READY) ## run the whole test suite in random order under load (longer: STRESS_RUNS=10)
	$(BIN)/python -m tools.run_tests --workers $(WORKERS) $(if $(WITH_SPARK),--spark,--no-spark) --stress $(STRESS_RUNS)

# Takes some minutes: includes all kinds of invalid fault rules and scenarios.
test-api: setup ## fuzz the admin port by its OpenAPI document
	$(BIN)/pytest -s --api-examples 100 --timeout 1800 tests/property/test_admin_api.py

test-spark: setup $(WITH_SPARK) ## run all Spark tests, including those with long timeouts that make test omits
	$(BIN)/pytest -m "spark or spark_long" tests/spark tests/docs

scenarios: setup ## run all built-in scenarios with real clients
	$(BIN)/python -m tools.scenarios

# Needs Java and Maven; gets 100 MB from Maven Central once. Write changed answers by DIFFERENTIAL_ARGS=--write.
test-differential: setup ## send the same requests to Apache Kafka 4.4 and to sluice, and compare the responses field by field
	$(BIN)/python -m tools.differential $(DIFFERENTIAL_ARGS)

# Builds clients for the installed toolchains; tests report missing ones.
test-clients: setup ## run the client matrix, including Java, Go and Node, and audit libraries
	$(BIN)/python -m tests.clients.build
	$(BIN)/pytest -n auto --maxprocesses 4 tests/clients/test_matrix.py tests/clients/test_kafka_streams.py
	$(BIN)/pytest --client-audits tests/clients/test_audit_commands.py tests/clients/test_findings.py

# Gets 500 MB from Maven Central and PyPI once. Write docs/compatibility/tools.md by TOOLS_ARGS=--write-tools-table.
test-tools: setup ## run tools with a Kafka client: Connect, MirrorMaker 2, Flink, a registry, frameworks, commands, kcat
	$(BIN)/python -m tests.clients.build $(TOOLS)
	$(BIN)/pytest -v -rs $(TOOLS_ARGS) tests/ecosystem

# Needs the network: Maven Central, proxy.golang.org, npm, crates.io, NuGet. A language without its tools is skipped.
test-quick-starts: setup ## run the quick starts of the documentation in Java, Go, Node.js, .NET and Rust
	$(BIN)/pytest -v -rs --quick-starts tests/docs/test_quick_starts.py

# -s shows the number of records of each run.
test-crash: setup ## kill the broker 50 times per kind of producer, with and without flush.messages=1; flip 1,000 bits of its files
	$(BIN)/pytest -s --kills 50 --timeout 900 tests/crash

# The inputs that find a defect are kept in build/fuzz. Change the time of each target by FUZZ_SECONDS=600.
fuzz: setup ## fuzz frames, records, the admin port and files, guided by coverage, one minute each
	$(INSTALL) -r requirements/fuzz.lock
	@for target in $$($(BIN)/python -m tools.fuzz list); do \
		$(BIN)/python -m tools.fuzz $$target $(FUZZ_SECONDS) || exit 1; done

# Takes 40 minutes of one processor. Change the frames by SEED=1, and their number by FRAMES=100000.
fuzz-frames: setup ## send 10,000,000 random frames to brokers of several releases, with and without security
	$(BIN)/python -m tools.fuzz campaign $(FRAMES) $(SEED)

# The day of virtual time takes 20 minutes. Shorter: SOAK_ARGS='--soak-hours 2 --soak-minutes 5'.
soak: setup ## run mixed clients and faults for a day in virtual time and half an hour in real time
	$(BIN)/pytest -s -n 2 --timeout 7200 $(SOAK_ARGS) tools/soak

# A thousand runs of ten minutes; a failure shows the command that repeats its seed.
test-week: setup ## run a week of failures in virtual time: 1,000 seeds for the producer, and 1,000 for transactions
	$(BIN)/pytest -n auto --maxprocesses 4 --week-seeds 1000 tests/property/test_week_of_failures.py tests/property/test_week_of_transactions.py

# A hundred histories of 30 s. A failure shows its seed, an excerpt of the history, and the command that repeats it.
test-jepsen: setup ## check random histories of clients for lost, duplicate, reordered and dirty records: 100 seeds
	$(BIN)/pytest -n auto --maxprocesses 4 --history-seeds 100 tools/histories

# Takes about an hour of processor time.
test-mutants: setup ## check that the unit tests detect 90 % of MUTANTS=200 random changes of the code (other samples: SEED=1)
	@$(INSTALL) -r requirements/mutation.lock
	$(BIN)/python -m tools.mutation --mutants $(MUTANTS) --seed $(SEED)

# Synthetic clients behave correctly or wrongly on purpose. Takes about half an hour of processor time.
test-audit: setup ## judge 147 synthetic clients with 20 seeds each, 77 of them also as commands, 17 naive loops, and sluice's own client with 100
	$(BIN)/pytest -n auto --maxprocesses 4 --timeout 900 --audit-seeds 20 tests/property/test_audit_verdicts.py tests/property/test_ten_minutes.py

# Reads packets of the loopback interface, so it needs root or CAP_NET_RAW on Linux. Java needs KAFKA_LIBS=folder of its
# jars. A part: FLEETS_ARGS='models java silent', FLEETS_ARGS=broker or FLEETS_ARGS=prediction.
test-fleets: setup ## compare the simulation of fleets with real clients and a real broker, in real time, and maps with the simulation
	$(BIN)/pytest -m many_clients tests/property tests/docs/test_pages.py
	$(BIN)/python -m tools.fleets $(FLEETS_ARGS)

# Then 40 real producers for five minutes. Java needs KAFKA_LIBS=folder of its jars.
test-plans: setup ## compare plans of logs recorded with and without quotas: 200 synthetic clients and 40 real ones
	$(BIN)/pytest -n auto --maxprocesses 4 --plan-seeds 200 tests/property/test_throttled_demand.py
	$(BIN)/python -m tools.plans

matrix: setup ## run the client matrix and write docs/clients.md
	$(BIN)/python -m tests.clients.build
	$(BIN)/pytest -n auto --maxprocesses 4 tests/clients/test_matrix.py tests/clients/test_kafka_streams.py --write-table

fault-table: setup ## run the Python clients with every fault and write docs/faults-clients.md
	$(BIN)/pytest -n auto --maxprocesses 4 tests/clients/test_faults.py -k live_through --write-fault-table

# In real time, one client after the other. The report with all evidence stays in build/audit; create the pictures in
# docs/audit from it with python -m tools.docs.audit_pictures build/audit.
audit: setup $(WITH_SPARK) ## audit the installed clients and write docs/audit-matrix.md (shorter: AUDIT_ARGS='--subject aiokafka')
	$(BIN)/sluice audit run --out build/audit $(AUDIT_ARGS)
	$(BIN)/python -m tools.docs.audit_matrix build/audit

fleets: setup ## repeat the experiments with fleets and write docs/fleets
	$(BIN)/python -m tools.docs.fleet_experiments

lint: setup ## run ruff, mypy, import-linter, deptry and hadolint
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

format: setup ## format the code and apply automatic fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: setup ## write generated files
	$(BIN)/python -m tools.generate

# Takes half an hour. Measure one API, or one size, by STALLS_ARGS='--api Fetch --size 10000000'.
bench-stalls: setup ## measure for how long the largest requests of each API hold the event loop
	$(BIN)/python -m bench.stalls $(STALLS_ARGS)

# Takes two minutes. Measure other versions of Python with their environments: make BIN=PATH/bin bench-overload.
bench-overload: setup ## measure the memory and the latency of a new client beside clients that read nothing, idle or rush
	$(BIN)/python -m bench.overload

bench-peers: setup ## compare with Kafka, kfake and librdkafka's mock (PEERS=path of the harness)
	@test -x $(PEERS)/bench || { echo "bench-peers: no harness at $(PEERS); run make bench-peers PEERS=path"; exit 1; }
	@test -x "$${PEERS_WORK:-$${TMPDIR:-/tmp}/peers}/bin/rkperf" || $(PEERS)/setup kafka tools kfake librdkafka native
	$(PEERS)/bench run $(PEERS_ARGS) $(PEERS_TARGETS)

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

test-dist: dist ## install the wheel with the demo's clients and run the demo
	$(PYTHON) -m venv --clear build/demo
	build/demo/bin/python -m pip --disable-pip-version-check --quiet install -c requirements/dev.lock "$$(ls $(CURDIR)/dist/*.whl)[demo]"
	cd build/demo && bin/sluice demo

# One file with the packages of each version of Python, which the first start unpacks below ~/.cache/pex.
zipapp: setup ## build and check dist/sluice.pyz: sluice in one file for this platform and Python 3.11 to 3.14
	$(INSTALL) -r requirements/zipapp.lock
	rm -rf build/zipapp
	mkdir -p dist
	$(BIN)/python -m hatchling build -t wheel -d build/zipapp
	$(BIN)/pex $(foreach minor,11 12 13 14,--platform $(ZIPAPP_SYSTEM)_$(shell uname -m)-cp-3.$(minor).0-cp3$(minor)) \
		--constraints requirements/zipapp.lock --script sluice --python-shebang '/usr/bin/env python3' \
		--output-file dist/sluice.pyz build/zipapp/*.whl
	$(BIN)/pytest -rs --zipapp dist/sluice.pyz tests/integration/sluice/test_zipapp.py

clean: ## remove all generated files and .venv
	rm -rf .venv build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .schemathesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
