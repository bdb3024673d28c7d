"""The import graph: no cycles, no hidden dependencies. Layers between folders are import-linter's (pyproject.toml).

Every import counts: plain ones, those under TYPE_CHECKING, and deferred ones within functions.
"""

import ast
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

ROOT = Path(__file__).parents[2]
# Modules that declare what a folder uses of others: all that they import is for type checkers.
INTERFACES = ("target",)
# Other modules that are imported for types alone, and why that is worth it.
TYPES_ONLY = {
    "sluice.audit.judge.model.verdict": "a command or an assertion loads the judge when it judges",
    "sluice.broker.admin.operation": "loaded with the first connection of the admin port",
    "sluice.broker.broker": "fault rules are described without a broker",
    "sluice.broker.controller.metadata_log.durable_metadata": "only a data directory has one",
    "sluice.broker.coordinator.group.consumer.classic_members": "only groups that migrate have them",
    "sluice.broker.faults.fault": "fault rules are described without the engine",
    "sluice.broker.log.log_storage": "protocols",
    "sluice.broker.network.connection": "sluice.faults describes rules without asyncio, which takes 20 ms to import",
    "sluice.broker.network.socket_server": "as above",
    "sluice.broker.scenarios.report": "loaded when a scenario ends",
    "sluice.embedded.sync_broker": "the pytest plugin is loaded by every run of pytest",
    "sluice.embedded.sync_handles": "as above",
    "sluice.fleet.models.client_model": "a simulation loads it, not the help of its commands",
    "sluice.protocol.apis": "each API is loaded with its first request",
}
# The modules that import others of ours when they are used, by reason.
DEFER = {
    "an optional package": (
        "audit.report.files", "broker.security.sasl.listener", "cli.demo.command", "cli.fleet.command", "cli.fleet.map",
        "cli.fleet.options", "cli.fleet.sweep", "cli.jobs.backoff", "cli.jobs.fleet", "cli.jobs.lint",
        "cli.jobs.plan",
        "cli.jobs.streaming", "cli.jobs.throttle", "cli.journal.export", "cli.journal.sources", "cli.lint.command",
    ),
    "TLS, whose import takes 15 ms": (
        "broker.controller.configs.broker_configs", "broker.network.shaped_transport", "broker.network.socket_server",
    ),
    "HTTP and the page, which take 250 ms": ("broker.admin.server", "web"),
    "other libraries: matplotlib, PyYAML, compression": (
        "broker.scenarios.documents", "spark.plan.report", "protocol.records.compression",
    ),
    "parts of a broker that are made on first use": (
        "broker.broker", "broker.controller.cluster", "broker.coordinator.group.coordinator",
        "broker.coordinator.group.replay", "broker.server.cluster_server", "config.broker_config",
        "protocol.codec.compile",
    ),
    "sluice.faults describes rules without asyncio": ("broker.faults.actions.connections",),
    "commands: their completion runs at every Tab": (
        "__main__", "cli.audit.command", "cli.audit.run", "cli.completion_values", "cli.faults.command",
        "cli.quota.command",
    ),
    "every run of pytest loads the plugin, and most tests use few parts": (
        "embedded.client", "embedded.fault_control", "embedded.assertions.journal_assertions", "embedded.options",
        "embedded.scenario_control", "embedded.traces.of_broker", "pytest_plugin",
        "pytest_plugin.observers",
    ),
}  # fmt: skip
MOST_FILES = 16  # in one folder
# One file per API, and two packages that are flat by choice.
CATALOGUES = {"sluice/protocol/apis", "sluice/quotas", "sluice/streams"}

Kind = Literal["plain", "type", "deferred"]


class Import(NamedTuple):
    """One import of a module of ours."""

    source: str
    target: str
    kind: Kind


def _files() -> Iterator[Path]:
    """Return the modules of the package, below the links in it, too."""
    for folder, _, names in os.walk(ROOT / "sluice", followlinks=True):
        yield from (Path(folder, name) for name in names if name.endswith(".py"))


def _module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {_module_of(path): path for path in _files()}


@cache
def imports() -> list[Import]:
    """All imports between modules. The package's own `__init__` is left out: it loads public names on first use."""
    found = []
    for module, path in MODULES.items():
        if module != "sluice":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found += list(_imports_in(tree, module, path.name == "__init__.py", "plain"))
    return found


def _imports_in(node: ast.AST, module: str, is_package: bool, kind: Kind) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue
        inner = kind
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            inner = "type"
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and kind == "plain":
            inner = "deferred"
        for target in _targets(child, module, is_package):
            if target not in ("sluice", module):
                yield Import(module, target, kind)
        yield from _imports_in(child, module, is_package, inner)


def _targets(node: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in MODULES)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            package = module.split(".")[: None if is_package else -1]
            base = ".".join([*package[: len(package) - node.level + 1], *([base] if base else [])])
        for alias in node.names:
            name = f"{base}.{alias.name}"
            if name in MODULES or base in MODULES:
                yield name if name in MODULES else base


def cycles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components with more than one node (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(edges.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component: list[str] = []
            while component[-1:] != [node]:
                component.append(stack.pop())
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def test_modules_form_no_cycle() -> None:
    edges: dict[str, set[str]] = {}
    for found in imports():
        edges.setdefault(found.source, set()).add(found.target)
    assert cycles(edges) == []


def test_sub_folders_form_no_cycle() -> None:
    """The folders directly below one folder, each as a whole."""
    folders = {module for module, path in MODULES.items() if path.name == "__init__.py"}
    edges: dict[str, dict[str, set[str]]] = {}
    for found in imports():
        source, target = found.source.split("."), found.target.split(".")
        pairs = enumerate(zip(source, target, strict=False))
        depth = next((number for number, (one, other) in pairs if one != other), 0)
        below, other = (".".join(parts[: depth + 1]) for parts in (source, target))
        if depth > 1 and {below, other} <= folders:
            edges.setdefault(".".join(source[:depth]), {}).setdefault(below, set()).add(other)
    assert edges
    assert {folder: parts for folder, below in edges.items() if (parts := cycles(below))} == {}


def test_type_only_imports_are_of_interfaces_and_of_what_is_loaded_later() -> None:
    deferred = {found.target for found in imports() if found.kind == "deferred"}
    wrong = [
        f"{found.source}: {found.target}"
        for found in imports()
        if found.kind == "type"
        and found.target.rpartition(".")[2] not in INTERFACES
        and found.target not in TYPES_ONLY
        and found.target.rpartition(".")[0] not in TYPES_ONLY
        and not any(target == found.target or target.startswith(f"{found.target}.") for target in deferred)
    ]
    assert wrong == []


def test_imports_are_deferred_only_for_a_reason() -> None:
    stated = {f"sluice.{module}" for modules in DEFER.values() for module in modules}
    assert {found.source for found in imports() if found.kind == "deferred"} == stated


def test_a_folder_can_be_taken_in_at_a_glance() -> None:
    files = Counter(str(path.parent.relative_to(ROOT)) for path in MODULES.values() if path.name != "__init__.py")
    assert {folder for folder, number in files.items() if number > MOST_FILES} <= CATALOGUES
