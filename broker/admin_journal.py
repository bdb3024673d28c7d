"""`/api/v1/journal` of the admin port: what happened, as JSON, and as NDJSON while it happens.

GET /api/v1/journal?client_id=&api=&kind=&broker=   filters, each of which may come several times
    &after=SEQ     events after this one; without it, from the oldest that is kept
    &last=N        instead of it: the last N of those that are wanted
    &limit=N       at most so many, 1,000 if it is not said
    &follow=true   an event a line, without end; an empty line now and then says that the broker is there
GET /api/v1/journal/schema   the JSON Schema of an event
"""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import msgspec
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from sluice.journal_events import schema

from .journal.reader import FILTERS, SLICE, JournalReader, Wanted, parse_wanted

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from .cluster_server import ClusterServer

_LIMIT, _MOST = 1000, 10_000
_NUMBERS = {"after": (0, 2**63 - 1), "last": (0, 2**31 - 1), "limit": (1, _MOST)}
_SIGN_OF_LIFE_MS = 5_000
_NO_JOURNAL = "there is no journal: sluice.journal.events is 0; 16384 keeps so many events"


class _Asked(msgspec.Struct):
    wanted: Wanted
    after: int
    limit: int
    follow: bool


def routes(server: "ClusterServer", refused: "Callable[[Request], Response | None]") -> list[Route]:
    """What the admin port serves of the journal; `refused` answers who may not ask."""
    journal = server.cluster.journal
    reader = None if journal is None else JournalReader(journal, server.cluster.clock)

    async def get_journal(request: "Request") -> Response:
        if (refusal := refused(request)) is not None:
            return refusal
        if reader is None:
            return _problem(_NO_JOURNAL, 404)
        try:
            asked = _asked(reader, parse_qs(request.url.query, keep_blank_values=True))
        except ValueError as error:
            return _problem(str(error), 400)
        if asked.follow:
            return StreamingResponse(_lines(server, reader, asked), media_type="application/x-ndjson")
        found = reader.read(asked.after, asked.wanted, asked.limit)
        body = msgspec.json.encode({"events": found.events, "after": found.after, "last": reader.last_seq})
        return Response(body, media_type="application/json")

    async def get_schema(request: "Request") -> Response:
        return refused(request) or JSONResponse(schema(), media_type="application/schema+json")

    return [Route("/api/v1/journal", get_journal), Route("/api/v1/journal/schema", get_schema)]


def _asked(reader: JournalReader, query: dict[str, list[str]]) -> _Asked:
    accepted = (*FILTERS, *_NUMBERS, "follow")
    unknown = sorted(query.keys() - set(accepted))
    if unknown:
        raise ValueError(f"{unknown[0]} is not accepted; what is are {', '.join(accepted)}")
    wanted = parse_wanted({name: values for name, values in query.items() if name in FILTERS})
    numbers = {name: _number(name, query[name][-1]) for name in _NUMBERS if name in query}
    if "after" in numbers and "last" in numbers:
        raise ValueError("after and last exclude each other")
    follow = query.get("follow", ["false"])[-1]
    if follow not in ("true", "false"):
        raise ValueError(f"follow={follow}: must be true or false")
    after = reader.before_last(numbers["last"], wanted) if "last" in numbers else numbers.get("after", 0)
    return _Asked(wanted, after, numbers.get("limit", _LIMIT), follow == "true")


def _number(name: str, text: str) -> int:
    first, last = _NUMBERS[name]
    if not (text.isascii() and text.isdecimal() and first <= int(text) <= last):
        raise ValueError(f"{name}={text}: must be a number from {first} to {last}")
    return int(text)


async def _lines(server: "ClusterServer", reader: JournalReader, asked: _Asked) -> AsyncIterator[bytes]:
    """An event a line, until the client goes or the broker stops."""
    clock, encode = server.cluster.clock, msgspec.json.encode
    after, quiet_since_ms = asked.after, clock.monotonic_ms()
    yield b"\n"  # it is accepted: there may be nothing to tell for long
    while not server.is_stopping:
        found = reader.read(after, asked.wanted, SLICE, SLICE)
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


def _problem(message: str, status: int) -> Response:
    return JSONResponse({"error": message}, status_code=status)
