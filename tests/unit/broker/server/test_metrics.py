"""Prometheus metrics: families, labels, values, the limit of client ids, and hostile names."""

import math

import pytest
from prometheus_client import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

import sluice
from sluice.broker.coordinator.share.persisted import SharePartitionId
from sluice.broker.metadata.topic import Topic
from sluice.broker.server.metrics import registry
from sluice.broker.throttling.request_charges import OTHER
from sluice.metrics import METRICS
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.groups import Member, settle_round
from tests.support.records import fetch, produce, produce_of
from tests.support.sasl import SASL, logged_in
from tests.support.share_consumers import ACCEPT, ONE_PARTITION, ShareConsumer, initialize, produce_values
from tests.support.virtual_broker import Client, VirtualBroker, broker_with_topic

EVERYONE = {"client-id": None}
# Families of a broker that is no proxy; tests/unit/sluice/proxy/test_metrics.py has the others.
OF_BROKER = {name: metric for name, metric in METRICS.items() if metric.only_of != "proxy"}
QUOTAS = ("quota.producer.default=1000", "quota.consumer.default=1e9")


def scrape(broker: VirtualBroker) -> dict[str, Metric]:
    """Return the families of an exposition by declared name, read by the Prometheus parser."""
    text = generate_latest(registry(broker.cluster_server)).decode()
    families = {}
    for family in text_string_to_metric_families(text):
        name = family.name + "_total" if family.type == "counter" else family.name
        assert name not in families, f"{name} occurs once"
        families[name] = family
    return families


def value(broker: VirtualBroker, name: str, **labels: str) -> float:
    samples = [sample for family in scrape(broker).values() for sample in family.samples if sample.name == name]
    values = [sample.value for sample in samples if sample.labels == labels]
    assert len(values) == 1, f"{len(values)} series of {name} with {labels}: {samples}"
    return values[0]


def broker_with_samples() -> VirtualBroker:
    """Return a broker on which every family has samples."""
    broker = VirtualBroker(*QUOTAS, *SASL, *ONE_PARTITION, "max.connections=1000")
    topic = broker.topic()
    initialize(broker, topic)
    shares = broker.broker.share_partitions
    shares.get_or_load(SharePartitionId("group", topic.topic_id, 0), lambda _: None)
    shares.acknowledged["accept"] += 1
    broker.cluster.client_quotas.alter(EVERYONE, {"request_percentage": 50.0, "controller_mutation_rate": 5.0})
    client = logged_in(broker)
    broker.cluster_server.faults.add({"action": {"kind": "error", "code": 5}, "api": "Metadata", "times": 1})
    client.call(MetadataRequest(topics=[]), 9)
    client.call(DeleteTopicsRequest(topic_names=["nowhere"], timeout_ms=1000), 3)
    client.call(fetch(0), 11)
    client.send(produce_of(12_000, 9, "client"), 9)
    return broker


@pytest.fixture(scope="module")
def families() -> dict[str, Metric]:
    """Return all families, each with samples."""
    return scrape(broker_with_samples())


# -- families ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "broker",
    [VirtualBroker(), broker_with_samples(), VirtualBroker("sluice.brokers=2")],
    ids=["new broker", "broker with samples", "two brokers"],
)
def test_scrape_contains_exactly_the_declared_families(broker: VirtualBroker) -> None:
    assert set(scrape(broker)) == set(OF_BROKER)


@pytest.mark.parametrize("metric", OF_BROKER.values(), ids=OF_BROKER)
def test_family_has_its_declared_type_help_and_labels(
    metric: "sluice.metrics.Metric", families: dict[str, Metric]
) -> None:
    family = families[metric.name]
    assert (family.type, family.documentation) == (metric.kind, metric.help)
    assert family.samples, "the family has samples"
    for sample in family.samples:
        assert set(sample.labels) - {"le"} == set(metric.labels)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_names_follow_prometheus_conventions(metric: "sluice.metrics.Metric") -> None:
    assert metric.name.startswith(("sluice_", "kafka_server_"))
    assert metric.name.endswith("_total") == (metric.kind == "counter")


# -- values ------------------------------------------------------------------------------------------------------------


