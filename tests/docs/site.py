"""The documentation as a site: docs/*.md, and reference pages made from the code, by Sphinx into build/docs/html.

python -m tests.docs.site           (with the extra `docs`)

A page that nobody has put into a section here is under "More", so that a new page is never lost.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from sluice.broker.dispatch.registry import HANDLERS
from sluice.cli.main import cli
from sluice.config.property_table import PROPERTIES, TOPIC_PROPERTIES, Property
from sluice.metrics import METRICS
from sluice.protocol.apis import API_KEYS

ROOT = Path(__file__).parents[2]
SOURCE, HTML = ROOT / "build/docs/source", ROOT / "build/docs/html"

# Section -> its pages, `*` for any that no other section names.
SECTIONS = {
    "Start": ("tutorial",),
    "How to": ("how-to/*", "testing", "pytest", "virtual-time", "containers", "spark", "plan"),
    "What there is": (
        *("quotas", "faults", "scenarios", "clusters", "journal", "page", "audit*", "security", "acls", "storage"),
    ),
    "Clients": ("producer", "consumer", "streams", "clients", "faults-clients", "conformance"),
    "Reference": ("reference/*", "topic-configs", "api"),
    "How it works": ("explanation/*",),
    "KIPs": ("kip-*",),
    "More": ("*",),
}
_INDEX = """\
# sluice

A Kafka-compatible test broker that makes clients wait, on purpose and with proof. It starts in a tenth of a second,
without a JVM or a container; enforces Kafka's quotas; fails on command; writes down what happened; and judges how
clients took it.

New here? The [tutorial](tutorial.md) takes five minutes.
"""


def main() -> None:
    """Lays out the sources, and runs Sphinx; a warning is an error."""
    shutil.rmtree(SOURCE.parent, ignore_errors=True)
    lay_out(SOURCE)
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "-b", "html"]
    result = subprocess.run([*command, str(SOURCE), str(HTML)], check=False)
    if result.returncode:
        sys.exit(result.returncode)
    print(f"docs: {HTML / 'index.html'}")


def lay_out(source: Path) -> None:
    """Makes the folder that Sphinx reads."""
    shutil.copytree(ROOT / "docs", source)
    shutil.copy(ROOT / "docs/site/conf.py", source)
    shutil.copytree(ROOT / "examples", source.parent / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    (source / "reference").mkdir()
    for name, text in reference():
        (source / "reference" / f"{name}.md").write_text(text)
    left = sorted(str(file.relative_to(source).with_suffix("")) for file in source.glob("**/*.md"))
    (source / "index.md").write_text(_INDEX + "".join(_toctrees(left)))


def _toctrees(left: list[str]) -> Iterator[str]:
    for section, patterns in SECTIONS.items():
        pages = [page for pattern in patterns for page in left if Path(page).match(pattern)]
        left = [page for page in left if page not in pages]
        if pages:
            listed = "\n".join(dict.fromkeys(pages))
            yield f"\n```{{toctree}}\n:caption: {section}\n:maxdepth: 1\n\n{listed}\n```\n"


def reference() -> Iterator[tuple[str, str]]:
    """The pages that are made from the code: name and text."""
    yield "configs", _configs()
    yield "metrics", _metrics()
    yield "apis", _apis()
    yield "commands", _commands()


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + "\n"


def _code(text: str | None) -> str:
    return f"`{text}`" if text else ""


def _configs() -> str:
    def rows(properties: Sequence[Property]) -> list[list[str]]:
        return [
            [_code(one.name), _code(one.default), one.kind.accepts, one.doc]
            for one in properties
            if not one.has_no_effect
        ]

    def unused(properties: Sequence[Property]) -> str:
        names = ", ".join(_code(one.name) for one in properties if one.has_no_effect)
        return f"\nKept and shown, without effect: {names}.\n"

    brokers, topics = [*PROPERTIES.values()], [*TOPIC_PROPERTIES.values()]
    head = ("property", "default", "accepted", "what it does")
    return (
        "# Properties\n\nOf `server.properties`, `--override` and, as `KAFKA_...`, of the environment. "
        "`sluice config list` shows them with the values in force.\n\n## Of brokers\n\n"
        + _table(head, rows(brokers))
        + unused(brokers)
        + "\n## Of topics\n\n"
        + _table(head, rows(topics))
        + unused(topics)
    )


def _metrics() -> str:
    rows = [[_code(one.name), one.kind, ", ".join(map(_code, one.labels)), one.help] for one in METRICS.values()]
    return (
        "# Metrics\n\nWhat `/metrics` of the admin port exposes. Those that begin with `kafka_` have the names that "
        "the JMX exporter gives Kafka's own. With several brokers each series has a label `broker`, too.\n\n"
        + _table(("metric", "type", "labels", "what it tells"), rows)
    )


def _apis() -> str:
    rows = [
        [str(one.api_key), API_KEYS[one.api_key].name, f"{one.min_version} to {one.max_version}"]
        for one in HANDLERS.values()
    ]
    return (
        "# APIs and versions\n\nWhat ApiVersions answers, made of the same registry. `sluice serve --as kafka-2.8` "
        "answers what that release did.\n\n" + _table(("key", "API", "versions"), rows)
    )


def _commands() -> str:
    parts = ["# Commands\n\nWhat `--help` says of each.\n"]
    for path, command, context in _walk(cli, "sluice", None):
        parts.append(f"\n## {path}\n\n```text\n{command.get_help(context)}\n```\n")
    return "".join(parts)


def _walk(
    command: click.Command, path: str, parent: click.Context | None
) -> Iterator[tuple[str, click.Command, click.Context]]:
    context = click.Context(command, info_name=path.split()[-1], parent=parent, terminal_width=100)
    yield path, command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _walk(inner, f"{path} {name}", context)


if __name__ == "__main__":
    main()
