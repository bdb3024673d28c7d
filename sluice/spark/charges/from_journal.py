"""Charges from sluice's journal: JSON events, and the columns of Parquet exports.

Other kinds of event are counted. Produce is charged by the size of the request, Fetch by the size of the response
without its header (broker/throttling/throttler.py).
"""

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Annotated, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from pyarrow import RecordBatch

from sluice.journal_events import KINDS

from .charges import USED, Gathered, Kind, lane_of

_Ints: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
_Bools: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool]]

NO_REQUEST, NOT_CHARGED, UNANSWERED = "other events", "other requests", "requests without an answer"
LOST = "lost by the journal before they were read"
_NS_PER_MS = 1_000_000
_FIRST_FLEXIBLE_FETCH = 12  # from this version the response header has one more byte, which is not charged
_CHARGED: dict[str, Kind] = {"Produce": "Produce", "Fetch": "Fetch"}
_SLACK_NS = 2 * _NS_PER_MS  # by the journal's clock, a delayed response may be up to this early
_LIMITS = {
    "connection": 2**48,
    "version": 255,
    "request_bytes": 2**31,
    "response_bytes": 2**31,
    "throttle_time_ms": 2**31 - 1,
    "started_ns": 2**62,
    "answered_ns": 2**62,
}

_NO_EVENT = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
_Nanos = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class Request(msgspec.Struct, tag_field="kind", tag="request", gc=False):
    """The fields of a request event that a replay needs."""

    broker: int
    connection: Annotated[int, msgspec.Meta(ge=0, le=2**48)]
    client_id: str
    principal: str
    api: str
    version: Annotated[int, msgspec.Meta(ge=0, le=255)]
    started_ns: _Nanos
    answered_ns: _Nanos | None
    request_bytes: _Count
    response_bytes: _Count
    throttle_time_ms: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class _Throttle(msgspec.Struct, tag_field="kind", tag="throttle", gc=False):
    """Also written for requests whose response has no throttle time, such as Produce with acks=0."""

    at_ns: _Nanos
    broker: int
    client_id: str
    principal: str


class _Gap(msgspec.Struct, tag_field="kind", tag="gap", gc=False):
    lost: _Count


COLUMNS = ("kind", "at_ns", *Request.__struct_fields__, *_Gap.__struct_fields__)

_READ = {"request", "throttle", "gap"}
_others = [msgspec.defstruct(f"_{tag}", [], tag_field="kind", tag=tag) for tag in KINDS if tag not in _READ]
_decoder = msgspec.json.Decoder(reduce(or_, _others, Request | _Throttle | _Gap))


def take_lines(lines: bytes, gathered: Gathered) -> bool:
    try:
        events = _decoder.decode_lines(lines)
    except _NO_EVENT:
        return False
    for event in events:
        _take(event, gathered)
    return True


def take_line(line: bytes, gathered: Gathered) -> str | None:
    """Add one line; return the reason if it is invalid."""
    try:
        event = _decoder.decode(line)
    except msgspec.ValidationError as error:
        return _why_not(line, error)
    except _NO_EVENT as error:
        return f"not JSON: {error}"
    _take(event, gathered)
    return None


def _why_not(line: bytes, error: msgspec.ValidationError) -> str:
    found: object = msgspec.json.decode(line)
    kind = found.get("kind") if isinstance(found, dict) else None
    if isinstance(kind, str) and kind in KINDS:
        return f"{kind} event of another journal version: {error}"
    return _unknown(kind) if isinstance(found, dict) else "not a journal event: expected a JSON object"


def _unknown(kind: object) -> str:
    return "not a journal event: no kind" if kind is None else f"not a journal event: unknown kind {kind}"


def _take(event: object, gathered: Gathered) -> None:
    if type(event) is not Request:
        if type(event) is _Gap:
            gathered.counts[LOST] += event.lost
        else:
            gathered.counts[NO_REQUEST] += 1
        if type(event) is _Throttle:
            gathered.mark_throttled(event.broker, event.principal, event.client_id, event.at_ns)
        return
    kind, answered_ns, throttle_ms = _CHARGED.get(event.api), event.answered_ns, event.throttle_time_ms
    if kind is None:
        gathered.counts[NOT_CHARGED] += 1
    elif answered_ns is None:
        gathered.counts[UNANSWERED] += 1
    else:
        value = event.request_bytes
        if kind == "Fetch":
            value = max(0, event.response_bytes - (event.version >= _FIRST_FLEXIBLE_FETCH))
        if throttle_ms:
            if answered_ns - event.started_ns >= throttle_ms * _NS_PER_MS - _SLACK_NS:
                answered_ns -= throttle_ms * _NS_PER_MS  # the response was delayed, after the charge
            elif kind == "Fetch":
                value = 0  # the connection was muted, after an empty response
        columns = gathered.columns(kind, event.broker, event.principal, event.client_id)
        columns.append(answered_ns, value, lane_of(event.connection, event.version), throttle_ms)
        gathered.counts[USED] += 1


