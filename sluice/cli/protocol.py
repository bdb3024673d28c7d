"""`sluice protocol show`."""

import click

from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.header import RequestHeader, ResponseHeader
from sluice.protocol.codec.compile import source, versions_of
from sluice.protocol.message import Message
from sluice.text.error_text import one_of

from .commands import Group
from .completion_values import apis


@click.group(cls=Group)
def protocol() -> None:
    """Show how messages are encoded and decoded."""


@protocol.command()
@click.argument("name", shell_complete=apis)
@click.argument("version", type=int)
def show(name: str, version: int) -> None:
    """Print the decoder and the encoder of NAME (Fetch, FetchRequest, RequestHeader, ...) in VERSION."""
    for message in _messages(name):
        versions = versions_of(message)
        if not versions.min <= version <= versions.max:
            raise click.BadParameter(
                f"{message.__name__}: expected {versions.min} to {versions.max}, got {version}", param_hint="VERSION"
            )
        click.echo(f"# {message.__name__} v{version}\n\n{source(message, version)}")


def _messages(name: str) -> list[type[Message]]:
    by_name: dict[str, list[type[Message]]] = {"RequestHeader": [RequestHeader], "ResponseHeader": [ResponseHeader]}
    for api in API_KEYS.values():
        by_name[api.name] = [api.request, api.response]
        by_name[api.request.__name__] = [api.request]
        by_name[api.response.__name__] = [api.response]
    if name not in by_name:
        raise click.BadParameter(one_of((api.name for api in API_KEYS.values()), name), param_hint="NAME")
    return by_name[name]
