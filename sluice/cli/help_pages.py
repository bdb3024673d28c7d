"""The part of each command's `--help` after its options: examples, exit codes and environment."""

import click

_EXITS = {
    0: "Success.",
    1: "Failure; stderr has the reason in one line.",
    2: "Wrong usage; stderr has the accepted values in one line.",
}
_OF_BROKERS = {0: "Stopped by SIGINT or SIGTERM.", 1: "Failed to start, for example because a port is in use."}
# Exit codes with a special meaning.
EXITS: dict[str, dict[int, str]] = {
    "serve": _OF_BROKERS,
    "proxy": _OF_BROKERS,
    "demo": {0: "All clients reached their quotas.", 1: "A client missed its quota or could not be run."},
    "healthcheck": {0: "The broker is healthy.", 1: "The broker is unhealthy or does not respond."},
    "lint": {0: "No finding is at least as severe as --fail-on.", 1: "A finding is, or SOURCE could not be read."},
    "explore": {0: "No failure was found.", 1: "A failure was found, or the test sends no request."},
    "run": {1: "The scenario could not run, or a step failed."},
    "scenario run": {1: "The scenario could not run, or a step failed."},
    "fleet run": {1: "The scenario or the fleet cannot be simulated, or the memory does not suffice."},
    "audit run": {
        0: "The clients were measured.",
        1: "A client could not be run, or failed the criteria of --fail-on.",
    },
    "audit compare": {1: "A report could not be read, or something is worse with --fail-on-worse."},
    "audit judge": {1: "The report or its observations could not be read."},
    "audit journal": {1: "The report or its observations could not be read, or FILE not written."},
}
_OF_PROPERTIES = {"KAFKA_*": "Properties, as in the Apache Kafka image: KAFKA_NUM_PARTITIONS is num.partitions."}
_WITH_PROPERTIES = ("serve", "proxy", "config list")

