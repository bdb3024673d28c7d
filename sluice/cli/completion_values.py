"""Completion of arguments and options with names that are known without a broker.

The functions have the signature of click's `shell_complete`, and import what they need when called.
"""

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

QUOTA_KEYS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)


def scenarios(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from sluice.broker.scenarios.files import names

    return _begun(incomplete, names())


def scenarios_and_files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file"), *map(CompletionItem, scenarios(ctx, param, incomplete))]


def apis(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from sluice.protocol.apis import API_KEYS

    return _begun(incomplete, (api.name for api in API_KEYS.values()))


def kinds(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from sluice.journal_events import KINDS

    return _begun(incomplete, KINDS)


def profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from sluice.broker.throttling.profile import PROFILES

    return _begun(incomplete, PROFILES)


def properties(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from sluice.config.property_table import PROPERTIES

    return _begun(incomplete, (f"{name}=" for name in PROPERTIES))


def keys_of_quotas(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _begun(incomplete, QUOTA_KEYS)


def settings_of_quotas(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [f"{key}=" for key in keys_of_quotas(ctx, param, incomplete)]


def rules(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete a fault rule: `action=KIND` first, then the fields of the rule and the action."""
    from sluice.broker.faults import actions, rule

    given = dict(word.partition("=")[::2] for word in ctx.params.get(str(param.name)) or ())
    if "action" not in given:
        return _begun(incomplete, (f"action={kind}" for kind in actions.KINDS))
    if incomplete.startswith("api="):
        return [f"api={name}" for name in apis(ctx, param, incomplete.removeprefix("api="))]
    action = actions.KINDS.get(given["action"])
    fields = (*(action.__struct_fields__ if action is not None else ()), *rule.Rule.__struct_fields__)
    return _begun(incomplete, (f"{name}=" for name in dict.fromkeys(fields) if name not in given))


def audit_subjects(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from sluice.audit.subjects import SUBJECTS

    return _begun(incomplete, SUBJECTS)


def audit_probes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from sluice.audit.probes import PROBES
    from sluice.audit.report.words import in_order

    statements = in_order({statement for probe in PROBES.values() for statement in probe.statements})
    kips = dict.fromkeys(statement.partition("/")[0] for statement in statements)
    return _begun(incomplete, (*PROBES, *kips, *statements))


def _begun(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
