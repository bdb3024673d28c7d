"""The identity of a client as seen by a broker: its client id, its software (KIP-511), and its fingerprint.

The order and versions of its first requests distinguish libraries that do not send a software name.
"""

from collections.abc import Iterable

import msgspec

from sluice.journal_events import AnyEvent, Request

_LENGTH = 12


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A client as seen by a broker.

    client_id: "" if it sends none
    software: name and version by KIP-511, such as apache-kafka-java 4.0.0; "" if it sends none
    fingerprint: the first APIs that it used with their versions, in order, such as ApiVersions.3 Metadata.12
    """

    client_id: str
    software: str
    host: str
    fingerprint: str


def identities(events: Iterable[AnyEvent]) -> list[Identity]:
    """Return clients, ordered by first request."""
    used: dict[tuple[str, str, str], dict[str, None]] = {}
    for event in events:
        if isinstance(event, Request):
            software = f"{event.software_name} {event.software_version}".strip()
            apis = used.setdefault((event.client_id, software, event.peer.rpartition(":")[0]), {})
            apis.setdefault(f"{event.api}.{event.version}")
    return [
        Identity(client_id=client_id, software=software, host=host, fingerprint=" ".join(list(apis)[:_LENGTH]))
        for (client_id, software, host), apis in used.items()
    ]
