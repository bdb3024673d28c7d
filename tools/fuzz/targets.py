"""The targets: functions from bytes, which raise only for a defect, and their seeds.

Defects are exceptions other than the documented errors, log lines with a traceback, server errors of the admin port,
and inputs that take longer than `MOST_CPU_S`.
"""

import logging
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

from sluice.broker.admin.application import application
from sluice.broker.controller.metadata_log.files import METADATA_DIRECTORY
from sluice.broker.scenarios import files as scenarios
from sluice.config.broker_config import Config
from sluice.errors import ConfigError, SluiceError
from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.header import RequestHeader
from sluice.protocol.codec.compile import encoder
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records import crc
from sluice.protocol.records.batch import ATTRIBUTES_AT, CRC_AT
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.log_validator import AppendConfig
from sluice.protocol.records.validate import validate
from tests.support.acls import AUTHORIZER_ON
from tests.support.http import call
from tests.support.records import batch, produce
from tests.support.sasl import SASL, logged_in
from tests.support.vectors import vectors
from tests.support.virtual_broker import JOURNAL, Client, VirtualBroker
from tests.support.wire import frame
from tools.fuzz.upstream import DefectError, response_seeds, run_response

FINDINGS = Path(__file__).parent / "findings"
# Far more than any input of a megabyte may take, as a busy machine doubles CPU times.
MOST_CPU_S = 2.0
# The first byte of a frame input selects the broker.
_BROKERS: tuple[tuple[str, ...], ...] = (
    (JOURNAL,),
    ("sluice.kafka.release=kafka-3.9", "auto.create.topics.enable=false"),
    ("sluice.brokers=3",),
    (AUTHORIZER_ON, "super.users=User:admin"),
    (*SASL, AUTHORIZER_ON, "super.users=User:alice"),  # for clients that have not authenticated
    (*SASL, AUTHORIZER_ON, "super.users=User:alice", "sluice.kafka.release=kafka-3.9"),
    ("sluice.kafka.release=kafka-2.8", "log.cleanup.policy=compact"),
    ("sluice.kafka.release=kafka-1.1", "quota.producer.default=100000", "quota.consumer.default=100000"),
    ("sluice.kafka.release=kafka-0.10.2",),
)
# The brokers whose clients authenticate first.
_SECURED = (5,)
_ADMIN_PATHS = ("faults", "scenarios/run", "quotas", "brokers/1", "journal", "explain")


class Target(NamedTuple):
    run: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]


class _Tracebacks(logging.Handler):
    """Keeps the log lines with a traceback."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.found.append(self.format(record))


_tracebacks = _Tracebacks()


def run(target: str, data: bytes) -> None:
    """Run one input; raise DefectError or the exception that escaped."""
    log = logging.getLogger("sluice")
    log.addHandler(_tracebacks)
    began = process_time()
    try:
        TARGETS[target].run(data)
    finally:
        log.removeHandler(_tracebacks)
        found, _tracebacks.found = _tracebacks.found, []
    if found:
        raise DefectError(found[0])
    if process_time() - began > MOST_CPU_S:
        raise DefectError(f"took {process_time() - began:.1f} s of CPU")


def seeds(target: str) -> list[bytes]:
    """Return the seeds of a target and the inputs that found a defect."""
    found = FINDINGS / target
    kept = [path.read_bytes() for path in sorted(found.iterdir())] if found.is_dir() else []
    return [*kept, *TARGETS[target].seeds()]


# -- frames ------------------------------------------------------------------------------------------------------------


class _Brokers:
    """One broker of each kind, replaced now and then: a broker keeps topics and groups."""

    def __init__(self) -> None:
        self.inputs_per_broker = 500
        self._brokers: dict[int, VirtualBroker] = {}
        self._uses = Counter[int]()

    def get(self, number: int) -> VirtualBroker:
        """Return the broker of kind `number`, for one input."""
        self._uses[number] += 1
        if self._uses[number] > self.inputs_per_broker:
            self.drop(number)
        broker = self._brokers.get(number)
        if broker is None:
            broker = self._brokers[number] = VirtualBroker(*_BROKERS[number])
            broker.topic()
        return broker

    def drop(self, number: int) -> None:
        self._brokers.pop(number, None)
        self._uses[number] = 0


brokers = _Brokers()
KINDS = len(_BROKERS)


def _run_frame(data: bytes) -> None:
    """Send one frame after its selector byte; another client must be served at once."""
    number = data[0] % KINDS if data else 0
    broker = brokers.get(number)
    client = logged_in(broker) if number in _SECURED else broker.client()
    client.on_bytes = len
    client.send_bytes((len(data) - 1).to_bytes(4, signed=True) + data[1:] if data else bytes(4))
    broker.advance(10)
    _probe(broker.client())
    if client.is_open:
        client.leave()


def _probe(client: Client) -> None:
    if client.call(ApiVersionsRequest(), 0).error_code:
        raise DefectError("the broker no longer answers ApiVersions")
    client.leave()


def _frame_seeds() -> Iterator[bytes]:
    for api in API_KEYS.values():
        for version in {api.min_version, api.max_version}:
            yield b"\0" + frame(api.request(), version, client_id="fuzz")[4:]
    for version in (0, 3, 9):
        yield b"\0" + frame(produce(version), version, client_id="fuzz")[4:]
    yield from (bytes([number % len(_BROKERS)]) + one for number, one in enumerate(_recorded_frames()))


def _recorded_frames() -> Iterator[bytes]:
    """Yield Kafka's own requests, one of each version."""
    seen = Counter[tuple[int, int]]()
    vector: Any
    for vector in vectors("protocol-4.4.0"):
        key, version = vector["api_key"], vector["version"]
        if vector["kind"] != "request" or key not in API_KEYS:
            continue
        seen[key, version] += 1
        if seen[key, version] != 4:  # the fourth has a value in every field
            continue
        header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=1, client_id="f")
        parts: list[bytes | memoryview] = []
        encoder(RequestHeader, vector["header_version"])(header, parts)
        yield b"".join(parts) + bytes.fromhex(vector["hex"])


