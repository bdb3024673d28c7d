"""What is done to all logs of a broker together."""

from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.log_manager import LogManager
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.log_validator import AppendConfig
from sluice.protocol.records.record import Record

NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(AppendConfig(), retention_ms=1000, producer_id_expiration_ms=500)


def managed(*names: str) -> LogManager:
    """Logs of one batch each, of producer 5, below the high watermark."""
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
    logs = managed("a-0", "a-1")
    assert logs.enforce_retention(NOW_MS + 1000) == 0
    assert logs.enforce_retention(NOW_MS + 1001) == 2
    assert [log.log_start_offset for log in logs] == [1, 1]


def test_producers_expire_in_every_log() -> None:
    logs = managed("a-0", "a-1")
    logs.expire_producers(NOW_MS + 499)
    answers = [log.append(idempotent(7), NOW_MS, 0).error_code for log in logs]
    assert answers == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * 2
    logs.expire_producers(NOW_MS + 500)
    assert [log.append(idempotent(7), NOW_MS, 0).error_code for log in logs] == [ErrorCode.NONE] * 2


def test_a_deleted_log_gives_its_memory_back() -> None:
    logs = managed("a-0", "a-1")
    half = logs.budget.used_bytes // 2
    logs.delete("a-0")
    assert [log.name for log in logs] == ["a-1"]
    assert logs.budget.used_bytes == half