def test_requests_are_counted_by_api_version_and_first_error_code(client: Client, broker: VirtualBroker) -> None:
    broker.topic()
    client.call(produce(9), 9)
    client.call(produce(9), 9)
    client.call(produce(9, topic="nowhere"), 9)
    client.call(produce(3), 3)
    samples = scrape(broker)["sluice_requests_total"].samples
    values = {tuple(sample.labels[name] for name in ("api", "version", "error")): sample.value for sample in samples}
    assert values == {
        ("Produce", "9", "NONE"): 2,
        ("Produce", "9", "UNKNOWN_TOPIC_OR_PARTITION"): 1,
        ("Produce", "3", "NONE"): 1,
    }


@pytest.mark.parametrize("brokers", [1, 2])
def test_a_restarted_broker_is_scraped(brokers: int) -> None:
    broker = VirtualBroker(f"sluice.brokers={brokers}")
    metrics, server = registry(broker.cluster_server), broker.cluster_server
    server.stop_broker(1, controlled=False)
    broker.run(server.start_broker(1))
    broker.client(node_id=1)
    lines = [line for line in generate_latest(metrics).decode().splitlines() if line.startswith("sluice_connections")]
    assert "1.0" in lines[0]


def test_request_without_a_response_is_counted(topic: Topic, broker: VirtualBroker) -> None:
    broker.client().send(produce(9, acks=0), 9)
    assert value(broker, "sluice_requests_total", api="Produce", version="9", error="NONE") == 1


def test_unsupported_version_of_api_versions_is_counted_as_version_0(client: Client, broker: VirtualBroker) -> None:
    data = client.frame(ApiVersionsRequest(), 0)
    client.send_bytes(data[:6] + (99).to_bytes(2) + data[8:])
    client.response()
    assert value(broker, "sluice_requests_total", api="ApiVersions", version="0", error="UNSUPPORTED_VERSION") == 1
    assert value(broker, "sluice_request_duration_seconds_sum", api="ApiVersions") == 0


def test_durations_include_the_wait_and_are_cumulative_by_bucket(client: Client, broker: VirtualBroker) -> None:
    broker.topic()
    client.call(fetch(0), 11)
    client.send(fetch(0, max_wait_ms=400), 12)
    broker.advance(1_000)
    family = scrape(broker)["sluice_request_duration_seconds"]
    buckets = {sample.labels["le"]: sample.value for sample in family.samples if sample.name.endswith("_bucket")}
    assert {"5e-05": 1, "0.1": 1, "0.5": 2, "30.0": 2, "+Inf": 2}.items() <= buckets.items()
    assert value(broker, "sluice_request_duration_seconds_count", api="Fetch") == 2
    assert value(broker, "sluice_request_duration_seconds_sum", api="Fetch") == pytest.approx(0.4)


def test_throttle_time_is_exported_under_each_name() -> None:
    broker = broker_with_samples()
    assert value(broker, "sluice_throttle_seconds_total", resource="Produce", user="", client_id="client") == 2
    assert value(broker, "kafka_server_produce_throttle_time", user="", client_id="client") == 2_000
    assert value(broker, "kafka_server_quota_throttle_time", resource="Produce", user="", clientId="client") == 2_000
    assert math.isnan(value(broker, "kafka_server_fetch_throttle_time", user="", client_id="client"))
    assert value(broker, "kafka_server_produce_byte_rate", user="", client_id="client") == 1_200
    assert value(broker, "kafka_server_quota_byte_rate", resource="Produce", user="", clientId="client") == 1_200
    broker.advance(60_000)
    assert math.isnan(value(broker, "kafka_server_produce_throttle_time", user="", client_id="client"))
    assert value(broker, "sluice_throttle_seconds_total", resource="Produce", user="", client_id="client") == 2


def test_broker_without_quotas_has_no_client_series(topic: Topic, broker: VirtualBroker) -> None:
    broker.client().call(produce(9), 9)
    assert scrape(broker)["kafka_server_produce_byte_rate"].samples == []


