"""The space that is reserved for the metadata log on a full disk."""

import errno
import os
from pathlib import Path
from typing import NamedTuple

import pytest

from sluice.broker.log.disk.reserve import RESERVED_BYTES, Reserve
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.errors import ErrorCode
from tests.support.records import produce
from tests.support.virtual_broker import Client, VirtualBroker, broker_with_topic


class Volume(NamedTuple):
    f_bavail: int
    f_blocks: int = 1 << 40
    f_frsize: int = 1


def set_free_bytes(free_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda path: Volume(free_bytes))


def produced(client: Client) -> int:
    code: int = client.call(produce(9), 9).responses[0].partition_responses[0].error_code
    return code


def deleted(client: Client, topic: str) -> int:
    code: int = client.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=1000), 5).responses[0].error_code
    return code


FREE_SPACE = {"twice the space": (2 * RESERVED_BYTES, True), "less": (2 * RESERVED_BYTES - 1, False)}


@pytest.mark.parametrize(("free_bytes", "reserved"), FREE_SPACE.values(), ids=FREE_SPACE)
def test_space_is_reserved_if_there_is_twice_as_much(
    tmp_path: Path, free_bytes: int, reserved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_free_bytes(free_bytes, monkeypatch)
    reserve = Reserve(str(tmp_path))
    reserve.restore()
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [RESERVED_BYTES] * reserved
    assert reserve.use() == reserved


def test_file_system_that_cannot_reserve_space_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "posix_fallocate", fail)
    Reserve(str(tmp_path)).restore()
    assert list(tmp_path.iterdir()) == []


def test_start_on_a_full_disk_rejects_appends_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = broker_with_topic(f"log.dirs={tmp_path}")
    before.topic("u")
    before.cluster.close()
    set_free_bytes(RESERVED_BYTES - 1, monkeypatch)
    broker = VirtualBroker(f"log.dirs={tmp_path}")
    client = broker.client()
    assert produced(client) == ErrorCode.KAFKA_STORAGE_ERROR
    assert deleted(client, "u") == ErrorCode.NONE
    set_free_bytes(2 * RESERVED_BYTES, monkeypatch)
    broker.advance(10_000)
    assert produced(client) == ErrorCode.NONE
    broker.cluster.close()


@pytest.mark.parametrize("reserved", [True, False], ids=["", "without reserved space"])
def test_topic_is_deleted_on_a_disk_that_becomes_full(
    tmp_path: Path, reserved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = broker_with_topic(f"log.dirs={tmp_path}")
    broker.topic("u")
    client = broker.client()
    space = tmp_path / "reserved-space"
    write = os.write

    def write_if_room(handle: int, data: bytes) -> int:
        if space.exists() or not reserved:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(handle, data)

    if not reserved:
        space.unlink()
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write_if_room)
        set_free_bytes(0, patched)
        assert deleted(client, "u") == (ErrorCode.NONE if reserved else ErrorCode.KAFKA_STORAGE_ERROR)
        assert produced(client) == (ErrorCode.KAFKA_STORAGE_ERROR if reserved else ErrorCode.NONE)
    broker.cluster.close()
