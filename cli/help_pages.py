"""What `--help` tells of each command after its options: examples, exit codes, environment."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import click

_EXITS = {
    0: "All went well.",
    1: "It could not be done; one line on stderr says why.",
    2: "Wrong usage; one line on stderr says what is accepted.",
}


class Page(NamedTuple):
    """Of one command: examples with what they do; exit codes that mean something else than usual; environment."""

    examples: Sequence[tuple[str, str]]
    exits: Mapping[int, str] = MappingProxyType({})
    environment: Mapping[str, str] = MappingProxyType({})


_OF_PROPERTIES = {
    "KAFKA_*": "Properties, as the image of Apache Kafka takes them: KAFKA_NUM_PARTITIONS is num.partitions.",
}

PAGES = {
    "": Page(
        (
            ("sluice serve", "A broker on 127.0.0.1:9092."),
            ("sluice demo", "Half a minute of throttled clients."),
            ("sluice quota set --client shop producer_byte_rate=100k", "Lets a client send 100 kB a second."),
            ("sluice top", "What clients do, and how they wait, as it happens."),
        ),
    ),
    "serve": Page(
        (
            ("sluice serve --brokers 3", "A cluster of three, on ports 9092 to 9094."),
            ("sluice serve --port 0 --admin-port 0", "On free ports; the line that it prints says which."),
            ("sluice serve --override quota.producer.default=1M", "With a quota for every client id."),
            ("sluice serve --as kafka-2.8 --data-dir /tmp/kafka", "As an older release, with topics that stay."),
        ),
        {0: "It was stopped by SIGINT or SIGTERM.", 1: "It could not start: a port in use, say."},
        _OF_PROPERTIES,
    ),
    "demo": Page(
        (("sluice demo --seconds 60", "A minute of it."), ("sluice demo --json > demo.json", "The summary alone.")),
        {0: "All clients got their quotas.", 1: "One did not, or could not be run."},
    ),
    "config": Page((("sluice config list", "Every property."),)),
    "config list": Page(
        (
            ("sluice config list --config server.properties", "What would hold with this file."),
            ("sluice config list --json", "All that is known of each property."),
        ),
        environment=_OF_PROPERTIES,
    ),
    "protocol": Page((("sluice protocol show Fetch 13", "How a request and its answer are read and written."),)),
    "protocol show": Page(
        (
            ("sluice protocol show Fetch 13", "A request and its answer."),
            ("sluice protocol show RequestHeader 2", "One message."),
        ),
    ),
    "healthcheck": Page(
        (("sluice healthcheck --admin http://broker:9644", "Of a broker elsewhere."),),
        {0: "The broker is well.", 1: "It is not, or does not answer."},
    ),
    "journal": Page((("sluice journal tail --follow", "What happens, as it happens."),)),
    "journal tail": Page(
        (
            ("sluice journal tail --last 50 --client-id shop", "The last 50 events of a client."),
            ("sluice journal tail --follow --kind throttle", "Each throttle, as it happens."),
            ("sluice journal tail --api Produce --json", "As JSON, an event a line."),
        ),
    ),
    "journal export": Page(
        (
            ("sluice journal export events.ndjson", "All that is kept, an event a line."),
            ("sluice journal export events.parquet --api Produce", "For pandas or Spark."),
        ),
    ),
    "quota": Page((("sluice quota list", "All that are set."),)),
    "quota list": Page(
        (
            ("sluice quota list", "All that are set."),
            ("sluice quota list --client shop --json", "Those of one client id."),
        ),
    ),
    "quota set": Page(
        (
            ("sluice quota set --client shop producer_byte_rate=100k", "Lets a client id send 100 kB a second."),
            ("sluice quota set --client-default consumer_byte_rate=2M", "Of all client ids without their own."),
            ("sluice quota set --user alice request_percentage=50", "Half of a thread's time for a user."),
        ),
    ),
    "quota delete": Page((("sluice quota delete --client shop producer_byte_rate", "No longer limits a client id."),)),
    "quota explain": Page(
        (
            ("sluice quota explain shop", "Why the client shop waits."),
            ("sluice quota explain shop --user alice --json", "Of the user alice, as JSON."),
        ),
    ),
    "explain": Page((("sluice explain shop", "Why the client shop waits."),)),
    "pipeline": Page((("sluice pipeline plan --help", "What a job takes."),)),
    "pipeline plan": Page(
        (
            ("sluice pipeline plan events.ndjson --output plan --engine here", "Without Spark."),
            ("sluice pipeline plan logs/ --output plan --quota 1M --quota 2M", "From a folder; tries two quotas."),
        ),
    ),
    "pipeline backoff": Page(
        (
            ("sluice pipeline backoff --once --output verdicts", "What was until now, as Parquet too."),
            ("sluice pipeline backoff events.ndjson --output verdicts", "From a journal's export."),
            ("sluice pipeline backoff --setting retry.backoff.ms=200", "Clients that are configured so."),
        ),
    ),
    "pipeline throttle": Page(
        (
            ("sluice pipeline throttle --once", "What was until now."),
            ("sluice pipeline throttle --window 1m --output windows", "Goes on, and keeps what it has found."),
        ),
    ),
    "faults": Page((("sluice faults add action=close api=Produce times=3", "Closes three connections."),)),
    "faults add": Page(
        (
            ("sluice faults add action=error code=NOT_LEADER_OR_FOLLOWER api=Produce times=3", "Three errors."),
            ("sluice faults add action=delay ms=200 client_id=shop", "Makes one client wait."),
            ("sluice faults add --file faults.toml", "Several rules at once."),
        ),
    ),
    "faults list": Page((("sluice faults list", "All rules, and what they have hit."),)),
    "faults remove": Page(
        (("sluice faults remove fault-1", "One rule."), ("sluice faults remove --all", "All rules.")),
    ),
    "faults schema": Page((("sluice faults schema > fault.schema.json", "For an editor."),)),
    "run": Page(
        (
            ("sluice run rolling-restart", "On brokers of its own, which end with it."),
            ("sluice run my.toml --against http://127.0.0.1:9644", "On a broker that runs."),
        ),
        {1: "It could not run, or a step of it could not be done."},
    ),
    "scenario": Page((("sluice scenario list", "Those that come with sluice."),)),
    "scenario list": Page((("sluice scenario list --json", "With how long each takes, in ms."),)),
    "scenario run": Page(
        (("sluice scenario run rolling-restart", "The same as sluice run rolling-restart."),),
        {1: "It could not run, or a step of it could not be done."},
    ),
    "scenario show": Page((("sluice scenario show throttle-storm > my.toml", "A file to begin one's own with."),)),
    "scenario schema": Page((("sluice scenario schema > scenario.schema.json", "For an editor."),)),
    "audit": Page((("sluice audit run --subject aiokafka", "Measures one client, for five minutes and a half."),)),
    "audit run": Page(
        (
            ("sluice audit run --subject sluice --virtual", "Our own client, in virtual time."),
            ('sluice audit run --subject "./app --bootstrap {bootstrap}"', "An application, from outside."),
            ("sluice audit run --probe KIP-144 --fail-on violates", "Reconnects alone; for CI."),
        ),
        {0: "It was measured.", 1: "A client could not be run, or --fail-on says that it failed."},
    ),
    "audit list": Page(
        (
            ("sluice audit list subjects", "The clients that can be audited here, with their versions."),
            ("sluice audit list probes --json", "The ways to fail, and what each is to show."),
        ),
    ),
    "audit compare": Page(
        (("sluice audit compare before/ after/ --fail-on-worse", "What a change of a client did."),),
        {1: "A report could not be read, or --fail-on-worse says that it failed."},
    ),
    "audit schema": Page((("sluice audit schema > audit.schema.json", "For what reads report.json."),)),
    "completion": Page(
        (
            ('eval "$(sluice completion bash)"', "In ~/.bashrc, or in this shell alone."),
            ('eval "$(sluice completion zsh)"', "In ~/.zshrc."),
            ("sluice completion fish > ~/.config/fish/completions/sluice.fish", "Once."),
        ),
    ),
    "top": Page(
        (
            ("sluice top", "Of the broker on this machine."),
            ("sluice top --sort throttled --filter shop", "One client, or all whose ids have that in them."),
            ("sluice top --once --json", "One look, for a program."),
        ),
    ),
}


def write_page(command: click.Command, path: str, formatter: click.HelpFormatter) -> None:
    """Writes what there is to tell of a command."""
    page = PAGES[path]
    with formatter.section("Examples"):
        for line, what in page.examples:
            formatter.write(f"{'':{formatter.current_indent}}{line}\n{'':{formatter.current_indent}}    {what}\n")
    if isinstance(command, click.Group):
        return
    with formatter.section("Exit codes"):
        formatter.write_dl([(str(code), what) for code, what in {**_EXITS, **page.exits}.items()])
    environment = {**{name: f"The same as {option}." for name, option in _variables(command)}, **page.environment}
    if environment:
        with formatter.section("Environment"):
            formatter.write_dl(list(environment.items()))


def _variables(command: click.Command) -> list[tuple[str, str]]:
    return [(str(param.envvar), param.opts[0]) for param in command.params if param.envvar]
