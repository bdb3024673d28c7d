"""The `backoff` job: verdicts on how a fleet's clients back off, from the journal, by the judge of the audit.

It reads the journal's topic with Structured Streaming. The state of a client host is its current span (spans.py) and
events newer than the watermark. Events are processed in journal order when the watermark has passed them; Spark drops
and counts later ones.

Exactly once: the checkpoint has the state and the position, and only files of complete batches are valid.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from sluice.journal_events import decode
from sluice.spark.events import EVENT, REASON

from .rows import VerdictRow, rows_of, rows_of_journal
from .spans import KINDS, Host, HostEvent, Limits, by_time

CLIENT_ID = "sluice-pipeline-backoff"
_NS_PER_MS, _NS_PER_US = 1_000_000, 1_000
_SQL: dict[object, str] = {
    str: "string",
    int: "bigint",
    list[float]: "array<double>",
    str | None: "string",
    float | None: "double",
}
ROWS = ", ".join(f"{name} {_SQL[type_]}" for name, type_ in VerdictRow.__annotations__.items())
_STATE = "kept binary"


class JobSettings(NamedTuple):
    """The settings of the job.

    client_settings: the settings of all clients, by Kafka's names
    lateness: how late an event may arrive, an interval such as "10 seconds"
    """

    client_settings: Mapping[str, float]
    limits: Limits = Limits()
    lateness: str = "10 seconds"


class HostState(msgspec.Struct):
    """The state of one host: its span, and the events that are newer than the watermark."""

    host: Host
    waiting: list[HostEvent] = []


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(HostState)


def rows(records: DataFrame, settings: JobSettings) -> DataFrame:
    """Return a stream of verdict rows, each exactly once, from the records of journal_topic.py."""

    def follow(key: tuple[str], frames: Iterable[pd.DataFrame], group_state: GroupState) -> Iterator[pd.DataFrame]:
        state = _load_state(group_state)
        state.waiting += _events(frames)
        found = list(_advance(key[0], state, group_state.getCurrentWatermarkMs() * _NS_PER_MS, settings))
        _store_state(state, group_state, settings)
        if found:
            yield _frame(found)

    lines = _lines(records).withWatermark("at", settings.lateness)
    timeout = GroupStateTimeout.EventTimeTimeout
    found = lines.groupBy("host").applyInPandasWithState(follow, ROWS, _STATE, "append", timeout)
    return found.observe("verdicts", f.count(f.lit(1)).alias("verdicts"))


def rows_at_once(records: DataFrame, settings: JobSettings) -> DataFrame:

    def judge(key: tuple[str], frame: pd.DataFrame) -> pd.DataFrame:
        return _frame(list(rows_of_journal(key[0], _events([frame]), settings.client_settings, settings.limits)))

    return _lines(records).groupBy("host").applyInPandas(judge, ROWS)


def _lines(records: DataFrame) -> DataFrame:
    """Return the events of clients, and count all events."""
    events = records.where(f.col(REASON).isNull())
    noted = events.observe(
        "journal", f.count(f.lit(1)).alias("events"), f.coalesce(f.sum(f"{EVENT}.lost"), f.lit(0)).alias("lost")
    )
    of_clients = noted.where(f.col(f"{EVENT}.kind").isin(*(str(kind.__struct_config__.tag) for kind in KINDS)))
    return of_clients.select(
        f.timestamp_micros(f.expr(f"{EVENT}.at_ns div {_NS_PER_US}")).alias("at"),
        f.regexp_extract(f"{EVENT}.peer", "^(.*):", 1).alias("host"),
        f.col("value").cast("string").alias("line"),
    )


def _advance(host: str, state: HostState, until_ns: int, settings: JobSettings) -> Iterator[VerdictRow]:
    ready = sorted((event for event in state.waiting if event.at_ns < until_ns), key=by_time)
    state.waiting = [event for event in state.waiting if event.at_ns >= until_ns]
    for event in ready:
        yield from rows_of(host, state.host.take(event, settings.limits), settings.client_settings)
    yield from rows_of(host, state.host.ended_by(until_ns - 1, settings.limits), settings.client_settings)


def _load_state(group_state: GroupState) -> HostState:
    if not group_state.exists:
        return HostState(Host())
    return _decoder.decode(group_state.get[0])


def _store_state(state: HostState, group_state: GroupState, settings: JobSettings) -> None:
    if not (state.waiting or state.host.span or state.host.open):
        if group_state.exists:
            group_state.remove()
        return
    group_state.update((_encoder.encode(state),))
    moments_ns = [event.at_ns for event in state.waiting]
    if state.host.span:
        moments_ns.append(state.host.ends_ns(settings.limits))
    if moments_ns:
        # Round up, as Spark requires a timeout after the watermark, which is in whole milliseconds.
        group_state.setTimeoutTimestamp(min(moments_ns) // _NS_PER_MS + 2)


def _events(frames: Iterable[pd.DataFrame]) -> list[HostEvent]:
    found = [decode(line) for frame in frames for line in frame["line"]]
    return [event for event in found if isinstance(event, KINDS)]


def _frame(found: list[VerdictRow]) -> pd.DataFrame:
    return pd.DataFrame(found, columns=list(VerdictRow._fields))
