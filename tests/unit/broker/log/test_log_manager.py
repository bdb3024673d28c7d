"""Operations on all logs of a broker."""

from errno import ENOSPC

from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.log_manager import LogManager
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.log_validator import AppendConfig
from sluice.protocol.records.record import Record

NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(AppendConfig(), retention_ms=1000, producer_id_expiration_ms=500)


def manager_with_logs(*names: str) -> LogManager:
    """Return logs with one committed batch of producer 5 each."""
    logs = LogManager(1024 * 1024)
    for name in names:
        log = logs.create(name, CONFIG)
        assert log.append(idempotent(0), NOW_MS, 0).error_code == ErrorCode.NONE
        log.advance_high_watermark(1)
    return logs


def idempotent(sequence: int) -> memoryview:
    record = Record(0, NOW_MS, None, b"value")
    return memoryview(bytearray(build_batch([record], producer_id=5, producer_epoch=0, base_sequence=sequence)))


def test_retention_is_applied_to_every_log() -> None:
    logs = manager_with_logs("a-0", "a-1")
    assert logs.enforce_retention(NOW_MS + 1000) == 0
    assert logs.enforce_retention(NOW_MS + 1001) == 2
    assert [log.log_start_offset for log in logs] == [1, 1]


def test_producers_expire_in_every_log() -> None:
    logs = manager_with_logs("a-0", "a-1")
    logs.expire_producers(NOW_MS + 499)
    results = [log.append(idempotent(7), NOW_MS, 0).error_code for log in logs]
    assert results == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * 2
    logs.expire_producers(NOW_MS + 500)
    assert [log.append(idempotent(7), NOW_MS, 0).error_code for log in logs] == [ErrorCode.NONE] * 2


def test_deleting_a_log_releases_its_memory() -> None:
    logs = manager_with_logs("a-0", "a-1")
    half = logs.budget.used_bytes // 2
    logs.delete("a-0")
    assert [log.name for log in logs] == ["a-1"]
    assert logs.budget.used_bytes == half


def test_injected_append_errors_apply_to_matching_logs_and_to_logs_created_later() -> None:
    logs = manager_with_logs("a-0", "b-0")
    disk_full = OSError(ENOSPC, "No space left on device", "a-0")
    end_rule = logs.fail_appends(lambda name: disk_full if name.startswith("a-") else None)
    end_other_rule = logs.fail_appends(lambda name: None)
    logs.create("a-1", CONFIG)
    for _ in range(2):
        results = {log.name: log.append(batch(), NOW_MS, 0) for log in logs}
        assert {name: result.error_code for name, result in results.items()} == {
            "a-0": ErrorCode.KAFKA_STORAGE_ERROR,
            "a-1": ErrorCode.KAFKA_STORAGE_ERROR,
            "b-0": ErrorCode.NONE,
        }
        assert results["a-0"].reason == "a-0: No space left on device"
    assert {log.name: log.log_end_offset for log in logs} == {"a-0": 1, "b-0": 3, "a-1": 0}
    end_rule()
    assert [log.append(batch(), NOW_MS, 0).error_code for log in logs] == [ErrorCode.NONE] * 3
    end_other_rule()


def test_append_rule_that_never_matches_does_not_start_extra_segments() -> None:
    logs = LogManager(1024 * 1024)
    log = logs.create("a-0", CONFIG)
    logs.fail_appends(lambda name: None)
    for _ in range(100):
        log.append(batch(), NOW_MS, 0)
    assert log.log_end_offset == 100
    assert len(log.segments) < 10


def batch() -> memoryview:
    return memoryview(bytearray(build_batch([Record(0, NOW_MS, None, b"value")])))