# -- record batches ----------------------------------------------------------------------------------------------------


def _run_records(data: bytes) -> None:
    """Append records with a correct checksum, so that validation reaches their content."""
    records = bytearray(data)
    if len(records) > ATTRIBUTES_AT:
        records[CRC_AT:ATTRIBUTES_AT] = crc.crc32c(memoryview(records)[ATTRIBUTES_AT:]).to_bytes(4)
    for config in (AppendConfig(), AppendConfig(compacted=True)):
        with suppress(InvalidRecords):
            validate(memoryview(bytearray(records)), 0, 1_700_000_000_000, 0, config)


def _record_seeds() -> Iterator[bytes]:
    for compression in range(5):
        yield batch(b"a value", b"another" * 20, None, compression=compression)
    yield batch(b"v", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)


# -- the admin port ----------------------------------------------------------------------------------------------------


@cache
def _admin() -> Callable[[str, bytes], int]:
    app = application(VirtualBroker(JOURNAL, "sluice.brokers=2").cluster_server)

    def post(path: str, body: bytes) -> int:
        text = body.decode(errors="replace")
        return call(app, f"/api/v1/{path}", "POST", text, host="localhost")[0]

    return post


def _run_admin(data: bytes) -> None:
    path = _ADMIN_PATHS[data[0] % len(_ADMIN_PATHS)] if data else "faults"
    status = _admin()(path, data[1:])
    if status >= 500:
        raise DefectError(f"POST {path} returned {status}")


def _admin_seeds() -> Iterator[bytes]:
    bodies = (
        b'{"action": "close", "api": "Produce", "every": 3, "count": 2}',
        b'{"action": {"kind": "delay", "ms": 200}, "probability": 0.5, "client_id": "a.*"}',
        b'{"name": "s", "at": [{"time": "1s", "stop": 1}]}',
        b'{"entity": {"client-id": "c"}, "quotas": {"producer_byte_rate": 1000}}',
        b'{"state": "stopped"}',
        b"[]",
    )
    yield from (bytes([number]) + body for number, body in enumerate(bodies))


# -- files -------------------------------------------------------------------------------------------------------------


def _run_properties(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "server.properties")
        path.write_bytes(data)
        with suppress(ConfigError):
            Config.load(path)


def _property_seeds() -> Iterator[bytes]:
    yield b"node.id=1\nlisteners=PLAINTEXT://:9092,SSL://[::1]:9093\n# comment\nlog.retention.ms=-1\n"
    yield b"quota.producer.override=a:1e6,b:5Mi\nsluice.users=a\\:b:c\nlog.cleanup.policy = compact , delete\\\n"
    yield b"key\\u0041 : value\\\r\n  continued\ninter.broker.listener.name=X\n"


def _run_scenario(data: bytes) -> None:
    formats = (".toml", ".yaml", ".json")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "scenario" + formats[data[0] % len(formats) if data else 0])
        path.write_bytes(data[1:])
        with suppress(SluiceError):
            scenarios.load(str(path))


def _scenario_seeds() -> Iterator[bytes]:
    for name in scenarios.names()[::4]:
        yield b"\0" + scenarios.text_of(name).encode()
    yield b"\1name: s\nbrokers: 3\nsteps:\n  - at: 1s\n    stop: [1]\n"
    yield b'\2{"name": "s", "steps": []}'


@cache
def _data_directory() -> tuple[Path, list[str]]:
    """Return a directory of a stopped broker, and the relative names of its files."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-fuzz-"))
    broker = VirtualBroker(f"log.dirs={folder}", "log.segment.bytes=400", "log.index.interval.bytes=50")
    broker.topic()
    for number in range(12):
        data = batch(f"value {number}".encode(), producer_id=1, producer_epoch=0, base_sequence=number)
        broker.client().call(produce(9, data), 9)
    broker.cluster.close()
    return folder, sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _run_file(data: bytes) -> None:
    """Start on a directory with one replaced file, and read the topic."""
    source, names = _data_directory()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "data")
        shutil.copytree(source, copy)
        (copy / names[data[0] % len(names)] if data else copy / "meta.properties").write_bytes(data[1:])
        with suppress(SluiceError):
            broker = VirtualBroker(f"log.dirs={copy}")
            found = broker.cluster.topics.get("t")
            if found is not None:
                log = found.partitions[0].log
                read = log.read(log.log_start_offset, 1 << 20, log.log_end_offset, True)
                if read.error_code not in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR):
                    raise DefectError(f"a read returns {read.error_code}")
            assert broker.cluster.logs.directory is not None
            broker.cluster.logs.directory.unlock()


def _file_seeds() -> Iterator[bytes]:
    source, names = _data_directory()
    assert any(METADATA_DIRECTORY in name for name in names)
    yield from (bytes([number]) + (source / name).read_bytes() for number, name in enumerate(names))


TARGETS = {
    "frames": Target(_run_frame, _frame_seeds),
    "records": Target(_run_records, _record_seeds),
    "admin": Target(_run_admin, _admin_seeds),
    "properties": Target(_run_properties, _property_seeds),
    "scenarios": Target(_run_scenario, _scenario_seeds),
    "files": Target(_run_file, _file_seeds),
    "responses": Target(run_response, response_seeds),
}
