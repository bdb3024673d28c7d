"""Every client runs every scenario that it supports, on our broker or on the one of --bootstrap."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from uuid import uuid4

import msgspec
import pytest

from sluice.client.admin.configs import ResourceType
from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest
from sluice.protocol.apis.sasl_handshake import SaslHandshakeRequest
from sluice.protocol.records.batch import iter_batches
from tests.clients.clients import CLIENTS
from tests.clients.driver import Driver, Given, Row, as_json, until
from tests.clients.login import context, of_the_matrix
from tests.clients.scenarios import SCENARIOS, START_MS, Scenario, needs
from tests.support import sasl, skips
from tests.support.configs import config_changes
from tests.support.records import fetch, fetched_bytes
from tests.support.wire import WireClient

# The scenarios' records have timestamps of 2020 and before; a retention check, the first one 30 s after the broker's
# start, would delete them.
KEPT = {"retention.ms": "-1"}
CREATE_TOPICS_VERSION, METADATA_VERSION, FETCH_VERSION, INCREMENTAL_ALTER_CONFIGS_VERSION = 5, 9, 11, 1


def connected(bootstrap: str) -> WireClient:
    """Return a connection that has logged in as the clients do, by PLAIN."""
    login = of_the_matrix()
    wire = WireClient(bootstrap, context=context(login))
    if login.mechanism:
        assert wire.call(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
        token = sasl.plain(login.user, login.password)
        assert wire.call(SaslAuthenticateRequest(auth_bytes=token), 2).error_code == 0
    return wire


def create_topics(bootstrap: str, names: dict[str, int], configs: Mapping[str, str]) -> None:
    """Create topics with these partition counts, and `KEPT`; wait until they are usable."""
    with connected(bootstrap) as wire:
        new = [
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=1,
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in {**KEPT, **configs}.items()],
            )
            for name, partitions in names.items()
        ]
        response = wire.call(CreateTopicsRequest(topics=new, timeout_ms=30_000), CREATE_TOPICS_VERSION)
        assert [topic.error_code for topic in response.topics] == [0] * len(names)
        metadata_request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])

        def unknown() -> set[int]:
            described = wire.call(metadata_request, METADATA_VERSION).topics
            return {topic.error_code for topic in described} | {
                partition.error_code for topic in described for partition in topic.partitions
            }

        assert until(unknown, {0}) == {0}


def configure_group(bootstrap: str, group: str, configs: Mapping[str, str]) -> None:
    with connected(bootstrap) as wire:
        request = config_changes(ResourceType.GROUP, group, configs)
        response = wire.call(request, INCREMENTAL_ALTER_CONFIGS_VERSION)
        assert [answer.error_code for answer in response.responses] == [0]


def stored_codecs(bootstrap: str, topic: str) -> set[int]:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    with connected(bootstrap) as wire:
        metadata = wire.call(request, METADATA_VERSION)
    leader = metadata.topics[0].partitions[0].leader_id
    (address,) = [f"{broker.host}:{broker.port}" for broker in metadata.brokers if broker.node_id == leader]
    with connected(address) as wire:
        data = fetched_bytes(wire.call(fetch(0, topic=topic), FETCH_VERSION))
    return {header.compression for _, header in iter_batches(data)}


def same(found: Sequence[object], wanted: Sequence[object]) -> None:
    """Compare rows one by one, so that a difference in 50,000 rows is readable."""
    match found, wanted:
        case [{"rows": list(rows)}], [{"rows": list(wanted_rows)}]:
            differs = [
                (number, row, other)
                for number, (row, other) in enumerate(zip(rows, wanted_rows, strict=False))
                if row != other
            ]
            assert (differs[:3], len(rows)) == ([], len(wanted_rows))
        case _:
            assert found == wanted


def count_brokers(bootstrap: str) -> int:
    with connected(bootstrap) as wire:
        return len(wire.call(MetadataRequest(topics=[]), METADATA_VERSION).brokers)


def run(driver: Driver, scenario: Scenario, bootstrap: str, topic: str) -> None:
    """Create the topics, and compare the steps of each call with the expected ones."""
    names = {"topic": topic, "output": f"{topic}-output"}
    if scenario.topics:
        topics = {names[field]: partitions for field, partitions in scenario.topics.items()}
        create_topics(bootstrap, topics, scenario.configs)
    if scenario.group_configs:
        configure_group(bootstrap, topic, scenario.group_configs)
    for call in scenario.calls:
        given: Given = msgspec.structs.replace(call.given, **names, group=topic, transactional_id=topic)
        nodes = {"nodes": count_brokers(bootstrap)} if call.verb == "cluster" else {}
        same(driver.run(bootstrap, call.verb, given), [as_json({**step, **nodes}) for step in call.steps])
    if scenario.codec is not None:
        assert scenario.codec in stored_codecs(bootstrap, topic), "the batches have another codec"


@cache
def served(bootstrap: str) -> set[str]:
    with connected(bootstrap) as wire:
        return {
            API_KEYS[row.api_key].name for row in wire.call(ApiVersionsRequest(), 0).api_keys if row.api_key in API_KEYS
        }


@pytest.mark.parametrize(("name", "scenario"), SCENARIOS.items(), ids=SCENARIOS)
@pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])
def test_client_passes_the_scenario(
    client: Driver,
    name: str,
    scenario: Scenario,
    bootstrap: str,
    pytestconfig: pytest.Config,
    record_property: Callable[[str, object], None],
) -> None:
    record_property("client", client.name)
    record_property("scenario", name)
    if (reason := client.unsupported.get(name)) is not None:
        pytest.skip(skips.feature(client.name, reason))
    if (reason := client.missing()) is not None:
        pytest.skip(skips.build(client.name, reason))
    record_property("version", client.version())
    # Our broker must serve everything; a real one may be old.
    if pytestconfig.getoption("bootstrap") and (lacking := needs(scenario) - served(bootstrap)):
        pytest.skip(skips.feature("the broker", f"does not serve {', '.join(sorted(lacking))}"))
    run(client, scenario, bootstrap, f"{client.name}-{name}-{uuid4().hex[:8]}")


# One of each kind, except a null header: kafka-python cannot send one.
ROWS = [
    Row(b"key", b"value", [("header", b"\x00\xff"), ("header", b"again")], START_MS),
    Row(None, b"no key", [], START_MS + 777),
    Row(b"tombstone", None, [("empty", b"")], START_MS - 1),
]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.mark.parametrize("reader", CLIENTS, ids=[client.name for client in CLIENTS])
def test_client_reads_the_records_of_all_other_clients(reader: Driver, bootstrap: str) -> None:
    if (reason := reader.missing()) is not None:
        pytest.skip(skips.build(reader.name, reason))
    topic = f"{reader.name}-reads-all-{uuid4().hex[:8]}"
    create_topics(bootstrap, {topic: 1}, {})
    written = [
        (client, codec)
        for client in CLIENTS
        for codec in CODECS
        if not {client.missing(), client.unsupported.get(f"compression-{codec}")} - {None}
        and f"compression-{codec}" not in reader.unsupported
    ]
    for client, codec in written:
        client.run(bootstrap, "produce", Given(topic=topic, rows=ROWS, compression=codec))
    rows = reader.run(bootstrap, "read", Given(topic=topic, group=topic, count=len(written) * len(ROWS)))
    same(rows, [as_json({"rows": ROWS * len(written)})])


def test_unsupported_names_are_scenarios() -> None:
    assert [name for client in CLIENTS for name in client.unsupported if name not in SCENARIOS] == []