def test_delayed_operations_are_counted_while_they_wait() -> None:
    broker = broker_with_topic(*QUOTAS, "sluice.replication.delay.ms=60000")
    broker.client().send(fetch(0, max_wait_ms=500), 11)
    broker.client("a").send(produce(9, acks=-1, timeout_ms=500), 9)
    broker.client("b").send(produce_of(12_000, 9, "b"), 9)

    def waiting() -> dict[str, float]:
        return {
            kind: value(broker, "sluice_purgatory_operations", kind=kind) for kind in ("Fetch", "Produce", "Throttle")
        }

    assert waiting() == {"Fetch": 1, "Produce": 1, "Throttle": 1}
    assert value(broker, "sluice_throttled_connections") == 1
    numdelayed = "kafka_server_delayedoperationpurgatory_numdelayedoperations"
    assert value(broker, numdelayed, delayedOperation="Fetch") == 1
    assert value(broker, "kafka_server_delayedoperationpurgatory_purgatorysize", delayedOperation="Produce") == 1
    broker.advance(2_000)
    assert waiting() == {"Fetch": 0, "Produce": 0, "Throttle": 0}
    assert value(broker, "sluice_throttled_connections") == 0
    assert value(broker, "sluice_purgatory_lateness_seconds_count") >= 3
    assert value(broker, "sluice_purgatory_lateness_seconds_bucket", le="0.001") >= 3


def test_delayed_group_operations_are_counted_after_the_first_group(broker: VirtualBroker) -> None:
    family = "kafka_server_delayedoperationpurgatory_numdelayedoperations"
    assert "Heartbeat" not in {sample.labels["delayedOperation"] for sample in scrape(broker)[family].samples}
    member = Member(broker)
    member.send_join()
    assert value(broker, family, delayedOperation="Rebalance") == 1
    assert value(broker, family, delayedOperation="Heartbeat") == 1
    broker.advance(3_000)
    settle_round([member])
    assert value(broker, family, delayedOperation="Rebalance") == 0
    assert value(broker, family, delayedOperation="Heartbeat") == 1


def test_open_and_total_connections_are_counted(broker: VirtualBroker) -> None:
    first, _ = broker.client(), broker.client()
    first.leave()
    assert value(broker, "sluice_connections") == 1
    assert value(broker, "sluice_connections_total") == 2


def test_topic_traffic_is_counted(broker: VirtualBroker) -> None:
    broker.topic(partitions=2)
    client = broker.client()
    request = produce(9)
    client.call(request, 9)
    client.call(fetch(0), 11)
    client.call(fetch(0), 11)
    size = len(request.topic_data[0].partition_data[0].records or b"")
    prefix = "kafka_server_brokertopicmetrics_"
    assert value(broker, prefix + "messagesin_total", topic="t") == 1
    assert value(broker, prefix + "bytesin_total", topic="t") == size
    assert value(broker, prefix + "bytesout_total", topic="t") == 2 * size
    assert value(broker, "sluice_log_bytes") == size
    assert (value(broker, "sluice_topics"), value(broker, "sluice_partitions")) == (1, 2)


def test_fetch_sessions_their_partitions_and_evictions_are_counted() -> None:
    broker = broker_with_topic("max.incremental.fetch.session.cache.slots=1")
    prefix = "kafka_server_fetchsessioncache_"
    names = ("numincrementalfetchsessions", "numincrementalfetchpartitionscached")

    def counted() -> list[float]:
        return [value(broker, prefix + name) for name in (*names, "incrementalfetchsessionevictions_total")]

    assert counted() == [0, 0, 0]
    request = fetch(0)
    request.session_epoch = 0
    broker.client().call(request, 11)
    assert counted() == [1, 1, 0]
    broker.advance(120_001)
    broker.client().call(request, 11)
    assert counted() == [1, 1, 1]


def test_share_sessions_and_their_records_are_counted() -> None:
    broker = VirtualBroker(*ONE_PARTITION)
    topic = broker.topic()
    sessions, records = "kafka_server_sharesessioncache_", "kafka_server_sharepartitionmetrics_"
    labels = {"group": "group", "topic": "t", "partition": "0"}

    def counted() -> list[float]:
        names = ("sharesessionscount", "sharepartitionscount", "sharesessionevictions_total")
        return [value(broker, sessions + name) for name in names]

    assert counted() == [0, 0, 0]
    assert "share_partitions" not in vars(broker.broker)
    initialize(broker, topic)
    produce_values(broker, b"a", b"b", b"c")
    member = ShareConsumer(broker, topic)
    member.acquire()
    member.acknowledge((0, 1, [ACCEPT]))
    assert counted() == [1, 1, 0]
    assert value(broker, records + "inflightmessagecount", **labels) == 1
    assert value(broker, "kafka_server_sharegroupmetrics_recordacknowledgement_total", ackType="accept") == 2
    assert value(broker, "sluice_purgatory_operations", kind="ShareAcquisitionLock") == 1
    broker.advance(30_000)
    assert value(broker, records + "acquisitionlocktimeout_total") == 1
    member.client.leave()
    assert counted() == [0, 0, 1]


