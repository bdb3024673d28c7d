"""The `throttle` job: traffic and throttle times of clients per window, from the journal.

It reads the journal's topic with Structured Streaming. A row is one window of event time of one broker, user, client id
and API. Spark drops and counts late events. Records that are not journal events go to the quarantine in a separate
query, so that both outputs are exactly once.

Bytes are counted on the wire, and as byte quotas count them (`quota_bytes`): Produce by the request, Fetch by the
response. The empty response of a throttled fetch counts 0 (KIP-219, Fetch since version 8); the delayed response of an
older version counts.

Throttle times come from `throttle` events, or `shadow-throttle` ones, so they include requests without a response.
"""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from sluice.journal_events import Gap, Request, ShadowThrottle, Throttle
from sluice.spark.events import EVENT, REASON

from .byte_quotas import ByteQuotas, byte_quota

CLIENT_ID = "sluice-pipeline-throttle"
KINDS = (Request, Throttle, ShadowThrottle, Gap)
_FIRST_MUTED_FETCH = 8
_FIRST_FLEXIBLE_FETCH = 12
_NS_PER_MS, _NS_PER_US = 1_000_000, 1_000
_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
# A rank error of 1/10,000: percentiles of up to 10,000 events in a window are exact.
_ACCURACY = 10_000


class Windows(NamedTuple):
    """The windows of events; both fields are intervals such as "10 seconds"."""

    length: str = "10 seconds"
    lateness: str = "10 seconds"


def windows(records: DataFrame, settings: Windows, quotas: ByteQuotas) -> DataFrame:
    events = records.where(f.col(REASON).isNull()).select(f"{EVENT}.*")
    noted = events.observe(
        "journal", f.count(f.lit(1)).alias("events"), f.coalesce(f.sum("lost"), f.lit(0)).alias("lost")
    )
    at = f.timestamp_micros(f.expr(f"at_ns div {_NS_PER_US}"))
    user = f.regexp_replace("principal", "^User:", "")
    seen = (
        noted.where(f.col("kind").isin(_tag(Request), *_THROTTLES))
        .withColumn("at", at)
        .withColumn("user", user)
        .withWatermark("at", settings.lateness)
    )
    grouped = seen.groupBy(f.window("at", settings.length), "broker", "user", "client_id", "api").agg(*_aggregates())
    return grouped.select(*_columns(quotas))


def _aggregates() -> list[Column]:
    is_request = f.col("kind") == _tag(Request)
    is_throttle = f.col("kind").isin(*_THROTTLES)
    throttle_ms = f.when(is_throttle, f.col("throttle_time_ms"))
    latency_ms = (
        f.col("answered_ns") - f.col("received_ns")
    ) / _NS_PER_MS  # null for a throttle, or without a response
    codes = f.when(is_request & (f.size("error_codes") > 0), f.col("error_codes"))
    return [
        f.count_if(is_request).alias("requests"),
        f.count_if(is_request & f.col("answered_ns").isNull()).alias("unanswered"),
        f.count(codes).alias("errors"),
        f.array_sort(f.array_distinct(f.flatten(f.collect_set(codes)))).alias("error_codes"),
        _or_0(f.sum("request_bytes")).alias("request_bytes"),
        _or_0(f.sum("response_bytes")).alias("response_bytes"),
        _or_0(f.sum(_quota_bytes())).alias("quota_bytes"),
        f.count(throttle_ms).alias("throttled"),
        _or_0(f.sum(throttle_ms)).alias("throttle_ms_sum"),
        f.avg(throttle_ms).alias("throttle_ms_avg"),
        f.max(throttle_ms).alias("throttle_ms_max"),
        f.percentile_approx(latency_ms, list(_PERCENTILES.values()), _ACCURACY).alias("latency_ms"),
        f.max(latency_ms).alias("latency_ms_max"),
    ]


def _quota_bytes() -> Column:
    is_empty = (f.col("version") >= _FIRST_MUTED_FETCH) & (f.col("throttle_time_ms") > 0)
    # Kafka's FetchResponse.sizeOf does not include the header's tagged fields, which are one byte.
    tagged_fields = f.when(f.col("version") >= _FIRST_FLEXIBLE_FETCH, 1).otherwise(0)
    is_request = f.col("kind") == _tag(Request)
    return f.when(is_request & (f.col("api") == "Produce"), f.col("request_bytes")).when(
        is_request & (f.col("api") == "Fetch") & (f.col("response_bytes") > 0) & ~is_empty,
        f.col("response_bytes") - tagged_fields,
    )


def _columns(quotas: ByteQuotas) -> list[Column]:
    seconds = f.expr("(unix_micros(window.end) - unix_micros(window.start)) / 1e6")
    names = ("requests", "unanswered", "errors", "error_codes", "request_bytes", "response_bytes", "quota_bytes")
    percentiles = [f.col("latency_ms")[index].alias(f"latency_ms_{name}") for index, name in enumerate(_PERCENTILES)]
    return [
        f.col("window.start").alias("start"),
        f.col("window.end").alias("end"),
        *map(f.col, ("broker", "user", "client_id", "api", *names)),
        (f.col("quota_bytes") / seconds).alias("rate"),
        byte_quota(quotas, f.col("api"), f.col("user"), f.col("client_id")).alias("quota"),
        *map(f.col, ("throttled", "throttle_ms_sum", "throttle_ms_avg", "throttle_ms_max")),
        *percentiles,
        f.col("latency_ms_max"),
    ]


def _or_0(total: Column) -> Column:
    return f.coalesce(total, f.lit(0))


def _tag(kind: type[Request | Throttle | ShadowThrottle]) -> str:
    return str(kind.__struct_config__.tag)


_THROTTLES = (_tag(Throttle), _tag(ShadowThrottle))  # a journal has only those of one kind
