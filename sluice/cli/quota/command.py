"""`sluice quota`.

`explain` uses the admin port, the others the Kafka protocol (KIP-546), as kafka-configs does. With --proxy, they use
the admin port of a proxy, which forwards the Kafka protocol to the cluster behind it.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from sluice.cli.commands import Group
from sluice.cli.completion_values import QUOTA_KEYS, keys_of_quotas, settings_of_quotas
from sluice.cli.options import admin_options, bootstrap_option, format_option
from sluice.config.value_types import QUOTA_NAMES, parse_quota
from sluice.errors import SluiceError
from sluice.text.error_text import expected, nearest, shown, unknown
from sluice.text.json_text import json_text

if TYPE_CHECKING:
    from .places import Place

Entity = dict[str, str | None]
_F = TypeVar("_F", bound=Callable[..., object])

# Names of the Python API and of KIP-13, for suggestions.
_OTHER_NAMES = {
    "produce": "producer_byte_rate",
    "producer": "producer_byte_rate",
    "fetch": "consumer_byte_rate",
    "consume": "consumer_byte_rate",
    "consumer": "consumer_byte_rate",
    "request": "request_percentage",
}
_TYPES = {"user": "user", "client": "client-id", "ip": "ip"}
_WORDS = {"user": ("user", "users"), "client": ("client id", "client ids"), "ip": ("address", "addresses")}


def _entity_options(command: _F) -> _F:
    for option, (one, several) in reversed(_WORDS.items()):
        all_ = click.option(
            f"--{option}-default", is_flag=True, help=f"Default of all {several} without their own quotas."
        )
        command = click.option(f"--{option}", metavar="NAME", help=f"{one[0].upper()}{one[1:]} of the quotas.")(
            all_(command)
        )
    return command


def _place_options(command: _F) -> _F:
    proxy = click.option(
        "--proxy", metavar="URL", help="Admin address of a proxy, whose own quotas are meant instead of the cluster's."
    )
    token = click.option("--token", help="Token of the proxy's admin port (sluice.admin.token).")
    return bootstrap_option(proxy(token(command)))


@click.group(cls=Group)
def quota() -> None:
    """Show and change quotas, and explain why a client is throttled."""


@quota.command("list")
@_place_options
@_entity_options
@format_option
def list_(
    bootstrap: str, proxy: str | None, token: str | None, output_format: str, **options: str | bool | None
) -> None:
    """List quotas: all, or those of entities with the given types and names."""
    place = _place(bootstrap, proxy, token)
    found = [(_in_order(entity), quotas) for entity, quotas in place.describe(_entity(options))]
    found.sort(key=lambda each: [(type_, name or "") for type_, name in each[0].items()])
    if output_format == "json":
        click.echo(json.dumps([{"entity": entity, "quotas": quotas} for entity, quotas in found], indent=2))
        return
    for entity, quotas in found:
        click.echo(f"{_words(entity)}: {', '.join(f'{key}={_number(quotas[key])}' for key in sorted(quotas))}")
    if not found:
        click.echo("no quotas")


@quota.command("set")
@_place_options
@_entity_options
@format_option
@click.argument("quotas", nargs=-1, required=True, metavar="KEY=VALUE...", shell_complete=settings_of_quotas)
def set_(
    bootstrap: str,
    proxy: str | None,
    token: str | None,
    output_format: str,
    quotas: tuple[str, ...],
    **options: str | bool | None,
) -> None:
    """Set quotas of one entity, such as producer_byte_rate=2M; its other quotas are kept.

    For users and client ids: producer_byte_rate and consumer_byte_rate (bytes per second, such as 512Ki), or produce
    and fetch for short, request_percentage, controller_mutation_rate. For IP addresses: connection_creation_rate.
    """
    changes: dict[str, float | None] = {}
    for item in quotas:
        key, equals, value = item.partition("=")
        if not (key and equals):
            accepted = f"KEY=VALUE with a key of {', '.join(QUOTA_KEYS)}"
            raise click.UsageError(f"quota: {expected(accepted, item)}")
        key = QUOTA_NAMES.get(key, key)
        if key in changes:
            raise click.UsageError(f"{key}: given twice")
        if key not in QUOTA_KEYS and nearest(_OTHER_NAMES.get(key, key), QUOTA_KEYS):  # others may exist in new brokers
            raise click.UsageError(_unknown(key))
        changes[key] = _value(key, value)
    _alter(_place(bootstrap, proxy, token), _required(options), changes, output_format)


@quota.command("delete")
@_place_options
@_entity_options
@format_option
@click.argument("keys", nargs=-1, required=True, metavar="KEY...", shell_complete=keys_of_quotas)
def delete(
    bootstrap: str,
    proxy: str | None,
    token: str | None,
    output_format: str,
    keys: tuple[str, ...],
    **options: str | bool | None,
) -> None:
    """Delete quotas of one entity."""
    keys = tuple(QUOTA_NAMES.get(key, key) for key in keys)
    unknown = [key for key in keys if key not in QUOTA_KEYS]
    if unknown:
        raise click.UsageError(_unknown(unknown[0]))
    entity, place = _required(options), _place(bootstrap, proxy, token)
    _ensure_set(place, entity, keys)
    _alter(place, entity, dict.fromkeys(keys), output_format)


@quota.command()
@click.argument("client_id", metavar="CLIENT")
@click.option("--user", default="ANONYMOUS", show_default=True, help="User that the client authenticated as.")
@admin_options
@format_option
def explain(client_id: str, user: str, admin: str, token: str | None, output_format: str) -> None:
    """Explain why a client is throttled: matching quotas, recorded usage, and the last delay in numbers."""
    from .explanation import ask, in_words, is_known

    answer = ask(admin, token, client_id, user)
    if not is_known(answer):
        raise SluiceError(
            f"client {shown(client_id)} of user {shown(user)}: no connections and no recorded usage. "
            "Check the client id and --user."
        )
    click.echo(json_text(answer) if output_format == "json" else in_words(answer))


def _place(bootstrap: str, proxy: str | None, token: str | None) -> "Place":
    from .places import place_of  # its client takes 0.1 s to import

    return place_of(bootstrap, proxy, token)


def _entity(options: dict[str, str | bool | None]) -> Entity:
    entity: Entity = {}
    for option, type_ in _TYPES.items():
        name, default = options[option], options[f"{option}_default"]
        if name is not None and default:
            raise click.UsageError(f"--{option} and --{option}-default exclude each other")
        if name is not None:
            entity[type_] = str(name)
        elif default:
            entity[type_] = None
    return entity


def _in_order(entity: Entity) -> Entity:
    return {type_: entity[type_] for type_ in sorted(entity, reverse=True)}


def _required(options: dict[str, str | bool | None]) -> Entity:
    entity = _entity(options)
    if not entity:
        raise click.UsageError("no entity; expected --user, --client, --ip, or one of these with -default")
    return entity


def _value(key: str, text: str) -> float:
    try:
        return parse_quota(key, text)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _unknown(key: str) -> str:
    return f"{key}: {unknown('quota', _OTHER_NAMES.get(key, key), QUOTA_KEYS)}"


def _ensure_set(place: "Place", entity: Entity, keys: tuple[str, ...]) -> None:
    """Raise SluiceError for an unset quota, whose deletion the broker would accept."""
    found = next((quotas for each, quotas in place.describe(entity) if each == entity), {})
    for key in keys:
        if key not in found:
            raise SluiceError(f"{_words(entity)}: {key} is not set")


def _alter(place: "Place", entity: Entity, changes: dict[str, float | None], output_format: str) -> None:
    error = place.alter(entity, changes)
    if error is not None:
        raise SluiceError(f"{_words(entity)}: {error}")
    if output_format == "json":
        click.echo(json.dumps({"entity": entity, "changed": changes}, indent=2))
        return
    for key, value in changes.items():
        click.echo(f"{_words(entity)}: {key} " + ("deleted" if value is None else f"= {_number(value)}"))


def _words(entity: Entity) -> str:
    return ", ".join(f"{type_} {'<default>' if name is None else shown(name)}" for type_, name in entity.items())


def _number(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else repr(value)