def test_version_is_a_label_of_build_info() -> None:
    assert value(VirtualBroker(), "sluice_build_info", version=sluice.__version__) == 1


# -- client ids --------------------------------------------------------------------------------------------------------


def produce_as(broker: VirtualBroker, client_id: str) -> None:
    client = broker.client(client_id)
    client.send(produce(9), 9)
    client.leave()


def test_client_ids_above_the_limit_share_one_series() -> None:
    broker = broker_with_topic("quota.producer.default=1e9", "sluice.metrics.client.ids.max=3")
    for number in range(5):
        produce_as(broker, f"client-{number}")
    rates = {
        sample.labels["client_id"]: sample.value for sample in scrape(broker)["kafka_server_produce_byte_rate"].samples
    }
    assert list(rates) == ["client-0", "client-1", "client-2", OTHER]
    assert rates[OTHER] == pytest.approx(2 * rates["client-0"])


def test_default_limit_of_client_ids_is_200() -> None:
    broker = broker_with_topic("quota.producer.default=1e9")
    for number in range(250):
        produce_as(broker, f"client-{number}")
    samples = scrape(broker)["kafka_server_produce_byte_rate"].samples
    assert len(samples) == 201
    assert samples[-1].labels["client_id"] == OTHER


def test_client_with_its_own_series_keeps_it() -> None:
    broker = broker_with_topic("quota.producer.default=1e9", "sluice.metrics.client.ids.max=1")
    produce_as(broker, "first")
    for _ in range(50):
        produce_as(broker, "louder")
    samples = scrape(broker)["kafka_server_produce_byte_rate"].samples
    assert [sample.labels["client_id"] for sample in samples] == ["first", OTHER]


def test_fault_rules_above_the_limit_share_a_series_with_a_rule_of_its_name() -> None:
    broker = VirtualBroker("sluice.metrics.client.ids.max=2")
    faults = broker.cluster_server.faults
    for name in (OTHER, "first", "second", "third", "fourth"):
        faults.add({"action": {"kind": "error", "code": 5}, "id": name, "api": "Metadata", "times": 1})
    client = broker.client()
    for _ in range(5):
        client.call(MetadataRequest(topics=[]), 9)
    samples = scrape(broker)["sluice_faults_total"].samples
    assert {sample.labels["rule"]: sample.value for sample in samples} == {"first": 1, "second": 1, OTHER: 3}


HOSTILE_CLIENT_IDS = {
    "a quote": 'quo"te',
    "a newline": "new\nline",
    "a backslash": "back\\slash",
    "newline, quote and backslash": 'all\\n"}\n',
    "braces": "{a=1}",
    "empty": "",
    "characters beyond ASCII": "ünïcödé 🦜",
    "control characters": "\x00\x1b[2J",
    "5,000 characters": "x" * 5_000,
    "the name of the shared series": OTHER,
}


@pytest.mark.parametrize("client_id", HOSTILE_CLIENT_IDS.values(), ids=HOSTILE_CLIENT_IDS)
def test_hostile_client_id_is_escaped_correctly(client_id: str) -> None:
    broker = broker_with_topic("quota.producer.default=1e9")
    produce_as(broker, client_id)
    samples = scrape(broker)["kafka_server_produce_byte_rate"].samples
    assert [sample.labels["client_id"] for sample in samples] == [client_id]
    assert set(scrape(broker)) == set(OF_BROKER)


def test_client_with_the_name_of_the_shared_series_creates_no_duplicate() -> None:
    broker = broker_with_topic("quota.producer.default=1e9", "sluice.metrics.client.ids.max=1")
    for client_id in (OTHER, "second"):
        produce_as(broker, client_id)
    for family in scrape(broker).values():
        series = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in family.samples]
        assert len(series) == len(set(series)), f"{family.name}: each series occurs once"


def test_scrapes_do_not_change_throttle_times() -> None:
    throttles = []
    for scrapes in (False, True):
        broker = broker_with_topic("quota.producer.default=1000")
        client = broker.client()
        for _ in range(4):
            client.send(produce_of(6_000, 9, "client"), 9)
            throttles.append(client.response().throttle_time_ms)
            for _ in range(11):
                broker.advance(777)
                if scrapes:
                    scrape(broker)
    assert throttles[:4] == throttles[4:]
    assert any(throttles)


# -- quotas ------------------------------------------------------------------------------------------------------------


