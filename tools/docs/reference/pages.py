"""The reference pages of the site, generated from the code: properties, metrics, fault rules, commands, Python API.

The HTTP API is in reference_http.py, because it reads a document and no code.
"""

from collections.abc import Iterator, Sequence

import click

import sluice
from sluice.broker.controller.configs.client_metrics import ClientMetricsConfigs
from sluice.broker.controller.configs.group_configs import GroupConfigs
from sluice.cli.main import cli
from sluice.config.kafka_properties import KAFKA_PROPERTIES
from sluice.config.property_table import PROPERTIES, TOPIC_DEFAULT_OF, TOPIC_PROPERTIES, Property
from sluice.metrics import METRICS
from tools.docs.reference.faults import faults_page
from tools.docs.reference.http import http_page
from tools.docs.reference.without_effect import REASONS, reasons_of
from tools.docs.tables import code, table

# Suffix of a name -> its unit; the first match counts.
_UNITS = {
    "_byte_rate": "bytes/s",
    "bytes.per.second": "bytes/s",
    "_bytes_per_s": "bytes/s",
    "_mutation_rate": "1/s",
    "_accept_rate": "1/s",
    "_throttle_time": "ms",
    "_request_time": "%",
    "_seconds_total": "s",
    "_seconds": "s",
    ".seconds": "s",
    ".minutes": "min",
    ".hours": "h",
    "_bytes_total": "bytes",
    "_bytesin_total": "bytes",
    "_bytesout_total": "bytes",
    "_bytes": "bytes",
    ".bytes": "bytes",
    ".ms": "ms",
}
_ERRORS = [name for name in sluice.__all__ if name.endswith(("Error", "Exception"))]
PYTHON = {
    "Brokers for tests": ("sluice.Broker", "sluice.SyncBroker"),
    "unittest": ("sluice.kafka_test_case.KafkaTestCase",),
    "Errors": tuple(f"sluice.{name}" for name in _ERRORS),
    "Producer": ("sluice.client.producer.Producer", "sluice.client.producer.RecordMetadata"),
    "Consumer": (
        "sluice.client.consumer.Consumer",
        "sluice.client.consumer.ConsumerRecord",
        "sluice.client.consumer.OffsetAndMetadata",
    ),
    "Admin client": ("sluice.client.admin.AdminClient",),
    "Streams": ("sluice.streams.streams.Streams", "sluice.streams.topology.Topology"),
}
# Modules whose `__all__` is documented in full.
PYTHON_MODULES = {
    "Faults": "sluice.faults",
    "Scenarios": "sluice.scenarios",
    "Journal events": "sluice.journal_events",
    "Virtual time": "sluice.testing",
    "Exploration": "sluice.explore",
}


