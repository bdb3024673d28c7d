"""Charges from journal events in both formats, and invalid events."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from sluice.cli.journal.export import writer_of
from sluice.journal_events import AnyEvent, BrokerState, Gap, Request, Throttle
from sluice.spark.charges import from_journal
from sluice.spark.charges.charges import QUARANTINED, USED, By, Client, Gathered
from tests.support import journal_lines
from tests.support.packed_charges import Row, rows_of

MS = 1_000_000
ALL = 10**6


def produced(**changes: object) -> Request:
    usual: dict[str, object] = {"broker": 2, "connection": 3, "client_id": "shop", "principal": "User:bob"}
    event = journal_lines.produced(7 * MS, **usual, received_ns=4 * MS, started_ns=5 * MS)
    return msgspec.structs.replace(event, **changes)


def fetched(**changes: object) -> Request:
    return produced(**{"api": "Fetch", "api_key": 1, **changes})


def read_ndjson(events: list[AnyEvent], folder: Path) -> Gathered:
    gathered = Gathered("client-id", ALL)
    assert from_journal.take_lines(b"".join(msgspec.json.encode(event) + b"\n" for event in events), gathered)
    return gathered


def read_parquet(events: list[AnyEvent], folder: Path) -> Gathered:
    """Read events that the export's writer has written."""
    from pyarrow import parquet

    file = folder / "journal.parquet"
    writer_of(str(file))(str(file), [msgspec.json.encode(event).decode() for event in events])
    gathered = Gathered("client-id", ALL)
    for batch in parquet.ParquetFile(file).iter_batches(columns=from_journal.COLUMNS):
        from_journal.take_batch(batch.select(from_journal.COLUMNS), "journal.parquet", 0, gathered)
    return gathered


both_formats = pytest.mark.parametrize("read", [read_ndjson, read_parquet], ids=["as NDJSON", "as Parquet"])


CHARGES = {
    "a Produce request is charged by its size": (produced(), (7 * MS, 100, 3 * 256 + 9, 0)),
    "with acks=0 too": (produced(response_bytes=0), (7 * MS, 100, 3 * 256 + 9, 0)),
    "a fetch is charged by its response": (fetched(version=11), (7 * MS, 60, 3 * 256 + 11, 0)),
    "without the tagged fields of the header": (fetched(version=12), (7 * MS, 59, 3 * 256 + 12, 0)),
    "a delayed response was charged before the delay": (
        produced(answered_ns=40 * MS, throttle_time_ms=30),
        (10 * MS, 100, 3 * 256 + 9, 30),
    ),
    "otherwise the charge is at the response": (produced(throttle_time_ms=30), (7 * MS, 100, 3 * 256 + 9, 30)),
    "a muted fetch is charged 0": (fetched(throttle_time_ms=30), (7 * MS, 0, 3 * 256 + 9, 30)),
    "a delayed fetch is charged": (fetched(answered_ns=40 * MS, throttle_time_ms=30), (10 * MS, 60, 3 * 256 + 9, 30)),
}


@both_formats
@pytest.mark.parametrize(("event", "row"), CHARGES.values(), ids=CHARGES)
def test_a_charge(event: Request, row: Row, read: Callable[[list[AnyEvent], Path], Gathered], tmp_path: Path) -> None:
    # The other kind of event gives every Parquet column a type.
    gathered = read([event, BrokerState(seq=2, at_ns=1, broker=2, state="running")], tmp_path)
    assert rows_of(gathered) == {Client("Fetch" if event.api == "Fetch" else "Produce", "2", "", "shop"): [row]}


@both_formats
def test_other_events_are_counted(read: Callable[[list[AnyEvent], Path], Gathered], tmp_path: Path) -> None:
    events: list[AnyEvent] = [
        produced(),
        produced(api="Metadata", api_key=3),
        produced(answered_ns=None, written_ns=None),
        Gap(seq=5, at_ns=1, broker=-1, lost=9),
        BrokerState(seq=6, at_ns=1, broker=2, state="running"),
    ]
    counts = read(events, tmp_path).counts
    assert {name: count for name, count in counts.items() if count} == {
        USED: 1,
        from_journal.NOT_CHARGED: 1,
        from_journal.UNANSWERED: 1,
        from_journal.NO_REQUEST: 1,
        from_journal.LOST: 9,
    }


