"""The addresses of brokers in responses of all APIs and versions, and what becomes of the response without them."""

import re
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from sluice.protocol.addresses import ADDRESS_CONFIGS, rewriter_of
from sluice.protocol.apis import API_KEYS, Api, api_of
from sluice.protocol.apis.describe_configs import DescribeConfigsResourceResult
from sluice.protocol.message import Field, Message, fields_of
from tests.support.messages import response
from tests.unit.protocol.messages import all_versions, decoded, encoded, full, named

RESPONSES = [(api.response, version) for api in API_KEYS.values() for version in all_versions(api.response)]
KEYS = {api.name: api.key for api in API_KEYS.values()}

MAY_BE_ADDRESS = re.compile(
    r"(^|_)(host|hostname|ports?|listeners?|endpoints?|address|addresses|servers?|advertised|urls?|uri|leader_id)(_|$)"
)
_CLIENTS_HOST = "the client's own address, as the broker sees it"
_STREAMS_ENDPOINT = "the application's own address (application.server)"
NO_ADDRESSES = {
    "ConsumerGroupDescribe groups.members.client_host": _CLIENTS_HOST,
    "DeleteAcls filter_results.matching_acls.host": "the client's address in an ACL",
    "DescribeAcls resources.acls.host": "the client's address in an ACL",
    "DescribeCluster endpoint_type": "a number",
    "DescribeGroups groups.members.client_host": _CLIENTS_HOST,
    "DescribeQuorum topics.partitions.leader_id": "a controller; this response has no addresses of brokers",
    "DescribeTopicPartitions topics.partitions.leader_id": "this response has no addresses of brokers",
    "ShareGroupDescribe groups.members.client_host": _CLIENTS_HOST,
    "StreamsGroupDescribe groups.members.client_host": _CLIENTS_HOST,
    "StreamsGroupDescribe groups.members.user_endpoint": _STREAMS_ENDPOINT,
    "StreamsGroupHeartbeat endpoint_information_epoch": "a number",
    "StreamsGroupHeartbeat partitions_by_user_endpoint": _STREAMS_ENDPOINT,
}

# Not in any other field of a full message, so that each byte of a port and each host is found.
PORT_BYTE = 0xA5
HOST = "upstream"


def may_be_addresses(api: Api) -> Iterator[tuple[str, Field]]:
    """Yield the path of each field that has the name of an address and is not in NO_ADDRESSES."""
    yield from _may_be_addresses(api.response, api.name, " ")


def _may_be_addresses(cls: type[Message], above: str, separator: str) -> Iterator[tuple[str, Field]]:
    for field in fields_of(cls):
        path = above + separator + field.name
        if path in NO_ADDRESSES:
            continue
        if field.struct is not None:
            yield from _may_be_addresses(field.struct, path, ".")
        elif MAY_BE_ADDRESS.search(field.name):
            yield path, field


def unmarked(api: Api) -> list[str]:
    return [path for path, field in may_be_addresses(api) if not (field.meaning.address or field.meaning.leader)]


def marked_fields() -> dict[str, Field]:
    return {path: field for api in API_KEYS.values() for path, field in may_be_addresses(api)}


def test_every_field_with_the_name_of_an_address_is_marked_or_listed() -> None:
    assert [path for api in API_KEYS.values() for path in unmarked(api)] == []