def reference() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page."""
    yield "configs", configs_page()
    yield "metrics", metrics_page()
    yield "faults", faults_page()
    yield "commands", commands_page()
    yield "http", http_page()
    yield "python", python_page()


def unit_of(name: str) -> str:
    """Return the unit that the end of a name implies, or ""."""
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")


# -- properties --------------------------------------------------------------------------------------------------------


def configs_page() -> str:
    brokers, topics = [*PROPERTIES.values()], [*TOPIC_PROPERTIES.values()]
    others = [known.row for name, known in KAFKA_PROPERTIES.items() if name not in PROPERTIES]
    groups, client_metrics = [*GroupConfigs.rows.values()], [*ClientMetricsConfigs.rows.values()]
    return "\n".join(
        [
            "# Properties\n",
            "Properties of brokers and topics, with Kafka's names. Use them in `server.properties`, with `--override`, "
            "in the environment as `KAFKA_...`, and in `Broker(config={...})`. `sluice config list` shows them with "
            "their current values.\n",
            "## Brokers\n",
            _properties(brokers),
            "## Topics\n",
            "The default of a topic config is the value of the broker property in the last column.\n",
            _properties(topics, with_broker_property=True),
            "## Groups\n",
            "The default of a group config is the value of the broker property `group.<name>`, if that exists.\n",
            _properties(groups),
            "## Client metrics\n",
            _properties(client_metrics),
            "## Without effect\n",
            "Other configs of Kafka 4.4 are accepted and shown, and have no effect. A start logs a warning with the "
            "names of those that are set.\n",
            _without_effect([*brokers, *others], [*topics, *groups, *client_metrics]),
        ]
    )


def _properties(properties: Sequence[Property], *, with_broker_property: bool = False) -> str:
    head = ["property", "type", "default", "unit", "description"]
    rows = [
        [code(one.name), one.kind.type.lower(), code(one.default), _property_unit(one), _description(one)]
        for one in properties
        if not one.has_no_effect
    ]
    if with_broker_property:
        head.append("broker property")
        for row in rows:
            row.append(code(TOPIC_DEFAULT_OF.get(row[0].strip("`"), "")))
    return table(head, rows)


def _description(one: Property) -> str:
    is_plain = one.kind.accepts in ("text", "true or false")
    text = one.doc if is_plain else f"{one.doc} Accepts {one.kind.accepts}."
    return text.replace("<", "\\<")  # not a tag


def _property_unit(one: Property) -> str:
    return "bytes/s" if one.kind.accepts.startswith("bytes per second") else unit_of(one.name)


def _without_effect(brokers: Sequence[Property], others: Sequence[Property]) -> str:
    rows = [[reason, _names(brokers, reason), _names(others, reason)] for reason in REASONS]
    return table(("reason", "properties of brokers", "configs of topics and groups"), rows)


def _names(properties: Sequence[Property], reason: str) -> str:
    return ", ".join(code(one.name) for one in properties if one.has_no_effect and reason in reasons_of(one.name))


# -- metrics -----------------------------------------------------------------------------------------------------------


_NOTES = {"": "", "broker": " Not at a proxy.", "proxy": " Only at a proxy."}


def metrics_page() -> str:
    rows = [
        [code(one.name), one.kind, unit_of(one.name), ", ".join(map(code, one.labels)), one.help + _NOTES[one.only_of]]
        for one in METRICS.values()
    ]
    return (
        "# Metrics\n\nMetrics that `/metrics` of the admin port exports for Prometheus. Those that begin with `kafka_` "
        "have the names that the JMX exporter gives Kafka's own metrics. With several brokers, and at a "
        "[proxy](../proxy.md), each series also has the label `broker`. "
        "[Run and configure a broker](../serve.md#monitor-it) shows how to scrape them.\n\n"
        + table(("metric", "type", "unit", "labels", "description"), rows)
    )


# -- commands ----------------------------------------------------------------------------------------------------------


def commands_page() -> str:
    parts = ["# Commands\n\nEvery command of `sluice`, with its options. `--help` prints the same, and examples.\n"]
    for path, command, context in walk(cli, "sluice", None):
        summary = (command.help or "").replace("\b\n", "")
        parts.append(f"\n## {path}\n\n{_paragraphs(summary)}\n\n```text\n{command.get_usage(context)}\n```\n")
        options = [_option(param, context) for param in command.params if isinstance(param, click.Option)]
        if options:
            parts.append("\n" + table(("option", "type", "default", "description"), options))
    return "".join(parts)


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n") if part.strip())


def _option(option: click.Option, context: click.Context) -> list[str]:
    names = " ".join(map(code, (*option.opts, *option.secondary_opts)))
    kind = "flag" if option.is_flag else (option.metavar or option.type.name)
    if isinstance(option.type, click.Choice):
        kind = ", ".join(code(choice) for choice in option.type.choices)
    text, _, written = (option.help or "").partition("[default: ")  # options that compute their default
    default = option.get_help_extra(context).get("default", written.rstrip("]"))
    return [names, kind, "required" if option.required else code(default), text]


def walk(
    command: click.Command, path: str, parent: click.Context | None
) -> Iterator[tuple[str, click.Command, click.Context]]:
    context = click.Context(command, info_name=path.split()[-1], parent=parent, terminal_width=100)
    yield path, command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from walk(inner, f"{path} {name}", context)


# -- Python API --------------------------------------------------------------------------------------------------------


def python_page() -> str:
    """Return the page of the public modules, which Sphinx's autodoc completes from their docstrings."""
    parts = [
        "# Python API\n",
        "Public classes and functions. [Brokers for tests](../testing.md) and [pytest](../pytest.md) show how to use "
        "them; the members of `SyncBroker` are those of `Broker`, without `await`.\n",
    ]
    for title, names in PYTHON.items():
        parts += [f"## {title}\n", "```{eval-rst}", *(_autoclass(name) for name in names), "```\n"]
    for title, module in PYTHON_MODULES.items():
        members = f"   :members:\n   :exclude-members: {', '.join(_ERRORS)}"  # they have their own section
        parts += [f"## {title}\n", "```{eval-rst}", f".. automodule:: {module}\n{members}\n", "```\n"]
    return "\n".join(parts)


def _autoclass(name: str) -> str:
    inherited = "" if name.endswith(("TestCase", "Error")) else "   :inherited-members: Exception\n"
    return f".. autoclass:: {name}\n   :members:\n{inherited}"
