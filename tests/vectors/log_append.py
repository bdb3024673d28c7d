"""Sequences of appends to one partition's log: idempotent and transactional producers, repeats, gaps, markers.

`log_append-*.jsonl`. The vectors were generated with a log whose high watermark never moves, so it does not move here.
"""

from collections.abc import Callable

import msgspec

from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.log_manager import LogManager
from sluice.broker.log.log_results import AppendResult
from sluice.broker.log.partition_log import PartitionLog
from sluice.protocol.records.batch import CREATE_TIME, LOG_APPEND_TIME
from sluice.protocol.records.log_validator import CLIENT, COORDINATOR, AppendConfig
from tests.vectors import Vector

PARTITION = "t-0"  # as in the messages of the vectors
TIMESTAMP_TYPES = {"CreateTime": CREATE_TIME, "LogAppendTime": LOG_APPEND_TIME}
CODECS = {"producer": None, "uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
ORIGINS = {"CLIENT": CLIENT, "COORDINATOR": COORDINATOR}
# Kafka's name of a topic config -> our name, and the parser of its text.
CONFIGS: dict[str, tuple[str, Callable[[str], object]]] = {
    "max.message.bytes": ("max_message_bytes", int),
    "message.timestamp.type": ("timestamp_type", TIMESTAMP_TYPES.__getitem__),
    "message.timestamp.before.max.ms": ("before_max_ms", int),
    "message.timestamp.after.max.ms": ("after_max_ms", int),
    "compression.type": ("compression", CODECS.__getitem__),
    "cleanup.policy": ("compacted", lambda policies: "compact" in policies.split(",")),
}
# More than any sequence appends, so that no state is evicted.
MEMORY_BYTES = 64 * 1024 * 1024


class RecordError(msgspec.Struct):
    batch_index: int
    message: str


class Error(msgspec.Struct):
    code: int
    record_errors: list[RecordError] = []


class Event(msgspec.Struct):
    """One append, and the resulting state of the log."""

    t: int
    leader_epoch: int
    origin: str
    what: str
    hex: str
    error: Error | None
    log_end_offset: int
    last_stable_offset: int
    # Only without an error:
    first_offset: int = -1
    last_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1


class Sequence(msgspec.Struct):
    config: dict[str, str]
    transaction_version: int
    events: list[Event]


def check_sequence(vector: Vector) -> list[str]:
    """Append the batches of a vector; return the differences of the first event that differs."""
    sequence = msgspec.convert(vector, Sequence)
    log = LogManager(MEMORY_BYTES).create(PARTITION, log_config(sequence.config))
    for number, event in enumerate(sequence.events):
        result = log.append(
            memoryview(bytearray.fromhex(event.hex)),
            event.t,
            event.leader_epoch,
            ORIGINS[event.origin],
            sequence.transaction_version,
        )
        failures = differences(event, result, log)
        if failures:
            return [f"event {number} ({event.what}): {failure}" for failure in failures]
    return []


def log_config(config: dict[str, str]) -> LogConfig:
    """Return a topic's configuration; an unknown name raises KeyError."""
    fields = {CONFIGS[name][0]: CONFIGS[name][1](value) for name, value in config.items()}
    return LogConfig(msgspec.convert(fields, AppendConfig))


def differences(event: Event, result: AppendResult, log: PartitionLog) -> list[str]:
    """Return the fields in which result or state differ from the event: (name, expected, actual)."""
    fields: list[tuple[str, object, object]] = [
        ("log_end_offset", event.log_end_offset, log.log_end_offset),
        ("last_stable_offset", event.last_stable_offset, log.last_stable_offset),
    ]
    if event.error is None:
        fields += [
            ("error", 0, result.error_code),
            ("first_offset", event.first_offset, result.base_offset),
            ("last_offset", event.last_offset, result.last_offset),
            ("log_append_time", event.log_append_time, result.log_append_time_ms),
            ("log_start_offset", event.log_start_offset, result.log_start_offset),
        ]
    else:
        record_errors = [(error.batch_index, error.message) for error in event.error.record_errors]
        fields += [
            ("error", event.error.code, result.error_code),
            ("record_errors", record_errors, list(result.record_errors)),
        ]
    return [f"{name}: {actual} instead of {expected}" for name, expected, actual in fields if actual != expected]


KINDS = {"log_append-": check_sequence}
