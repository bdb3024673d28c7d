"""docs/api.md: every name that users may rely on, in one page that `make generate` writes and a test compares."""

import inspect
import json
import textwrap
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path

import click
from msgspec import structs

import sluice
from sluice import journal_events, pytest_plugin
from sluice.cli.main import cli
from sluice.config.property_table import PROPERTIES, TOPIC_PROPERTIES
from sluice.embedded.options import BrokerOptions
from sluice.metrics import METRICS
from tools.docs.reference.openapi import FILE as OPENAPI
from tools.docs.reference.pages import PYTHON, PYTHON_MODULES, walk

PAGE = Path(__file__).parents[3] / "docs" / "api.md"
_INTRODUCTION = """# Public API

The names, signatures and options that you may rely on. This page is generated from the code, and a test fails if they
differ, so that no change goes unnoticed. What is not listed here may change in any version.

**Deprecation.** From 0.1.0 on, what is listed here keeps its name and meaning for at least two minor versions after the
version whose changelog deprecates it; using it warns meanwhile. New names, options and fields may come at any time.
On Kafka's wire, Kafka is the authority: a difference from Kafka is a defect, and is corrected without notice.
"""
_WIDTH = 118


def page() -> str:
    """Return the text of the page."""
    sections = {
        "Python": _python(),
        "pytest": _pytest(),
        "Commands": _commands(),
        "Properties": _properties(),
        "Metrics": (f"{each.name}{{{', '.join(each.labels)}}} {each.kind}" for each in METRICS.values()),
        "Journal": _journal(),
        "Admin API": _admin(),
    }
    links = {
        "Python": "The import package `sluice`. [Brokers for tests](testing.md) shows how to use it.",
        "pytest": "Fixtures, their options, and the marker. [pytest](pytest.md) describes them.",
        "Commands": "Options in capitals take a value. `--help` of each command describes them.",
        "Properties": "`sluice config list` describes them. Kafka's other properties are accepted and have no effect.",
        "Metrics": "Names and labels, as `/metrics` exports them.",
        "Journal": "Kinds of events and their fields, besides `kind`. [Journal](journal.md) describes them.",
        "Admin API": "Bodies and responses are in the [OpenAPI document](openapi.json).",
    }
    blocks = (
        "\n".join(["", f"## {title}", "", links[title], "", "```text", *lines, "```", ""])
        for title, lines in sections.items()
    )
    return _INTRODUCTION + "".join(blocks)


# -- Python ------------------------------------------------------------------------------------------------------------


def _python() -> Iterator[str]:
    named = {name for names in PYTHON.values() for name in names} | {f"sluice.{name}" for name in sluice.__all__}
    for name in sorted(named):
        module, _, attribute = name.rpartition(".")
        yield from _described(name, getattr(import_module(module), attribute))
    for module in PYTHON_MODULES.values():
        if module != journal_events.__name__:  # they have their own section
            for attribute, value in _public(import_module(module)):
                yield from _described(f"{module}.{attribute}", value)


def _public(module: object) -> Iterator[tuple[str, object]]:
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == getattr(module, "__name__", None)
    ]
    for name in sorted(names):
        value = getattr(module, name)
        if not (isinstance(value, type) and issubclass(value, sluice.SluiceError)):  # listed under its own module
            yield name, value


def _described(name: str, value: object) -> Iterator[str]:
    if not callable(value):
        yield name
        return
    yield from _call(name, value)
    if isinstance(value, type) and not issubclass(value, Exception) and not name.startswith("sluice.faults."):
        for member in sorted(_own_members(value)):
            plain = inspect.unwrap(getattr(inspect.getattr_static(value, member), "__func__", getattr(value, member)))
            if inspect.isfunction(plain):
                yield from _call(f"    {'async ' * inspect.iscoroutinefunction(plain)}.{member}", plain)
            else:
                yield f"    .{member}"


def _own_members(cls: type) -> set[str]:
    """Return the public members that sluice defines, but for fields, which are parameters."""
    own = [base for base in cls.__mro__ if base.__module__.partition(".")[0] == "sluice"]
    names = {name for base in own for name in vars(base) if name[0] != "_"}
    return names - set(inspect.signature(cls).parameters)


def _call(name: str, value: object) -> Iterator[str]:
    """Yield a signature without annotations, which the reference of the site has."""
    if isinstance(value, type) and issubclass(value, Exception):
        bases = ", ".join(base.__name__ for base in value.__bases__)
        yield f"{name}({bases})"
        return
    try:
        signature = inspect.signature(value)  # type: ignore[arg-type]  # every value here is callable
    except ValueError:
        yield name
        return
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty, default=_short(parameter.default))
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls") and not parameter.name.startswith("_")
    ]
    text = str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    yield from textwrap.wrap(name + text, _WIDTH, subsequent_indent=" " * 8, break_on_hyphens=False)


def _short(default: object) -> object:
    """Return a default whose `repr` is stable and short."""
    return default.value if isinstance(default, Enum) else default


# -- the others --------------------------------------------------------------------------------------------------------


def _pytest() -> Iterator[str]:
    yield from (f"fixture {name}" for name in sorted(vars(pytest_plugin)) if name.startswith("kafka_"))
    options = ", ".join(sorted(BrokerOptions.__annotations__))
    yield from textwrap.wrap(f"@pytest.mark.kafka({options})", _WIDTH, subsequent_indent=" " * 8)


def _commands() -> Iterator[str]:
    for path, command, context in walk(cli, "sluice", None):
        words = [path]
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                value = "" if parameter.is_flag or parameter.count else f" {parameter.make_metavar(context)}"
                words.append("|".join((*parameter.opts, *parameter.secondary_opts)) + value)
            else:
                words.append(parameter.make_metavar(context))
        yield from textwrap.wrap(" ".join(words), _WIDTH, subsequent_indent=" " * 8, break_on_hyphens=False)


def _properties() -> Iterator[str]:
    for title, table in (("broker", PROPERTIES), ("topic", TOPIC_PROPERTIES)):
        names = sorted(one.name for one in table.values() if not one.has_no_effect)
        yield from textwrap.wrap(
            f"{title}: {', '.join(names)}", _WIDTH, subsequent_indent=" " * 8, break_on_hyphens=False
        )


def _journal() -> Iterator[str]:
    events = (value for value in vars(journal_events).values() if isinstance(value, type))
    for event in events:
        if issubclass(event, journal_events.Event) and isinstance(tag := event.__struct_config__.tag, str):
            fields = ", ".join(field.encode_name for field in structs.fields(event))
            yield from textwrap.wrap(f"{tag}: {fields}", _WIDTH, subsequent_indent=" " * 8)


def _admin() -> Iterator[str]:
    for path, operations in json.loads(OPENAPI.read_text(encoding="utf-8"))["paths"].items():
        for method, operation in operations.items():
            if method != "parameters":
                query = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
                yield f"{method.upper()} {path}{'?' if query else ''}{'&'.join(query)}"
