"""Who a client is, as far as a broker can tell: by what it says (client id, KIP-511), or by what it asks for.

Not every client names its software. Which APIs it asks for at first, in which versions and in which order, tells one
library from another all the same: its fingerprint.
"""

from collections.abc import Iterable

import msgspec

from sluice.journal_events import AnyEvent, Request

_LENGTH = 12


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A client, as a broker knows it.

    client_id: as it says; "" where it says none
    software: name and version by KIP-511, such as apache-kafka-java 4.0.0; "" where it says none
    host: where it came from
    fingerprint: the first APIs that it asked for and their versions, in that order, such as ApiVersions.3 Metadata.12
    """

    client_id: str
    software: str
    host: str
    fingerprint: str


def identities(events: Iterable[AnyEvent]) -> list[Identity]:
    """Each client once, in the order in which they came."""
    asked: dict[tuple[str, str, str], dict[str, None]] = {}
    nameless: dict[int, list[Request]] = {}  # requests of connections that have not said who they are
    for event in events:
        if not isinstance(event, Request):
            continue
        waiting = nameless.setdefault(event.connection, [])
        waiting.append(event)
        if event.api == "ApiVersions" and not event.client_id:
            continue  # kept until the client has said more
        who = (event.client_id, f"{event.software_name} {event.software_version}".strip(), _host(event))
        apis = asked.setdefault(who, {})
        for request in waiting:
            apis.setdefault(f"{request.api}.{request.version}")
        waiting.clear()
    return [
        Identity(client_id=client_id, software=software, host=host, fingerprint=" ".join(list(apis)[:_LENGTH]))
        for (client_id, software, host), apis in asked.items()
    ]


def _host(request: Request) -> str:
    return request.peer.rpartition(":")[0]
