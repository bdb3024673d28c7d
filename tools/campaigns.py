"""The campaigns: checks and experiments that take minutes or hours, which `make test` leaves out.

`tools/campaign list` shows them, and `tools/campaign run NAME [ARGS]...` runs one of them.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import click

from tools.locks import install

ROOT = Path(__file__).parents[1]
PARALLEL = "-n auto --maxprocesses 4"


class Campaign(NamedTuple):
    """One campaign. `commands` are lines of a shell script, whose arguments are those of the run, or the default."""

    name: str
    what: str
    takes: str  # on two cores
    when: str
    commands: str
    default: str = ""
    needs: str = ""
    locks: tuple[str, ...] = ()  # files of requirements/, which are installed first


TABLE = (
    # -- tests --
    Campaign(
        "stress",
        "run the whole test suite in random order under load",
        "11 minutes per run",
        "after a change of fixtures, or of tests that wait",
        'python -m tools.run_tests --stress "$@"',
        default="2",
    ),
    Campaign(
        "api",
        "fuzz the admin port by its OpenAPI document, with all kinds of invalid fault rules and scenarios",
        "minutes",
        "after a change of the admin port",
        'pytest -s --timeout 1800 tests/property/test_admin_api.py --api-examples "$@"',
        default="100",
    ),
    Campaign(
        "traces",
        "run tests that fail for 36 causes, with real clients, and check that the findings of their traces name these",
        "a minute",
        "after a change of sluice/trace/findings",
        'pytest -m failing_tests tests/integration/sluice/trace "$@"',
    ),
    Campaign(
        "spark",
        "run all Spark tests, including those with long timeouts that make test omits",
        "minutes",
        "after a change of sluice/spark, and with a new version of Spark",
        'pytest -m "spark or spark_long" tests/spark tests/docs "$@"',
        needs="Java; 500 MB from PyPI",
        locks=("spark",),
    ),
    Campaign(
        "clients",
        "run the client matrix, including Java, Go and Node, and audit libraries",
        "minutes, and the builds of the clients",
        "before a change of responses",
        f"""
        python -m tools.clients.build
        pytest {PARALLEL} tests/clients/test_matrix.py tests/clients/test_kafka_streams.py "$@"
        pytest --client-audits tests/clients/test_audit_commands.py tests/clients/test_findings.py
        """,
        needs="the toolchains of the languages; tests report missing ones",
    ),
    Campaign(
        "ecosystem",
        "run programs with a Kafka client: Connect, MirrorMaker 2, Flink, a registry, frameworks, commands, kcat",
        "10 minutes",
        "before a release: --write-tools-table writes docs/compatibility/tools.md",
        """
        python -m tools.clients.build kafka-tools kafka-connect flink apicurio python-tools
        pytest -v -rs tests/ecosystem "$@"
        """,
        needs="Java and Maven; 500 MB from Maven Central and PyPI, once",
    ),
    Campaign(
        "quick-starts",
        "run the quick starts of the documentation in Java, Go, Node.js, .NET and Rust",
        "minutes, mostly downloads",
        "after a change of docs/how-to",
        'pytest -v -rs --quick-starts tests/docs/test_quick_starts.py "$@"',
        needs="the languages' tools, and their registries; a language without its tools is skipped",
    ),
    Campaign(
        "crash",
        "kill the broker repeatedly per kind of producer, with and without flush.messages=1; flip 20 bits per kill",
        "8 minutes",
        "after a change of broker/log/disk or the metadata log",
        'pytest -s --timeout 900 tests/integration/tools/test_crash.py --kills "$@"',
        default="50",
    ),
    Campaign(
        "histories",
        "check random histories of clients for lost, duplicate, reordered and dirty records",
        "3 minutes",
        "after a change of broker/log, coordinators or elections",
        f'pytest {PARALLEL} tests/integration/tools/test_histories.py --history-seeds "$@"',
        default="100",
    ),
    Campaign(
        "week",
        "run a week of failures in virtual time: 1,000 seeds for the producer, and 1,000 for transactions",
        "10 minutes",
        "after a change of sluice/client or of elections",
        f"""
        pytest {PARALLEL} tests/property/test_week_of_failures.py tests/property/test_week_of_transactions.py \\
            --week-seeds "$@"
        """,
        default="1000",
    ),
    Campaign(
        "soak",
        "run mixed clients and faults for a day in virtual time and half an hour in real time",
        "35 minutes",
        "after a change of broker that keeps state: memory, file descriptors and parked operations must not grow",
        'pytest -s -n 2 --timeout 7200 tests/integration/tools/test_soak.py "$@"',
        default="--soak-hours 24 --soak-minutes 30",
    ),
    Campaign(
        "audit-verdicts",
        "judge 147 synthetic clients, 77 of them also as commands, 17 naive loops, and sluice's own client",
        "30 minutes",
        "after a change of sluice/audit or sluice/client",
        f'pytest {PARALLEL} --timeout 900 tests/property/test_audit_verdicts.py --audit-seeds "$@"',
        default="20",
    ),
    Campaign(
        "lint-scale",
        "lint journals of a million simulated client-hours on Spark; compare results, rate and memory with a local run",
        "an hour",
        "after a change of sluice/lint/facts or sluice/spark/lint; ARGS: --events 1000000",
        'python -m tools.lint_scale "$@"',
        needs="Java; 500 MB from PyPI",
        locks=("spark",),
    ),
    # -- other programs --
    Campaign(
        "differential",
        "send the same requests to Apache Kafka 4.4 and to sluice, and compare the responses field by field",
        "minutes",
        "after a change of responses; new cases: --write records Kafka's responses for make test; ARGS: --seeds 4 20 "
        "sends new random requests",
        'python -m tools.differential "$@"',
        needs="Java and Maven; 100 MB from Maven Central, once",
    ),
    Campaign(
        "proxy-clients",
        "run the client matrix through a proxy in front of Apache Kafka: one and three brokers, plain and SASL_SSL",
        "20 minutes",
        "after a change of sluice/proxy; ARGS: --brokers 3 --security ENDED, --direct, and those of pytest",
        """
        python -m tools.clients.build kafka-broker kafka-python-2 java-3.9 java-4 franz-go sarama kafkajs
        python -m tools.proxy.matrix "$@"
        """,
        needs="Java and Maven, and the toolchains of the languages; 100 MB from Maven Central, once",
    ),
    Campaign(
        "proxy-faults",
        "run the Python clients with every fault that a proxy supports, and compare with the table of faults",
        "3 minutes",
        "after a change of fault rules or sluice/proxy; ARGS: --upstream HOST:PORT of Apache Kafka, --case TITLE",
        """
        python -m tools.proxy.faults "$@"
        """,
    ),
    Campaign(
        "proxy-kills",
        "kill brokers of Apache Kafka behind a proxy, and the proxy, under clients, and check their histories",
        "10 minutes",
        "after a change of sluice/proxy; ARGS: --seed 1, --direct",
        """
        python -m tools.clients.build kafka-broker
        python -m tools.proxy.kills "$@"
        """,
        default="--kills 50 --proxy-kills 20",
        needs="Java and Maven; 50 MB from Maven Central, once",
    ),
    Campaign(
        "scenarios",
        "run all built-in scenarios with real clients",
        "2 minutes",
        "after a change of scenarios or faults",
        'python -m tools.scenarios "$@"',
    ),
    Campaign(
        "fuzz",
        "fuzz frames, records, the admin port and files, guided by coverage",
        "7 minutes, one per target",
        "after a change of a parser or decoder; ARGS: seconds per target",
        'python -m tools.fuzz all "$@"',
        default="60",
        needs="Linux",
        locks=("fuzz",),
    ),
    Campaign(
        "fuzz-frames",
        "send random frames to brokers of several releases, with and without security",
        "40 minutes",
        "after a change of request handling; ARGS: number of frames, and seed",
        'python -m tools.fuzz campaign frames "$@"',
        default="10000000 0",
    ),
    Campaign(
        "fuzz-upstream",
        "send random responses to a proxy, with and without journal, quotas and fault rules",
        "20 minutes",
        "after a change of sluice/proxy; ARGS: number of inputs, each with two responses on average, and seed",
        'python -m tools.fuzz campaign responses "$@"',
        default="600000 0",
    ),
    Campaign(
        "mutation",
        "check that the unit tests detect 90 % of random changes of the code",
        "an hour",
        "after larger changes of the packages in tools/mutation/mutants.py: add a test for each survivor, simplify"
        " the code, or find that the change has no effect",
        'python -m tools.mutation "$@"',
        default="--mutants 200 --seed 0",
        locks=("mutation",),
    ),
    Campaign(
        "fleet-models",
        "compare the simulation of fleets with real clients and a real broker, in real time, and maps with it",
        "an hour",
        "after a change of sluice/fleet, and with new versions of clients; ARGS: models java silent, broker, …",
        """
        pytest -m many_clients tests/property tests/docs/test_pages.py
        python -m tools.fleets "$@"
        """,
        needs="root or CAP_NET_RAW; for Java's clients, KAFKA_LIBS: folder of their jars",
    ),
    Campaign(
        "plans",
        "compare plans of logs recorded with and without quotas: 200 synthetic clients and 40 real ones",
        "7 minutes",
        "after a change of sluice/spark/plan or sluice/spark/charges",
        f"""
        pytest {PARALLEL} --plan-seeds 200 tests/property/test_throttled_demand.py
        python -m tools.plans "$@"
        """,
        needs="for Java's clients, KAFKA_LIBS: folder of their jars",
    ),
    # -- pages of the documentation --
    Campaign(
        "client-matrix",
        "run the client matrix and write docs/clients.md",
        "as clients",
        "before a release",
        f"""
        python -m tools.clients.build
        pytest {PARALLEL} --write-table tests/clients/test_matrix.py tests/clients/test_kafka_streams.py "$@"
        """,
        needs="as clients",
    ),
    Campaign(
        "fault-table",
        "run the Python clients with every fault and write docs/faults-clients.md",
        "minutes",
        "after a change of fault rules",
        f'pytest {PARALLEL} --write-fault-table tests/clients/test_faults.py -k react_as_expected "$@"',
    ),
    Campaign(
        "audit-matrix",
        "audit the installed clients, one after the other, and write docs/audit-matrix.md",
        "15 minutes",
        "before a release; ARGS: --subject aiokafka. For docs/audit, then run python -m tools.docs.pictures.audit"
        " build/audit",
        """
        sluice audit run --out build/audit "$@"
        python -m tools.docs.results.audit_matrix build/audit
        """,
        needs="for Java's client, Java, and 500 MB from PyPI",
        locks=("spark",),
    ),
    Campaign(
        "lint-matrix",
        "judge nine clients by sluice lint, with planted misconfigurations, remedies and defaults, and write"
        " docs/lint-matrix.md",
        "40 minutes",
        "after a change of sluice/lint; ARGS: plants --rule acks-zero --client java-4 --seeds 1, or defaults",
        """
        python -m tools.clients.build kafka-python-2 java-3.9 java-4 franz-go sarama kafkajs
        python -W ignore -m tools.lint "$@"
        """,
        default="all",
        needs="as clients",
    ),
    Campaign(
        "explore-own",
        "search applications with sluice.client for failures: groups, transactions and idempotence, 10,000 runs each",
        "hours; it continues where it was ended",
        "after a change of sluice/client, coordinators or sluice/explore; ARGS: --program eager --seeds 10 --runs 1000",
        'python -W ignore -m tools.explore.own_client "$@"',
    ),
    Campaign(
        "explore-history",
        "search old versions of aiokafka for their defects, with programs that know none, and the current version",
        "15 minutes",
        "after a change of sluice/explore; ARGS: --runs 150 --seeds 4 --version 0.7.2, or --repeat for what was found",
        'python -m tools.explore.history "$@"',
        needs="PyPI; 0.7.2 is built from source",
    ),
    Campaign(
        "ordered-scripts",
        "reproduce four bugs of applications with librdkafka and Java, 20 times each, by requests that are held",
        "10 minutes",
        "after a change of hold; ARGS: --runs 20 --script send --client java --proxy",
        """
        python -m tools.clients.build java-4
        python -m tools.ordered "$@"
        """,
        needs="Java and Maven",
    ),
    Campaign(
        "explore",
        "find each bug of examples/explore with 20 seeds, and run the fixed programs 5,000 times",
        "an hour",
        "after a change of sluice/explore; ARGS: --seeds 20 --runs 5000 --bug read_uncommitted-aiokafka --write",
        'python -m tools.explore "$@"',
    ),
    Campaign(
        "lint-audits",
        "audit clients in virtual time, and compare sluice lint of the same journals with the verdicts",
        "4 minutes",
        "after a change of sluice/lint/rules or sluice/audit/judge; ARGS: reports of other audits, such as build/audit",
        """
        sluice audit run --virtual --subject sluice --subject aiokafka --out build/lint-audits
        python -m tools.lint.audits build/lint-audits "$@"
        """,
    ),
    Campaign(
        "fleet-experiments",
        "repeat the experiments with fleets and write docs/fleets",
        "5 minutes",
        "after a change of sluice/fleet",
        "python -m tools.docs.results.fleet_experiments",
    ),
    # -- measurements --
    Campaign(
        "stalls",
        "measure for how long the largest requests of each API hold the event loop",
        "30 minutes",
        "after a change of long requests; ARGS: --api Fetch --size 10000000",
        'python -m bench.stalls "$@"',
    ),
    Campaign(
        "overload",
        "measure the memory and the latency of a new client beside clients that read nothing, idle or rush",
        "2 minutes",
        "after a change of limits, and with a new version of Python",
        "python -m bench.overload",
    ),
    Campaign(
        "growth",
        "measure CPU time and memory with many partitions, topics, groups, connections, quotas, rules, ACLs and events",
        "4 minutes",
        "after a change of what a request looks up, and before a release; ARGS: --only groups",
        'python -m bench.growth "$@"',
        needs="Linux; 20,000 open files",
    ),
    Campaign(
        "peers",
        "compare with Kafka, kfake and librdkafka's mock",
        "30 minutes",
        "after a change of the path of a request: put the output before and after into the commit message",
        """
        harness=${PEERS:-../shared/peers}
        test -x $harness/bench || { echo "peers: no harness at $harness; set PEERS to its folder"; exit 1; }
        test -x "${PEERS_WORK:-${TMPDIR:-/tmp}/peers}/bin/rkperf" ||
            $harness/setup kafka tools kfake librdkafka native
        $harness/bench run "$@" --target kafka --target kfake --target rdmock \\
            --target "sluice=$PWD/.venv/bin/sluice serve --port {port} --admin-port 0"
        """,
        default="--reps 7",
        needs="PEERS: folder of the harness",
    ),
    Campaign(
        "suite",
        "measure how long tests with four clients take: with sluice as a fixture and as a process, and with peers",
        "7 minutes",
        "after a change of what a client waits for; ARGS: --client java --tests 100 --repetitions 3",
        """
        harness=${PEERS:-../shared/peers}
        export PEERS_WORK="${PEERS_WORK:-${TMPDIR:-/tmp}/peers}"
        test -x $harness/bench || { echo "suite: no harness at $harness; set PEERS to its folder"; exit 1; }
        test -x "$PEERS_WORK/bin/kfake" || { echo "suite: no kfake; run tools/campaign run peers first"; exit 1; }
        python -m tools.clients.build java-4
        python -m bench.first_second "kfake=$PEERS_WORK/bin/kfake -port {port}"
        python -W ignore -m tools.suite "$@" "kfake=$PEERS_WORK/bin/kfake -port {port}" \\
            "rdmock!=$PEERS_WORK/venv/bin/python $harness/rdmock/rdmock.py" "kafka=$harness/kafka/start {port} {dir}"
        """,
        default="--tests 20",
        needs="PEERS: folder of the harness; Java and Maven",
    ),
    # -- packages --
    Campaign(
        "install",
        "install the wheel by name from a folder: first test, uvx, each extra, upgrade, downgrade, steps of the image",
        "5 minutes",
        "before a release, and after a change of dependencies; ARGS: names of steps",
        'python -m tools.install "$@"',
        needs="100 MB from PyPI",
    ),
    Campaign(
        "lowest",
        "run the unit tests with the lowest versions of packages that pyproject.toml allows",
        "5 minutes",
        "before a release, and after a change of dependencies; ARGS: those of pytest",
        'python -m tools.lowest "$@"',
        needs="100 MB from PyPI",
    ),
    Campaign(
        "zipapp",
        "build and check dist/sluice.pyz: sluice in one file for this platform and Python 3.11 to 3.14",
        "2 minutes",
        "before a release. The first start unpacks the packages below ~/.cache/pex",
        """
        rm -rf build/zipapp
        mkdir -p dist
        python -m hatchling build -t wheel -d build/zipapp
        case $(uname -s) in Darwin) system=macosx_11_0 ;; *) system=manylinux_2_28 ;; esac
        pex $(for minor in 11 12 13 14; do echo --platform ${system}_$(uname -m)-cp-3.$minor.0-cp3$minor; done) \\
            --constraints requirements/zipapp.lock --script sluice --python-shebang '/usr/bin/env python3' \\
            --output-file dist/sluice.pyz build/zipapp/*.whl
        pytest -rs --zipapp dist/sluice.pyz tests/integration/sluice/test_zipapp.py
        """,
        locks=("zipapp",),
    ),
)
CAMPAIGNS = {campaign.name: campaign for campaign in TABLE}


@click.group()
def main() -> None:
    """List or run the checks and experiments that make test leaves out."""


@main.command("list")
def list_() -> None:
    """Show what each campaign does, when to run it, how long it takes on two cores, and what it needs."""
    for each in TABLE:
        click.echo(f"{each.name}{f' [{each.default}]' if each.default else ''}: {each.what}")
        click.echo(f"    {each.takes}; {each.when}")
        if each.needs:
            click.echo(f"    needs {each.needs}")


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("name", type=click.Choice(tuple(CAMPAIGNS)), metavar="NAME")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
def run(name: str, arguments: tuple[str, ...]) -> None:
    """Run a campaign; ARGS replace the arguments that `list` shows in brackets."""
    campaign = CAMPAIGNS[name]
    for lock in campaign.locks:
        install(lock)
    script = dedent(campaign.commands).strip()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [shutil.which("sh") or "sh", "-euxc", script, name, *(arguments or campaign.default.split())]
    sys.exit(subprocess.run(command, cwd=ROOT, env=os.environ | {"PATH": path}, check=False).returncode)


if __name__ == "__main__":
    main(prog_name="tools/campaign")
