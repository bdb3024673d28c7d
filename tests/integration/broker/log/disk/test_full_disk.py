"""A broker on a disk that is full to the last byte: it starts, rejects appends, and deletes topics to make room."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import pytest

from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.errors import ErrorCode
from tests.support import skips
from tests.support.broker_process import overrides, running_broker
from tests.support.records import batch, produce
from tests.support.wire import WireClient

_GIVES_UP_AFTER_S = 30


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    if not shutil.which("mount"):
        pytest.skip(skips.program("mount", "install util-linux"))
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", path], check=False, capture_output=True)
    if mount.returncode:
        pytest.skip(skips.system("permission to mount a small disk; run as root"))
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def fill(disk: Path) -> None:
    with suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def produced(client: WireClient, topic: str, size: int = 10) -> int:
    response = client.call(produce(9, batch(bytes(size)), topic=topic), 9)
    code: int = response.responses[0].partition_responses[0].error_code
    return code


@pytest.mark.parametrize("killed", [True, False], ids=["after a kill", "after a stop"])
def test_broker_starts_on_a_full_disk_and_makes_room(disk: Path, tmp_path: Path, killed: bool) -> None:
    arguments = ["--data-dir", str(disk / "data"), *overrides("log.segment.delete.delay.ms=0")]
    with running_broker(tmp_path / "log", *arguments) as broker, WireClient(broker.bootstrap) as client:
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("large", "small")]
        client.call(CreateTopicsRequest(topics=topics), 7)
        assert produced(client, "small") == ErrorCode.NONE
        while produced(client, "large", 100_000) == ErrorCode.NONE:
            pass
        fill(disk)
        if not killed:
            assert broker.stop()[0] == 0
    with running_broker(tmp_path / "log-2", *arguments) as broker, WireClient(broker.bootstrap) as client:
        assert produced(client, "small") == ErrorCode.KAFKA_STORAGE_ERROR
        assert (
            client.call(DeleteTopicsRequest(topic_names=["large"], timeout_ms=1000), 5).responses[0].error_code
            == ErrorCode.NONE
        )
        deadline = monotonic() + _GIVES_UP_AFTER_S
        while (code := produced(client, "small")) and monotonic() < deadline:
            sleep(0.05)
        assert code == ErrorCode.NONE
        assert broker.stop()[0] == 0
        assert "Traceback" not in broker.log_text()
    with running_broker(tmp_path / "log-3", *arguments) as broker, WireClient(broker.bootstrap) as client:
        assert [topic.name for topic in client.call(MetadataRequest(topics=None), 9).topics] == ["small"]
        assert produced(client, "small") == ErrorCode.NONE