@pytest.mark.parametrize("path", marked_fields())
def test_field_without_its_mark_is_found(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    field = marked_fields()[path]
    monkeypatch.setattr(field, "meaning", field.meaning._replace(address="", leader=False))
    assert path in unmarked(next(api for api in API_KEYS.values() if path.startswith(f"{api.name} ")))


@pytest.mark.parametrize("path", NO_ADDRESSES)
def test_listed_field_exists(path: str) -> None:
    api, _, names = path.partition(" ")
    cls: type[Message] | None = API_KEYS[KEYS[api]].response
    for name in names.split("."):
        assert cls is not None
        cls = next(field for field in fields_of(cls) if field.name == name).struct


# Listeners, and the addresses of other nodes, in Kafka 4.4 (SocketServerConfigs, QuorumConfig); then those of 3.9 and
# of 2.8 (ZkConfigs, KafkaConfig).
KAFKAS_ADDRESS_CONFIGS = """
    advertised.listeners listeners controller.quorum.bootstrap.servers controller.quorum.voters
    zookeeper.connect
    advertised.host.name advertised.port host.name port
"""


def test_configs_of_brokers_with_addresses_are_those_of_kafka() -> None:
    assert {*KAFKAS_ADDRESS_CONFIGS.split()} == ADDRESS_CONFIGS


def upstream_response(cls: type[Message], version: int) -> Message:
    """Return a message with all fields of the version set, and a distinct host and port in each possible address."""
    message = decoded(cls, version, encoded(full(cls, version), version))
    _fill(message, api_of(cls).name, " ", version, count())
    return message


def _fill(message: Message, above: str, separator: str, version: int, numbers: Iterator[int]) -> None:
    if isinstance(message, DescribeConfigsResourceResult):
        message.name = sorted(ADDRESS_CONFIGS)[next(numbers) % len(ADDRESS_CONFIGS)]
        message.value = f"PLAINTEXT://{HOST}:1"
        for synonym in message.synonyms:
            synonym.value = message.value
    for field in fields_of(type(message)):
        path = above + separator + field.name
        if path in NO_ADDRESSES or version not in field.versions:
            continue
        value = getattr(message, field.name)
        if field.struct is not None:
            for each in value if field.is_array else [value]:
                _fill(each, path, ".", version, numbers)
        elif MAY_BE_ADDRESS.search(field.name) and field.name != "leader_id":
            number = next(numbers)
            setattr(message, field.name, f"{HOST}-{number}" if isinstance(value, str) else (PORT_BYTE << 8) + number)


def addresses_in(message: Message, version: int) -> int:
    content = encoded(message, version)
    return content.count(HOST.encode()) + content.count(PORT_BYTE)


@pytest.mark.parametrize("address_of", [lambda *_: ("proxy", 9092), lambda *_: None], ids=["replaced", "removed"])
@pytest.mark.parametrize("message", RESPONSES, ids=named)
def test_no_address_of_the_upstream_is_left(
    message: tuple[type[Message], int], address_of: Callable[[int, str, int], tuple[str, int] | None]
) -> None:
    cls, version = message
    received = decoded(cls, version, encoded(upstream_response(cls, version), version))
    rewrite = rewriter_of(api_of(cls).key, version)
    assert bool(addresses_in(received, version)) == (rewrite is not None)
    if rewrite is not None:
        assert rewrite(received, address_of)
        assert not addresses_in(received, version)
        assert not addresses_in(decoded(cls, version, encoded(received, version)), version)
        assert not rewrite(received, address_of) or api_of(cls).name == "DescribeConfigs"


def proxy(node_id: int, host: str, port: int) -> tuple[str, int] | None:
    """Return the address of brokers 1 and 2."""
    return ("proxy", 9000 + node_id) if node_id in {1, 2} else None


def node(node_id: int, host: str = "proxy", port: int | None = None) -> dict[str, object]:
    return {"node_id": node_id, "host": host, "port": 9000 + node_id if port is None else port}


NO_NODE = node(-1, "", -1)
NOT_AVAILABLE = {**NO_NODE, "error_code": 15, "error_message": "The coordinator is not available."}


def partitions(*leaders: tuple[int, int]) -> list[dict[str, object]]:
    return [{"partitions": [{"current_leader": {"leader_id": id_, "leader_epoch": epoch}} for id_, epoch in leaders]}]


def produced(*leaders: tuple[int, int]) -> list[dict[str, object]]:
    return [{"partition_responses": topic["partitions"]} for topic in partitions(*leaders)]


def led(*leaders: tuple[int, int]) -> list[dict[str, object]]:
    return [{"partitions": [{"leader_id": id_, "leader_epoch": 7, "error_code": code} for id_, code in leaders]}]


Fields = dict[str, object]
CASES: dict[str, tuple[str, int, Fields, Fields]] = {
    "Metadata, two brokers": (
        *("Metadata", 12),
        {"brokers": [node(1, "a"), node(2, "b")], "topics": led((1, 0))},
        {"brokers": [node(1), node(2)], "topics": led((1, 0))},
    ),
    "Metadata, without a broker; its partitions have no leader": (
        *("Metadata", 0),
        {"brokers": [node(1, "a"), node(3, "c")], "topics": led((1, 0), (3, 0), (3, 9), (-1, 5))},
        {"brokers": [node(1)], "topics": led((1, 0), (-1, 5), (-1, 9), (-1, 5))},
    ),
    "DescribeCluster, without a broker": (
        *("DescribeCluster", 0),
        {"brokers": [{"broker_id": 3, "host": "c"}, {"broker_id": 2, "host": "b"}]},
        {"brokers": [{"broker_id": 2, "host": "proxy", "port": 9002}]},
    ),
    "DescribeQuorum: a controller is not the broker with its id": (
        *("DescribeQuorum", 2),
        {"nodes": [{"node_id": 1, "listeners": [{"name": "CONTROLLER", "host": "a", "port": 9093}]}]},
        {"nodes": [{"node_id": 1}]},
    ),
    "Produce": (
        *("Produce", 10),
        {"node_endpoints": [node(2, "b")], "responses": produced((2, 5))},
        {"node_endpoints": [node(2)], "responses": produced((2, 5))},
    ),
    "Produce, without an endpoint; its leader is unknown": (
        *("Produce", 13),
        {"node_endpoints": [node(3, "c"), node(2, "b")], "responses": produced((3, 5), (2, 6))},
        {"node_endpoints": [node(2)], "responses": produced((-1, -1), (2, 6))},
    ),
    "Produce, where no partition has a leader": (
        *("Produce", 13),
        {"node_endpoints": [node(3, "c")], "responses": [{"partition_responses": [{"current_leader": None}]}]},
        {"responses": [{"partition_responses": [{"current_leader": None}]}]},
    ),
    **{
        f"{api}, without an endpoint; its leader is unknown": (
            *(api, version),
            {"node_endpoints": [node(3, "c")], "responses": partitions((3, 5), (2, 6))},
            {"responses": partitions((-1, -1), (2, 6))},
        )
        for api, version in {"Fetch": 16, "ShareFetch": 1, "ShareAcknowledge": 1}.items()
    },
    "FindCoordinator of one key": ("FindCoordinator", 3, node(1, "a"), node(1)),
    "FindCoordinator of one key, not available": ("FindCoordinator", 0, node(3, "c"), NOT_AVAILABLE),
    "FindCoordinator of several keys": (
        *("FindCoordinator", 4),
        {"coordinators": [{"key": "x", **node(2, "b")}, {"key": "y", **node(3, "c")}]},
        {"coordinators": [{"key": "x", **node(2)}, {"key": "y", **NOT_AVAILABLE}]},
    ),
    "FindCoordinator, an error with an address": (
        *("FindCoordinator", 4),
        {"coordinators": [{"error_code": 16, "error_message": None, **node(-1, "c")}]},
        {"coordinators": [{"error_code": 16, "error_message": None, **NO_NODE}]},
    ),
    "DescribeConfigs": (
        *("DescribeConfigs", 4),
        {
            "results": [
                {
                    "configs": [
                        {"name": "listeners", "value": "a", "synonyms": [{"name": "listeners", "value": "b"}]},
                        {"name": "log.dirs", "value": "c"},
                    ]
                }
            ]
        },
        {
            "results": [
                {
                    "configs": [
                        {
                            "name": "listeners",
                            "value": None,
                            "is_sensitive": True,
                            "synonyms": [{"name": "listeners", "value": None}],
                        },
                        {"name": "log.dirs", "value": "c"},
                    ]
                }
            ]
        },
    ),
}


@pytest.mark.parametrize(("api", "version", "received", "expected"), CASES.values(), ids=CASES)
def test_rewritten_response(api: str, version: int, received: Fields, expected: Fields) -> None:
    rewrite = rewriter_of(KEYS[api], version)
    assert rewrite is not None
    message = response(api, **received)
    assert rewrite(message, proxy)
    assert message == response(api, **expected)


UNCHANGED: dict[str, tuple[str, int, Fields]] = {
    "an address that is the proxy's": ("Metadata", 1, {"brokers": [node(1)]}),
    "no endpoints": ("Produce", 13, {"responses": produced((3, 5))}),
    "a removed endpoint, which has no host": ("Fetch", 18, {"node_endpoints": [NO_NODE]}),
    "no coordinator": ("FindCoordinator", 2, {**NO_NODE, "error_code": 15}),
    "several, no coordinator": ("FindCoordinator", 6, {"coordinators": [{**NO_NODE, "error_code": 15}]}),
    "a controller without listeners": ("DescribeQuorum", 2, {"nodes": [{"node_id": 1}]}),
    "configs without addresses": ("DescribeConfigs", 0, {"results": [{"configs": [{"name": "log.dirs"}]}]}),
}


@pytest.mark.parametrize(("api", "version", "fields"), UNCHANGED.values(), ids=UNCHANGED)
def test_response_without_addresses_of_the_upstream_is_unchanged(api: str, version: int, fields: Fields) -> None:
    rewrite = rewriter_of(KEYS[api], version)
    assert rewrite is not None
    message = response(api, **fields)
    assert not rewrite(message, proxy)
    assert message == response(api, **fields)


@pytest.mark.parametrize(("api", "version"), [("Produce", 9), ("Fetch", 15), ("DescribeQuorum", 1), ("Heartbeat", 4)])
def test_version_without_addresses_has_no_rewriter(api: str, version: int) -> None:
    assert rewriter_of(KEYS[api], version) is None
