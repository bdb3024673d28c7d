"""`/api/v1/journal` of the admin port: events as a JSON document, or as an NDJSON stream."""

from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response, StreamingResponse

from sluice.broker.admin.operation import AdminContext, Nothing, Operation, RefusedError
from sluice.broker.journal.reader import API_NAMES, PAGE_ENTRIES, EventFilter, JournalReader, parse_event_filter
from sluice.broker.server.cluster_server import ClusterServer
from sluice.journal_events import KINDS, AnyEvent, schema

_PATH = "/api/v1/journal"
_LIMIT, _MOST = 1000, 10_000
_SIGN_OF_LIFE_MS = 5_000
_NO_JOURNAL = "there is no journal: sluice.journal.events is 0; set it to 16384, for example"
_NDJSON, _JSON_SCHEMA = "application/x-ndjson", "application/schema+json"


# For the document only: journal/reader.py rejects other values.
_Api = Annotated[str, Meta(extra_json_schema={"enum": [*API_NAMES]})]
_Kind = Annotated[str, Meta(extra_json_schema={"enum": [*KINDS]})]
_NodeId = Annotated[str, Meta(extra_json_schema={"pattern": "^[0-9]+$"})]


class Filters(msgspec.Struct, forbid_unknown_fields=True):
    """Filters for events; each may be repeated."""

    client_id: list[str] = []
    api: list[_Api] = []
    kind: list[_Kind] = []
    broker: list[_NodeId] = []

    @property
    def event_filter(self) -> EventFilter:
        """The filter; raises ArgumentError for an unknown value."""
        given = {"client_id": self.client_id, "api": self.api, "kind": self.kind, "broker": self.broker}
        return parse_event_filter({name: values for name, values in given.items() if values})


class EventQuery(Filters):
    """Filters for events, each of which may be repeated, and a range.

    after: return events with a higher `seq`; default: from the oldest event in the journal
    last: instead of `after`, return this number of matching events before the newest
    limit: maximum number of events
    follow: stream one event per line without end; an empty line from time to time shows that the broker is alive
    """

    after: Annotated[int, Meta(ge=0, le=2**63 - 1)] | UnsetType = UNSET
    last: Annotated[int, Meta(ge=0, le=2**31 - 1)] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=_MOST)] = _LIMIT
    follow: bool = False


class JournalShown(msgspec.Struct):
    """Some events.

    after: value of `after` for the next request
    last: `seq` of the newest event in the journal
    """

    events: list[AnyEvent]
    after: int
    last: int


async def _get_journal(context: AdminContext, params: EventQuery, body: Nothing) -> JournalShown | Response:
    reader = context.journal
    if reader is None:
        raise RefusedError(404, _NO_JOURNAL)
    event_filter = params.event_filter
    after = _beginning(reader, params, event_filter)
    if params.follow:
        return StreamingResponse(_lines(context.server, reader, event_filter, after), media_type=_NDJSON)
    found = reader.read(after, event_filter, params.limit)
    return JournalShown(found.events, found.after, reader.last_seq)


async def _get_schema(context: AdminContext, params: Nothing, body: Nothing) -> dict[str, object] | Response:
    return Response(msgspec.json.encode(schema()), media_type=_JSON_SCHEMA)


def _beginning(reader: JournalReader, params: EventQuery, event_filter: EventFilter) -> int:
    if params.last is UNSET:
        return 0 if params.after is UNSET else params.after
    if params.after is not UNSET:
        raise RefusedError(400, "after and last exclude each other; set one of them")
    return reader.before_last(params.last, event_filter)


async def _lines(
    server: ClusterServer, reader: JournalReader, event_filter: EventFilter, after: int
) -> AsyncIterator[bytes]:
    clock, encode = server.cluster.runtime.clock, msgspec.json.encode
    quiet_since_ms = clock.monotonic_ms()
    yield b"\n"  # send the response headers now: the first event may come late
    while not server.is_stopping:
        found = reader.read(after, event_filter, PAGE_ENTRIES, PAGE_ENTRIES)
        after = found.after
        if found.events:
            yield b"".join(encode(one) + b"\n" for one in found.events)
        elif clock.monotonic_ms() - quiet_since_ms > _SIGN_OF_LIFE_MS:
            yield b"\n"
        else:
            await reader.wait()
            continue
        quiet_since_ms = clock.monotonic_ms()
        await reader.wait()


# fmt: off
# one operation per row
OPERATIONS = (
    Operation.of("GET", _PATH, "Return events, oldest first, or follow them.", _get_journal,
                 errors=(404,), media={_NDJSON: AnyEvent}),
    Operation.of("GET", f"{_PATH}/schema", "Return the JSON Schema of an event.", _get_schema,
                 media={_JSON_SCHEMA: dict[str, object]}),
)
# fmt: on
