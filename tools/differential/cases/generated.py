"""Generated requests, in histories on clusters of their own: of all APIs, and of those with members and producers."""

from collections.abc import Collection
from functools import partial
from random import Random

from sluice.broker.exchange.advertised_versions import advertised_by
from sluice.protocol.apis.delete_topics import DeleteTopicsResponse
from sluice.protocol.apis.end_txn import EndTxnRequest
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.uuids import printed_uuid
from tests.support.messages import request
from tests.support.records import produce
from tools.differential.case import DISK, MEMORY, Layout, case
from tools.differential.generated import GROUPS, TOPICS, TRANSACTION, Generator, apis
from tools.differential.requests import SHARE, commit, coordinator, init_producer, metadata
from tools.differential.requests import TRANSACTION as OF_TRANSACTIONS
from tools.differential.session import Session

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
_REQUESTS = 250  # of each history
# APIs that are left out -> the reason.
EXCLUDED = {
    "AlterClientQuotas": "quotas would throttle later requests; the other tests compare them",
    "AlterReplicaLogDirs": "moves of replicas are not simulated",
    "AlterUserScramCredentials": "generated passwords are salted at random",
    "DescribeLogDirs": "the sizes of Kafka's internal topics and its disk are in the response",
    "GetTelemetrySubscriptions": "depends on the time since the last request of the client, see reports.py",
    "PushTelemetry": "as GetTelemetrySubscriptions",
    "SaslAuthenticate": "ends the connection without SASL",
    "SaslHandshake": "ends the connection without SASL",
    "UnregisterBroker": "would stop the only broker",
    "UpdateFeatures": "would change what later requests may do",
}

# APIs whose answers depend on earlier requests of members and producers.
COORDINATED = {
    "AddOffsetsToTxn", "AddPartitionsToTxn", "ConsumerGroupDescribe", "ConsumerGroupHeartbeat", "DescribeGroups",
    "DescribeProducers", "DescribeTransactions", "EndTxn", "Fetch", "Heartbeat", "InitProducerId", "JoinGroup",
    "LeaveGroup", "ListGroups", "ListTransactions", "OffsetCommit", "OffsetDelete", "OffsetFetch", "Produce",
    "SyncGroup", "TxnOffsetCommit",
}  # fmt: skip


def _prepare(session: Session) -> list[bytes]:
    ids = [session.create_topic(name, 2) for name in TOPICS]
    for topic in TOPICS:
        session.request(produce(9, topic=topic), 9)
    session.request(request("FindCoordinator", key=GROUPS[0]), 3)  # creates __consumer_offsets
    committed = {"name": TOPICS[0], "partitions": [{"partition_index": 0, "committed_offset": 1}]}
    session.eventually(
        commit(GROUPS[0], [committed]), 8, lambda response: not response.topics[0].partitions[0].error_code
    )
    session.request(coordinator(TRANSACTION, OF_TRANSACTIONS), 4)
    session.eventually(init_producer(TRANSACTION), 4, lambda response: not response.error_code)
    # Kafka creates the topic of share groups with the first read of state, sluice with the first share group.
    session.request(coordinator(f"{GROUPS[0]}:{printed_uuid(ids[0])}:0", SHARE), 6)
    for topic in INTERNAL_TOPICS:
        session.wait_for_leaders(topic)
    for topic in INTERNAL_TOPICS:  # so that the order in which later responses name them does not matter
        session.call(metadata(topic, auto_create=True), only=["topics"])
    return ids


def _wait_for_deleted(session: Session, names: list[str | None]) -> None:
    """Wait until the brokers know; Kafka's controller responds before."""
    for name in names:
        session.wait_for(metadata(name), lambda response: response.topics[0].error_code != 0, 12)


def _wait_for_markers(session: Session) -> None:
    """Wait until the transaction has ended; Kafka's coordinator responds before, and rejects requests until then."""
    session.wait_for(
        request("DescribeTransactions", transactional_ids=[TRANSACTION]),
        lambda response: not response.transaction_states[0].transaction_state.startswith("Prepare"),
    )


def history(session: Session, *, seed: int, only: Collection[str] = ()) -> None:
    random = Random(seed)
    generator = Generator(random, _prepare(session))
    offered = [each for each in apis(advertised_by("kafka-4.4"), EXCLUDED) if not only or each[0].name in only]
    for number in range(_REQUESTS):
        api, versions = random.choice(offered) if only else offered[number % len(offered)]
        version = random.choice(versions)
        drawn = generator.request(api, version)
        response = session.call(drawn, version, unordered=["*"])
        generator.learn(drawn, response)
        if isinstance(drawn, EndTxnRequest | InitProducerIdRequest) and drawn.transactional_id == TRANSACTION:
            _wait_for_markers(session)
        if isinstance(response, DeleteTopicsResponse):
            _wait_for_deleted(session, [one.name for one in response.responses if not one.error_code])


EXPLAINED = {
    "* ApiVersions.api_keys.3[89]": "delegation tokens are not implemented",
    "* ApiVersions.api_keys.4[01]": "delegation tokens are not implemented",
    "* ApiVersions.api_keys.8[01]": "there is one controller",
    "* ApiVersions.api_keys.8[3-7]": "the state of share groups is only reachable within the process",
    "* ApiVersions.api_keys.94": "only brokers send it",
}
# Kinds of histories -> the APIs of their requests; empty: all.
KINDS: dict[str, Collection[str]] = {"all APIs": (), "members and producers": COORDINATED}
# The others only with --seeds: which member has been removed, when a request arrives, depends on the machine.
RECORDED = [("all APIs", seed) for seed in range(4)]


def make_case(kind: str, seed: int) -> None:
    """Register a history; odd seeds run on disk."""
    # Kafka deletes records of that age after 30 s.
    layout = Layout(("log.retention.ms=-1",), name=f"{kind} {seed}", storages=((MEMORY, DISK)[seed % 2],))
    explained = {} if KINDS[kind] else EXPLAINED
    case(layout, row=f"{kind}, seed {seed}", explained=explained)(partial(history, seed=seed, only=KINDS[kind]))


for _history in RECORDED:
    make_case(*_history)
