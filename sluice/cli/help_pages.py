"""The part of each command's `--help` after its options."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import click

_EXITS = {
    0: "Success.",
    1: "Failure; stderr has the reason in one line.",
    2: "Wrong usage; stderr has the accepted values in one line.",
}


class Page(NamedTuple):
    """A command's examples with descriptions, exit codes with a special meaning, and environment."""

    examples: Sequence[tuple[str, str]]
    exits: Mapping[int, str] = MappingProxyType({})
    environment: Mapping[str, str] = MappingProxyType({})


_OF_PROPERTIES = {
    "KAFKA_*": "Properties, as in the Apache Kafka image: KAFKA_NUM_PARTITIONS is num.partitions.",
}

PAGES = {
    "": Page(
        (
            ("sluice serve", "Run a broker on 127.0.0.1:9092."),
            ("sluice demo", "Run four throttled clients for half a minute."),
            ("sluice quota set --client shop producer_byte_rate=100k", "Limit a client to 100 kB/s."),
            ("sluice top", "Show live client activity and throttling."),
        ),
    ),
    "serve": Page(
        (
            ("sluice serve --brokers 3", "Run three brokers on ports 9092 to 9094."),
            ("sluice serve --port 0 --admin-port 0", "Use free ports, printed in the ready line."),
            ("sluice serve --override quota.producer.default=1M", "Set a quota for every client id."),
            ("sluice serve --as kafka-2.8 --data-dir /tmp/kafka", "Act as Kafka 2.8, with topics on disk."),
        ),
        {0: "Stopped by SIGINT or SIGTERM.", 1: "Failed to start, for example because a port is in use."},
        _OF_PROPERTIES,
    ),
    "proxy": Page(
        (
            ("sluice proxy --upstream 127.0.0.1:9092", "Put a proxy in front of a cluster; broker 1 gets port 19093."),
            ("sluice proxy --upstream k:9093 --upstream-config client.properties", "Connect by TLS or SASL."),
        ),
        {0: "Stopped by SIGINT or SIGTERM.", 1: "Failed to start, for example because a port is in use."},
        _OF_PROPERTIES,
    ),
    "demo": Page(
        (("sluice demo --seconds 60", "Run for a minute."), ("sluice demo --json > demo.json", "Save the summary.")),
        {0: "All clients reached their quotas.", 1: "A client missed its quota or could not be run."},
    ),
    "config": Page((("sluice config list", "List every property."),)),
    "config list": Page(
        (
            ("sluice config list --config server.properties", "Show the effective configuration with this file."),
            ("sluice config list --json", "Print all details of each property."),
        ),
        environment=_OF_PROPERTIES,
    ),
    "protocol": Page((("sluice protocol show Fetch 13", "Show how a request and its response are coded."),)),
    "protocol show": Page(
        (
            ("sluice protocol show Fetch 13", "Show a request and its response."),
            ("sluice protocol show RequestHeader 2", "Show one message."),
        ),
    ),
    "healthcheck": Page(
        (("sluice healthcheck --admin http://broker:9644", "Check a remote broker."),),
        {0: "The broker is healthy.", 1: "The broker is unhealthy or does not respond."},
    ),
    "journal": Page((("sluice journal tail --follow", "Print events as they happen."),)),
    "journal tail": Page(
        (
            ("sluice journal tail --last 50 --client-id shop", "Print the last 50 events of a client."),
            ("sluice journal tail --follow --kind throttle", "Print each throttle as it happens."),
            ("sluice journal tail --api Produce --json", "Print one JSON object per event."),
        ),
    ),
    "journal export": Page(
        (
            ("sluice journal export events.ndjson", "Save all kept events, one per line."),
            ("sluice journal export events.parquet --api Produce", "Save events for pandas or Spark."),
        ),
    ),
    "lint": Page(
        (
            ("sluice lint events.ndjson --settings", "Judge an export, and show the settings of the clients."),
            ("sluice lint http://127.0.0.1:9644 --fail-on warning", "Judge the events that a broker keeps, for CI."),
            ("sluice lint events.ndjson --sarif lint.sarif --sarif-location client.properties", "Write SARIF."),
            ("sluice lint --explain no-client-id", "Show a rule with its reason and remedy."),
        ),
        {0: "No finding is at least as severe as --fail-on.", 1: "A finding is, or SOURCE could not be read."},
    ),
    "explore": Page(
        (
            ("sluice explore test_orders.py::test_orders", "Explore a test with the fixture kafka_run."),
            ("sluice explore test_orders.py::test_orders --runs 5000 --jobs 8", "Search longer, on eight cores."),
            ("sluice explore test_orders.py::test_orders --write-test test_found.py", "Write a test of what is found."),
            ("sluice explore test_orders.py::test_orders --spark --master spark://host:7077", "Explore on a cluster."),
        ),
        {0: "No failure was found.", 1: "A failure was found, or the test sends no request."},
    ),
    "trace": Page(
        (
            (
                "sluice trace http://127.0.0.1:9644 -o run.html",
                "Write what a running broker recorded, as one HTML file.",
            ),
            ("sluice trace failed.ndjson --compare passed.ndjson -o run.html", "Show two runs side by side."),
            ("sluice trace run.ndjson --perfetto run.json", "Write a trace that ui.perfetto.dev opens."),
        ),
    ),
    "quota": Page((("sluice quota list", "List all quotas."),)),
    "quota list": Page(
        (
            ("sluice quota list", "List all quotas."),
            ("sluice quota list --client shop --json", "List the quotas of one client id."),
        ),
    ),
    "quota set": Page(
        (
            ("sluice quota set --client shop producer_byte_rate=100k", "Limit a client id to 100 kB/s."),
            ("sluice quota set --client-default consumer_byte_rate=2M", "Limit client ids without their own quota."),
            ("sluice quota set --user alice request_percentage=50", "Limit a user to half of a thread's time."),
        ),
    ),
    "quota delete": Page((("sluice quota delete --client shop producer_byte_rate", "Remove a limit."),)),
    "quota explain": Page(
        (
            ("sluice quota explain shop", "Explain why client shop is throttled."),
            ("sluice quota explain shop --user alice --json", "Explain it for user alice, as JSON."),
        ),
    ),
    "explain": Page((("sluice explain shop", "Explain why client shop is throttled."),)),
    "pipeline": Page((("sluice pipeline plan --help", "Show the options of a job."),)),
    "pipeline fleet": Page(
        (("sluice pipeline fleet --fleet kafka-4.4:100000 --seeds 100 --out map", "Run 900 simulations on all cores."),)
    ),
    "pipeline lint": Page(
        (
            ("sluice pipeline lint events.ndjson --output lint", "Judge the clients of one journal on all cores."),
            ("sluice pipeline lint east/ west/ --output lint", "Judge those of two clusters, each with a folder."),
        ),
    ),
    "pipeline plan": Page(
        (
            ("sluice pipeline plan events.ndjson --output plan", "Read an export of the journal."),
            ("sluice pipeline plan logs/ --output plan --quota 1M --quota 2M", "Read a folder and try two quotas."),
        ),
    ),
    "pipeline backoff": Page(
        (
            ("sluice pipeline backoff --once --output verdicts", "Process all events so far, and save Parquet."),
            ("sluice pipeline backoff events.ndjson --output verdicts", "Read an export of the journal."),
            ("sluice pipeline backoff --setting retry.backoff.ms=200", "Judge clients with this configuration."),
        ),
    ),
    "pipeline throttle": Page(
        (
            ("sluice pipeline throttle --once", "Process all events so far."),
            ("sluice pipeline throttle --window 1m --output windows", "Run until interrupted, and save the results."),
        ),
    ),
    "faults": Page((("sluice faults add action=close api=Produce times=3", "Close three connections."),)),
    "faults add": Page(
        (
            ("sluice faults add action=error code=NOT_LEADER_OR_FOLLOWER api=Produce times=3", "Return three errors."),
            ("sluice faults add action=delay ms=200 client_id=shop", "Delay one client."),
            ("sluice faults add --file faults.toml", "Add several rules."),
        ),
    ),
    "faults list": Page((("sluice faults list", "List all rules and their hits."),)),
    "faults remove": Page(
        (("sluice faults remove fault-1", "Remove one rule."), ("sluice faults remove --all", "Remove all rules.")),
    ),
    "faults release": Page((("sluice faults release fault-1 --count 1", "Let the oldest held request continue."),)),
    "faults schema": Page((("sluice faults schema > fault.schema.json", "Save the schema for an editor."),)),
    "run": Page(
        (
            ("sluice run rolling-restart", "Run on a new cluster, which stops at the end."),
            ("sluice run my.toml --against http://127.0.0.1:9644", "Run on a running cluster."),
        ),
        {1: "The scenario could not run, or a step failed."},
    ),
    "scenario": Page((("sluice scenario list", "List the built-in scenarios."),)),
    "scenario list": Page((("sluice scenario list --json", "Include durations in ms."),)),
    "scenario run": Page(
        (("sluice scenario run rolling-restart", "Same as sluice run rolling-restart."),),
        {1: "The scenario could not run, or a step failed."},
    ),
    "scenario show": Page((("sluice scenario show throttle-storm > my.toml", "Save a template for a new scenario."),)),
    "scenario schema": Page((("sluice scenario schema > scenario.schema.json", "Save the schema for an editor."),)),
    "fleet": Page((("sluice fleet run rolling-restart --fleet kafka-4.4:10000", "Simulate 10,000 producers."),)),
    "fleet run": Page(
        (
            ("sluice fleet run outage.toml --fleet kafka-4.4:6000,kip-580-before:4000", "Simulate a mix of clients."),
            (
                "sluice fleet run outage.toml --fleet kafka-4.4:1000 --set loop=closed",
                "Wait for each result to send on.",
            ),
            ("sluice fleet run outage.toml --fleet kafka-4.4:100000 --out new", "Save the report and the results."),
        ),
        {1: "The scenario or the fleet cannot be simulated, or the memory does not suffice."},
    ),
    "fleet compare": Page((("sluice fleet compare old new --out both", "Compare two results."),)),
    "fleet sweep": Page(
        (("sluice fleet sweep --fleet kafka-4.4:10000 --fleet kip-580-before:10000 --out map", "Map two policies."),)
    ),
    "fleet map": Page(
        (
            ("sluice fleet map --fleet java:3000 --capacity 5000", "Map the load and the request timeout."),
            (
                "sluice fleet map --fleet java:3000 --x load=0.2:0.9 --y outage=1:60 --capacity 5000 --out map",
                "Map the load and the length of the outage.",
            ),
        )
    ),
    "fleet advise": Page(
        (("sluice fleet advise outage.toml --fleet kafka-4.4:10000", "Recommend backoffs for 10,000 producers."),)
    ),
    "audit": Page((("sluice audit run --subject aiokafka", "Measure one client for five and a half minutes."),)),
    "audit run": Page(
        (
            ("sluice audit run --subject sluice --virtual", "Measure sluice's own client in virtual time."),
            ('sluice audit run --subject "./app --bootstrap {bootstrap}"', "Measure an application as a black box."),
            ("sluice audit run --probe KIP-144 --fail-on violates", "Check only reconnects, for CI."),
        ),
        {0: "The clients were measured.", 1: "A client could not be run, or failed the criteria of --fail-on."},
    ),
    "audit list": Page(
        (
            ("sluice audit list subjects", "List the available clients with their versions."),
            ("sluice audit list probes --json", "List the failures and the statements that each tests."),
        ),
    ),
    "audit compare": Page(
        (("sluice audit compare before/ after/ --fail-on-worse", "Show the effect of a change to a client."),),
        {1: "A report could not be read, or something is worse with --fail-on-worse."},
    ),
    "audit judge": Page(
        (
            (
                "sluice audit judge audit-report --setting retry.backoff.ms=100",
                "Judge with a setting, measuring nothing.",
            ),
        ),
        {1: "The report or its observations could not be read."},
    ),
    "audit journal": Page(
        (
            (
                "sluice audit journal audit-report run.ndjson --subject aiokafka --probe connection-storm",
                "Write one run.",
            ),
            ("sluice trace run.ndjson -o run.html", "Show it as a trace."),
        ),
        {1: "The report or its observations could not be read, or FILE not written."},
    ),
    "audit schema": Page((("sluice audit schema > audit.schema.json", "Save the schema of report.json."),)),
    "completion": Page(
        (
            ('eval "$(sluice completion bash)"', "Enable completion in this shell, or in ~/.bashrc."),
            ('eval "$(sluice completion zsh)"', "Enable completion in ~/.zshrc."),
            ("sluice completion fish > ~/.config/fish/completions/sluice.fish", "Install completion permanently."),
        ),
    ),
    "top": Page(
        (
            ("sluice top", "Watch the local broker."),
            ("sluice top --sort throttled --filter shop", "Show clients whose id or user contains shop."),
            ("sluice top --once --json", "Print one snapshot for a program."),
        ),
    ),
}


def write_page(command: click.Command, path: str, formatter: click.HelpFormatter) -> None:
    page = PAGES[path]
    with formatter.section("Examples"):
        for line, what in page.examples:
            formatter.write(f"{'':{formatter.current_indent}}{line}\n{'':{formatter.current_indent}}    {what}\n")
    if isinstance(command, click.Group):
        return
    with formatter.section("Exit codes"):
        formatter.write_dl([(str(code), what) for code, what in {**_EXITS, **page.exits}.items()])
    environment = {**{name: f"Same as {option}." for name, option in _variables(command)}, **page.environment}
    if environment:
        with formatter.section("Environment"):
            formatter.write_dl(list(environment.items()))


def _variables(command: click.Command) -> list[tuple[str, str]]:
    return [(str(param.envvar), param.opts[0]) for param in command.params if param.envvar]
