"""`/api/v1/journal` of the admin port: what happened, as JSON, and as NDJSON while it happens."""

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
_NO_JOURNAL = "there is no journal: sluice.journal.events is 0; 16384 keeps so many events"
_NDJSON, _JSON_SCHEMA = "application/x-ndjson", "application/schema+json"


# Told in the document alone: what is none of them is refused by who reads them (journal/reader.py), with all of them.
_Api = Annotated[str, Meta(extra_json_schema={"enum": [*API_NAMES]})]
_Kind = Annotated[str, Meta(extra_json_schema={"enum": [*KINDS]})]
_NodeId = Annotated[str, Meta(extra_json_schema={"pattern": "^[0-9]+$"})]


class Filters(msgspec.Struct, forbid_unknown_fields=True):
    """Which events; each may come several times."""

    client_id: list[str] = []
    api: list[_Api] = []
    kind: list[_Kind] = []
    broker: list[_NodeId] = []

    @property
    def event_filter(self) -> EventFilter:
        """Raises ValueError, one line that says what is accepted."""
        given = {"client_id": self.client_id, "api": self.api, "kind": self.kind, "broker": self.broker}
        return parse_event_filter({name: values for name, values in given.items() if values})


class EventQuery(Filters):
    """Which events: filters, each of which may come several times, and where to begin and end.

    after: events after this one; without it, from the oldest that is kept
    last: instead of it: the last so many of those that are wanted
    limit: at most so many
    follow: an event a line, without end; an empty line now and then says that the broker is there
    """

    after: Annotated[int, Meta(ge=0, le=2**63 - 1)] | UnsetType = UNSET
    last: Annotated[int, Meta(ge=0, le=2**31 - 1)] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=_MOST)] = _LIMIT
    follow: bool = False


class JournalShown(msgspec.Struct):
    """Some events.

    after: what to ask for next: events after this one
    last: the number of the newest event that there is
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
        raise RefusedError(400, "after and last exclude each other")
    return reader.before_last(params.last, event_filter)


async def _lines(
    server: ClusterServer, reader: JournalReader, event_filter: EventFilter, after: int
) -> AsyncIterator[bytes]:
    """An event a line, until the client goes or the broker stops."""
    clock, encode = server.cluster.clock, msgspec.json.encode
    quiet_since_ms = clock.monotonic_ms()
    yield b"\n"  # it is accepted: there may be nothing to tell for long
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
# A row of a table is read across, not down.
OPERATIONS = (
    Operation.of("GET", _PATH, "What happened, oldest first; or what happens, as it does.", _get_journal,
                 params=EventQuery, body=Nothing, answer=JournalShown, errors=(404,), media={_NDJSON: AnyEvent}),
    Operation.of("GET", f"{_PATH}/schema", "The JSON Schema of an event.", _get_schema,
                 params=Nothing, body=Nothing, answer=dict[str, object], media={_JSON_SCHEMA: dict[str, object]}),
)
# fmt: on