def test_request_time_and_mutations_are_exported_under_both_kafka_names(topic: Topic, broker: VirtualBroker) -> None:
    broker.cluster.client_quotas.alter(EVERYONE, {"request_percentage": 50.0, "controller_mutation_rate": 5.0})
    client = broker.client()
    client.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 3)
    assert value(broker, "kafka_server_request_request_time", user="", client_id="client") == 0
    assert value(broker, "kafka_server_quota_request_time", resource="Request", user="", clientId="client") == 0
    assert value(broker, "kafka_server_controllermutation_mutation_rate", user="", client_id="client") == 1 / 30
    assert value(broker, "kafka_server_controllermutation_tokens", user="", client_id="client") == 54
    tokens = {"resource": "ControllerMutation", "user": "", "clientId": "client"}
    assert value(broker, "kafka_server_quota_tokens", **tokens) == 54
    assert value(broker, "kafka_server_quota_mutation_rate", **tokens) == 1 / 30
    assert value(broker, "kafka_server_request_exempt_request_time") == 0


def test_mutations_are_exported_only_by_the_first_broker() -> None:
    broker = VirtualBroker("sluice.brokers=2")
    broker.cluster.client_quotas.alter(EVERYONE, {"controller_mutation_rate": 5.0})
    broker.client(node_id=2).call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 3)
    families = {family.name: family for family in registry(broker.cluster_server).collect()}
    (sample,) = families["kafka_server_controllermutation_tokens"].samples
    assert sample.labels == {"broker": "1", "user": "", "client_id": "client"}


def test_throttled_connections_are_counted_by_quota_until_their_throttle_time_is_over() -> None:
    broker = broker_with_topic(*QUOTAS, "quota.profile=kafka-4.4")
    client = broker.client()
    client.send(produce_of(12_000, 9, "client"), 9)
    assert value(broker, "kafka_server_produce_queue_size") == 1
    assert value(broker, "kafka_server_fetch_queue_size") == 0
    broker.advance(2_000)
    assert value(broker, "kafka_server_produce_queue_size") == 0


@pytest.mark.parametrize("version", [3, 9], ids=["held", "muted"])
def test_disconnected_throttled_client_is_no_longer_counted(version: int) -> None:
    broker = broker_with_topic(*QUOTAS)
    client = broker.client()
    client.send(produce_of(12_000, version, "client"), version)
    client.connection.cut()
    broker.settle()
    assert value(broker, "kafka_server_produce_queue_size") == 0


def test_throttle_times_are_exported_as_a_histogram_by_api_and_client() -> None:
    broker = broker_with_topic(*QUOTAS, "sluice.metrics.client.ids.max=1")
    for client_id in ("one", "two", "three"):
        broker.client(client_id).send(produce_of(12_000, 9, client_id), 9)
    family = scrape(broker)["sluice_throttle_time_seconds"]
    counts = {sample.labels["client_id"]: sample.value for sample in family.samples if sample.name.endswith("_count")}
    assert counts == {"one": 1, OTHER: 2}
    assert value(broker, "sluice_throttle_time_seconds_sum", api="Produce", user="", client_id=OTHER) == 4
    user = {"api": "Produce", "user": "ANONYMOUS", "client_id": "one"}
    assert value(broker, "sluice_throttle_time_seconds_bucket", **user, le="1.0") == 0
    assert value(broker, "sluice_throttle_time_seconds_bucket", **user, le="2.0") == 1


def test_connection_rates_are_exported_under_kafkas_names() -> None:
    broker = VirtualBroker("max.connection.creation.rate=1")
    broker.cluster.client_quotas.alter({"ip": None}, {"connection_creation_rate": 1000.0})
    for _ in range(12):
        broker.client()
    prefix = "kafka_server_socket_server_metrics_"
    assert value(broker, prefix + "broker_connection_accept_rate") == 1.1, "the twelfth connection is not yet counted"
    assert value(broker, prefix + "connection_accept_rate", listener="PLAINTEXT", ip="") == 1.1
    assert value(broker, prefix + "connection_accept_rate", listener="", ip="127.0.0.1") == 1.0
    assert value(broker, prefix + "connection_accept_throttle_time", listener="PLAINTEXT") == 1_000
    assert math.isnan(value(broker, prefix + "ip_connection_accept_throttle_time", listener="PLAINTEXT"))
    assert value(broker, "sluice_purgatory_operations", kind="Accept") == 1
