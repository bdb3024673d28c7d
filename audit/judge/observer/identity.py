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
    for event in events:
        if isinstance(event, Request):
            software = f"{event.software_name} {event.software_version}".strip()
            apis = asked.setdefault((event.client_id, software, event.peer.rpartition(":")[0]), {})
            apis.setdefault(f"{event.api}.{event.version}")
    return [
        Identity(client_id=client_id, software=software, host=host, fingerprint=" ".join(list(apis)[:_LENGTH]))
        for (client_id, software, host), apis in asked.items()
    ]