# Commands and their descriptions.
EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "": (
        ("sluice serve", "Run a broker on 127.0.0.1:9092."),
        ("sluice demo", "Run four throttled clients for half a minute."),
        ("sluice quota set --client shop producer_byte_rate=100k", "Limit a client to 100 kB/s."),
        ("sluice top", "Show live client activity and throttling."),
    ),
    "serve": (
        ("sluice serve --brokers 3", "Run three brokers on ports 9092 to 9094."),
        ("sluice serve --port 0 --admin-port 0", "Use free ports, printed in the ready line."),
        ("sluice serve --override quota.producer.default=1M", "Set a quota for every client id."),
        ("sluice serve --as kafka-2.8 --data-dir /tmp/kafka", "Act as Kafka 2.8, with topics on disk."),
    ),
    "proxy": (
        ("sluice proxy --upstream 127.0.0.1:9092", "Put a proxy in front of a cluster; broker 1 gets port 19093."),
        ("sluice proxy --upstream k:9093 --upstream-config client.properties", "Connect by TLS or SASL."),
    ),
    "demo": (
        ("sluice demo --seconds 60", "Run for a minute."),
        ("sluice demo --json > demo.json", "Save the summary."),
    ),
    "config": (("sluice config list", "List every property."),),
    "config list": (
        ("sluice config list --config server.properties", "Show the effective configuration with this file."),
        ("sluice config list --json", "Print all details of each property."),
    ),
    "protocol": (("sluice protocol show Fetch 13", "Show how a request and its response are coded."),),
    "protocol show": (
        ("sluice protocol show Fetch 13", "Show a request and its response."),
        ("sluice protocol show RequestHeader 2", "Show one message."),
    ),
    "healthcheck": (("sluice healthcheck --admin http://broker:9644", "Check a remote broker."),),
    "journal": (("sluice journal tail --follow", "Print events as they happen."),),
    "journal tail": (
        ("sluice journal tail --last 50 --client-id shop", "Print the last 50 events of a client."),
        ("sluice journal tail --follow --kind throttle", "Print each throttle as it happens."),
        ("sluice journal tail --api Produce --json", "Print one JSON object per event."),
    ),
    "journal export": (
        ("sluice journal export events.ndjson", "Save all kept events, one per line."),
        ("sluice journal export events.parquet --api Produce", "Save events for pandas or Spark."),
    ),
    "lint": (
        ("sluice lint events.ndjson --settings", "Judge an export, and show the settings of the clients."),
        ("sluice lint http://127.0.0.1:9644 --fail-on warning", "Judge the events that a broker keeps, for CI."),
        ("sluice lint events.ndjson --sarif lint.sarif --sarif-location client.properties", "Write SARIF."),
        ("sluice lint --explain no-client-id", "Show a rule with its reason and remedy."),
    ),
    "explore": (
        ("sluice explore test_orders.py::test_orders", "Explore a test with the fixture kafka_run."),
        ("sluice explore test_orders.py::test_orders --runs 5000 --jobs 8", "Search longer, on eight cores."),
        ("sluice explore test_orders.py::test_orders --write-test test_found.py", "Write a test of what is found."),
        ("sluice explore test_orders.py::test_orders --spark --master spark://host:7077", "Explore on a cluster."),
    ),
    "trace": (
        ("sluice trace http://127.0.0.1:9644 -o run.html", "Write what a running broker recorded, as one HTML file."),
        ("sluice trace failed.ndjson --compare passed.ndjson -o run.html", "Show two runs side by side."),
        ("sluice trace run.ndjson --perfetto run.json", "Write a trace that ui.perfetto.dev opens."),
    ),
    "quota": (("sluice quota list", "List all quotas."),),
    "quota list": (
        ("sluice quota list", "List all quotas."),
        ("sluice quota list --client shop --json", "List the quotas of one client id."),
    ),
    "quota set": (
        ("sluice quota set --client shop producer_byte_rate=100k", "Limit a client id to 100 kB/s."),
        ("sluice quota set --client-default consumer_byte_rate=2M", "Limit client ids without their own quota."),
        ("sluice quota set --user alice request_percentage=50", "Limit a user to half of a thread's time."),
    ),
    "quota delete": (("sluice quota delete --client shop producer_byte_rate", "Remove a limit."),),
    "quota explain": (
        ("sluice quota explain shop", "Explain why client shop is throttled."),
        ("sluice quota explain shop --user alice --json", "Explain it for user alice, as JSON."),
    ),
    "explain": (("sluice explain shop", "Explain why client shop is throttled."),),
    "pipeline": (("sluice pipeline plan --help", "Show the options of a job."),),
    "pipeline fleet": (
        ("sluice pipeline fleet --fleet kafka-4.4:100000 --seeds 100 --out map", "Run 900 simulations on all cores."),
    ),
    "pipeline lint": (
        ("sluice pipeline lint events.ndjson --output lint", "Judge the clients of one journal on all cores."),
        ("sluice pipeline lint east/ west/ --output lint", "Judge those of two clusters, each with a folder."),
    ),
    "pipeline plan": (
        ("sluice pipeline plan events.ndjson --output plan", "Read an export of the journal."),
        ("sluice pipeline plan logs/ --output plan --quota 1M --quota 2M", "Read a folder and try two quotas."),
    ),
    "pipeline backoff": (
        ("sluice pipeline backoff --once --output verdicts", "Process all events so far, and save Parquet."),
        ("sluice pipeline backoff events.ndjson --output verdicts", "Read an export of the journal."),
        ("sluice pipeline backoff --setting retry.backoff.ms=200", "Judge clients with this configuration."),
    ),
    "pipeline throttle": (
        ("sluice pipeline throttle --once", "Process all events so far."),
        ("sluice pipeline throttle --window 1m --output windows", "Run until interrupted, and save the results."),
    ),
    "faults": (("sluice faults add action=close api=Produce times=3", "Close three connections."),),
    "faults add": (
        ("sluice faults add action=error code=NOT_LEADER_OR_FOLLOWER api=Produce times=3", "Return three errors."),
        ("sluice faults add action=delay ms=200 client_id=shop", "Delay one client."),
        ("sluice faults add --file faults.toml", "Add several rules."),
    ),
    "faults list": (("sluice faults list", "List all rules and their hits."),),
    "faults remove": (
        ("sluice faults remove fault-1", "Remove one rule."),
        ("sluice faults remove --all", "Remove all rules."),
    ),
    "faults release": (("sluice faults release fault-1 --count 1", "Let the oldest held request continue."),),
    "faults schema": (("sluice faults schema > fault.schema.json", "Save the schema for an editor."),),
    "run": (
        ("sluice run rolling-restart", "Run on a new cluster, which stops at the end."),
        ("sluice run my.toml --against http://127.0.0.1:9644", "Run on a running cluster."),
    ),
    "scenario": (("sluice scenario list", "List the built-in scenarios."),),
    "scenario list": (("sluice scenario list --json", "Include durations in ms."),),
    "scenario run": (("sluice scenario run rolling-restart", "Same as sluice run rolling-restart."),),
    "scenario show": (("sluice scenario show throttle-storm > my.toml", "Save a template for a new scenario."),),
    "scenario schema": (("sluice scenario schema > scenario.schema.json", "Save the schema for an editor."),),
    "fleet": (("sluice fleet run rolling-restart --fleet kafka-4.4:10000", "Simulate 10,000 producers."),),
    "fleet run": (
        ("sluice fleet run outage.toml --fleet kafka-4.4:6000,kip-580-before:4000", "Simulate a mix of clients."),
        ("sluice fleet run outage.toml --fleet kafka-4.4:1000 --set loop=closed", "Wait for each result to send on."),
        ("sluice fleet run outage.toml --fleet kafka-4.4:100000 --out new", "Save the report and the results."),
    ),
    "fleet compare": (("sluice fleet compare old new --out both", "Compare two results."),),
    "fleet sweep": (
        ("sluice fleet sweep --fleet kafka-4.4:10000 --fleet kip-580-before:10000 --out map", "Map two policies."),
    ),
    "fleet map": (
        ("sluice fleet map --fleet java:3000 --capacity 5000", "Map the load and the request timeout."),
        (
            "sluice fleet map --fleet java:3000 --x load=0.2:0.9 --y outage=1:60 --capacity 5000 --out map",
            "Map the load and the length of the outage.",
        ),
    ),
    "fleet advise": (
        ("sluice fleet advise outage.toml --fleet kafka-4.4:10000", "Recommend backoffs for 10,000 producers."),
    ),
    "audit": (("sluice audit run --subject aiokafka", "Measure one client for five and a half minutes."),),
    "audit run": (
        ("sluice audit run --subject sluice --virtual", "Measure sluice's own client in virtual time."),
        ('sluice audit run --subject "./app --bootstrap {bootstrap}"', "Measure an application as a black box."),
        ("sluice audit run --probe KIP-144 --fail-on violates", "Check only reconnects, for CI."),
    ),
    "audit list": (
        ("sluice audit list subjects", "List the available clients with their versions."),
        ("sluice audit list probes --json", "List the failures and the statements that each tests."),
    ),
    "audit compare": (
        ("sluice audit compare before/ after/ --fail-on-worse", "Show the effect of a change to a client."),
    ),
    "audit judge": (
        ("sluice audit judge audit-report --setting retry.backoff.ms=100", "Judge with a setting, measuring nothing."),
    ),
    "audit journal": (
        ("sluice audit journal audit-report run.ndjson --subject aiokafka --probe connection-storm", "Write one run."),
        ("sluice trace run.ndjson -o run.html", "Show it as a trace."),
    ),
    "audit schema": (("sluice audit schema > audit.schema.json", "Save the schema of report.json."),),
    "completion": (
        ('eval "$(sluice completion bash)"', "Enable completion in this shell, or in ~/.bashrc."),
        ('eval "$(sluice completion zsh)"', "Enable completion in ~/.zshrc."),
        ("sluice completion fish > ~/.config/fish/completions/sluice.fish", "Install completion permanently."),
    ),
    "top": (
        ("sluice top", "Watch the local broker."),
        ("sluice top --sort throttled --filter shop", "Show clients whose id or user contains shop."),
        ("sluice top --once --json", "Print one snapshot for a program."),
    ),
}


def write_page(command: click.Command, path: str, formatter: click.HelpFormatter) -> None:
    with formatter.section("Examples"):
        for line, what in EXAMPLES[path]:
            formatter.write(f"{'':{formatter.current_indent}}{line}\n{'':{formatter.current_indent}}    {what}\n")
    if isinstance(command, click.Group):
        return
    with formatter.section("Exit codes"):
        formatter.write_dl([(str(code), what) for code, what in (_EXITS | EXITS.get(path, {})).items()])
    environment = {str(param.envvar): f"Same as {param.opts[0]}." for param in command.params if param.envvar}
    environment |= _OF_PROPERTIES if path in _WITH_PROPERTIES else {}
    if environment:
        with formatter.section("Environment"):
            formatter.write_dl(list(environment.items()))