def take_batch(batch: RecordBatch, source: str, first_row: int, gathered: Gathered) -> None:
    """Add rows of a Parquet export: the columns `COLUMNS`, null where a kind of event has no such field."""
    rows = np.arange(first_row, first_row + len(batch))
    kinds = np.asarray(batch.column("kind").to_numpy(zero_copy_only=False), object)
    for kind in set(kinds.tolist()):
        of_kind = np.array([each == kind for each in kinds], bool)
        if kind not in KINDS:
            _quarantine(batch, rows, of_kind, _unknown(kind), source, gathered)
        elif kind == "gap":
            gathered.counts[LOST] += int(_ints(batch, "lost")[of_kind].sum())
        elif kind != "request":
            gathered.counts[NO_REQUEST] += int(of_kind.sum())
        if kind == "throttle":
            marks = batch.filter(pa.array(of_kind)).select(["broker", "principal", "client_id", "at_ns"]).drop_null()
            for broker, principal, client_id, at_ns in zip(*marks.to_pydict().values(), strict=True):
                gathered.mark_throttled(broker, principal, client_id, at_ns)
    is_request = kinds == "request"
    whole = _are_whole(batch)
    _quarantine(
        batch,
        rows,
        is_request & ~whole,
        "request event of another journal version: a field is null or out of range",
        source,
        gathered,
    )
    apis = np.asarray(batch.column("api").to_numpy(zero_copy_only=False), object)
    is_charged = (apis == "Produce") | (apis == "Fetch")
    answered = batch.column("answered_ns").is_valid().to_numpy(zero_copy_only=False)
    gathered.counts[NOT_CHARGED] += int((is_request & whole & ~is_charged).sum())
    gathered.counts[UNANSWERED] += int((is_request & whole & is_charged & ~answered).sum())
    used = is_request & whole & is_charged & answered
    gathered.counts[USED] += int(used.sum())
    if used.any():
        _take_columns(batch.filter(pa.array(used)), gathered)


def _are_whole(batch: RecordBatch) -> _Bools:
    whole = np.ones(len(batch), bool)
    for name in Request.__struct_fields__:
        if name != "answered_ns":
            whole &= batch.column(name).is_valid().to_numpy(zero_copy_only=False)
    for name, most in _LIMITS.items():
        values = _ints(batch, name)
        whole &= (values >= 0) & (values <= most)
    return whole


def _take_columns(batch: RecordBatch, gathered: Gathered) -> None:
    numbers = {name: _ints(batch, name) for name in _LIMITS}
    is_fetch = batch.column("api").to_numpy(zero_copy_only=False) == "Fetch"
    waits_ns = numbers["throttle_time_ms"] * _NS_PER_MS
    delayed = (waits_ns > 0) & (numbers["answered_ns"] - numbers["started_ns"] >= waits_ns - _SLACK_NS)
    at_ns = numbers["answered_ns"] - np.where(delayed, waits_ns, 0)
    fetched = np.maximum(numbers["response_bytes"] - (numbers["version"] >= _FIRST_FLEXIBLE_FETCH), 0)
    fetched[(waits_ns > 0) & ~delayed] = 0
    value = np.where(is_fetch, fetched, numbers["request_bytes"])
    lane = lane_of(numbers["connection"], numbers["version"])
    throttle_ms = numbers["throttle_time_ms"].astype(np.int32)
    for whose, rows in _by_client(batch):
        columns = gathered.columns(*whose)
        columns.extend(at_ns[rows], value[rows], lane[rows], throttle_ms[rows])


def _by_client(batch: RecordBatch) -> Iterator[tuple[tuple[Kind, int, str, str], _Ints]]:
    codes = np.zeros(len(batch), np.int64)
    names = [batch.column(name).dictionary_encode() for name in ("api", "broker", "principal", "client_id")]
    for column in names:
        codes = codes * len(column.dictionary) + column.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.diff(codes[order])) + 1
    for rows in np.split(order, ends):
        api, broker, principal, client_id = (column[int(rows[0])].as_py() for column in names)
        yield (api, broker, principal, client_id), rows


def _ints(batch: RecordBatch, name: str) -> _Ints:
    return np.asarray(batch.column(name).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def _quarantine(batch: RecordBatch, rows: _Ints, which: _Bools, reason: str, source: str, gathered: Gathered) -> None:
    for index in np.flatnonzero(which):
        values = {name: column[int(index)].as_py() for name, column in zip(COLUMNS, batch.columns, strict=True)}
        gathered.quarantine(source, int(rows[index]), reason, msgspec.json.encode(values).decode())