@both_formats
def test_a_throttled_request_without_a_throttle_time_marks_its_client(
    read: Callable[[list[AnyEvent], Path], Gathered], tmp_path: Path
) -> None:
    request = produced(response_bytes=0)  # acks=0
    fields = {name: getattr(request, name) for name in Throttle.__struct_fields__ if hasattr(request, name)}
    throttle = Throttle(**fields | {"at_ns": 8 * MS, "quota": "Produce", "throttle_time_ms": 30})
    mark = (8 * MS, 0, 0, 1)
    gathered = read([request, throttle, BrokerState(seq=2, at_ns=1, broker=2, state="running")], tmp_path)
    assert gathered.counts[from_journal.NO_REQUEST] == 2
    assert {client: sorted(rows) for client, rows in rows_of(gathered).items()} == {
        Client("Produce", "2", "", "shop"): [(7 * MS, 100, 3 * 256 + 9, 0), mark],
        Client("Fetch", "2", "", "shop"): [mark],
    }


LEVELS = {
    "by client id": ("client-id", "", "shop"),
    "by user": ("user", "bob", ""),
    "by both": ("user+client-id", "bob", "shop"),
}


@pytest.mark.parametrize(("by", "user", "client_id"), LEVELS.values(), ids=LEVELS)
def test_rows_are_grouped_by_the_level_of_the_quota(by: By, user: str, client_id: str) -> None:
    gathered = Gathered(by, ALL)
    assert from_journal.take_line(msgspec.json.encode(produced()), gathered) is None
    assert list(rows_of(gathered)) == [Client("Produce", "2", user, client_id)]


INVALID_LINES = {
    "a truncated line": (b"{", "not JSON"),
    "not an object": (b"[1]", "expected a JSON object"),
    "an object without a kind": (b'{"seq": 1}', "no kind"),
    "an unknown kind": (b'{"kind": "party"}', "unknown kind party"),
    "a missing field": (b'{"kind": "request"}', "request event of another journal version"),
    "a field of another type": (
        msgspec.json.encode(produced()).replace(b'"version":9', b'"version":"9"'),
        "request event of another journal version",
    ),
    "a negative size": (msgspec.json.encode(produced(request_bytes=-1)), "`int` >= 0"),
    "invalid UTF-8": (b'{"kind": "request", "client_id": "\xff"}', "not JSON"),
    "a kind that is not a string": (b'{"kind": ["request"]}', "unknown kind ['request']"),
    "JSON nested too deeply": (b'{"kind":' + b"[" * 100_000, "not JSON"),
    "a time out of range": (
        msgspec.json.encode(produced()).replace(b'"answered_ns":7', b'"answered_ns":99999999999999'),
        "<= ",
    ),
}


@pytest.mark.parametrize(("line", "reason"), INVALID_LINES.values(), ids=INVALID_LINES)
def test_an_invalid_line_has_a_reason(line: bytes, reason: str) -> None:
    gathered = Gathered("client-id", ALL)
    assert not from_journal.take_lines(line, gathered)
    found = from_journal.take_line(line, gathered)
    assert found is not None
    assert reason in found
    assert gathered.counts == {}


def test_unknown_fields_are_ignored() -> None:
    line = msgspec.json.encode(produced()).replace(b'"version"', b'"colour":{"red":1},"version"')
    assert from_journal.take_line(line, Gathered("client-id", ALL)) is None


INVALID_ROWS = {
    "an unknown kind": ({"kind": "party"}, "unknown kind party"),
    "no kind": ({"kind": None}, "no kind"),
    "a null": ({"client_id": None}, "null or out of range"),
    "a negative size": ({"request_bytes": -1}, "null or out of range"),
    "a version out of range": ({"version": 300}, "null or out of range"),
}


@pytest.mark.parametrize(("changes", "reason"), INVALID_ROWS.values(), ids=INVALID_ROWS)
def test_an_invalid_row_is_quarantined(changes: dict[str, object], reason: str) -> None:
    good = {"kind": "request", **{name: getattr(produced(), name, 0) for name in from_journal.COLUMNS[1:]}}
    rows = [good, good | changes, good]
    batch = pa.RecordBatch.from_pylist(rows, pa.RecordBatch.from_pylist([good]).schema)
    gathered = Gathered("client-id", ALL)
    from_journal.take_batch(batch.select(from_journal.COLUMNS), "a.parquet", 40, gathered)
    charges, (bad,) = gathered.take()
    assert (bad.source, bad.position) == ("a.parquet", 41)
    assert reason in bad.reason
    assert msgspec.json.decode(bad.text) == good | changes
    assert gathered.counts[USED] == 2
    assert gathered.counts[QUARANTINED] == 1
    assert list(charges) == [Client("Produce", "2", "", "shop")]
