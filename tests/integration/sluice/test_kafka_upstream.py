"""pytest --kafka-upstream and SLUICE_KAFKA_UPSTREAM, with our own broker in place of a real cluster."""

import os
import unittest
from collections.abc import Iterator
from typing import ClassVar

import pytest

from sluice import SyncBroker
from sluice.embedded.options import BrokerOptions
from sluice.kafka_test_case import KafkaTestCase
from tests.support import nested_pytest

pytest_plugins = ["pytester"]


@pytest.fixture
def cluster() -> Iterator[SyncBroker]:
    with SyncBroker(config={"num.partitions": 2}) as broker:
        broker.cluster.create_topic("before")
        yield broker


def run(pytester: pytest.Pytester, cluster: SyncBroker, code: str, *arguments: str) -> pytest.RunResult:
    return nested_pytest.run(pytester, code, "-rs", "--kafka-upstream", cluster.bootstrap, *arguments)


def topics_of(cluster: SyncBroker) -> list[str]:
    return sorted(cluster._target.cluster._server.cluster.topics)


def test_each_fixture_is_a_proxy_in_front_of_the_cluster(pytester: pytest.Pytester, cluster: SyncBroker) -> None:
    code = """
        import pytest
        from sluice import SyncProxy
        CLOSES_ONCE = {"action": "close", "api": "Produce", "times": 1}

        def use(broker):
            assert isinstance(broker, SyncProxy)
            broker.client("shop").send("orders", b"one pizza")
            assert [one.value for one in broker.client().receive("orders")] == [b"one pizza"]
            broker.assert_requests("Produce", client_id="shop", exactly=1)

        def test_function_scope(kafka_broker):
            use(kafka_broker)

        def test_again(kafka_broker):
            use(kafka_broker)

        def test_factory(kafka_cluster_factory):
            use(kafka_cluster_factory())

        @pytest.mark.parametrize("number", [1, 2])
        def test_session_scope(kafka_broker_session, number):
            use(kafka_broker_session)

        @pytest.mark.kafka(quota={"client_id": "shop", "produce": "100k"}, faults=[CLOSES_ONCE])
        def test_options(kafka_broker):
            assert kafka_broker.quotas == [({"client-id": "shop"}, {"producer_byte_rate": 100_000.0})]
            assert len(kafka_broker.faults.list()) == 1

        @pytest.mark.kafka(config={"quota.producer.default": "100k", "num.partitions": 2})
        def test_config_that_the_cluster_has_too(kafka_broker):
            use(kafka_broker)
    """
    result = run(pytester, cluster, code)
    result.assert_outcomes(passed=7)
    result.stdout.fnmatch_lines([f"sluice: proxies in front of {cluster.bootstrap}"])
    assert topics_of(cluster) == ["before"]
    assert "SLUICE_KAFKA_UPSTREAM" not in os.environ


# Mark and body of a test -> the reason for which it is skipped.
SKIPPED = {
    "@pytest.mark.kafka(brokers=3)": ("pass", "brokers: expected 3, the upstream has 1"),
    '@pytest.mark.kafka(config={"num.partitions": 5})': (
        "pass",
        "config: num.partitions: expected 5, the upstream has 2",
    ),
    '@pytest.mark.kafka(config={"sluice.no.such.property": 5})': (
        "pass",
        "config: sluice.no.such.property: only brokers of sluice have this property",
    ),
    '@pytest.mark.kafka(sasl="PLAIN", acls=[])': ("pass", "acls: the upstream has its own ACLs"),
    '@pytest.mark.kafka(scenario="rolling-restart")': ("pass", "brokers: expected 3, the upstream has 1"),
    "@pytest.mark.kafka(scenario=ELECTS)": (
        "pass",
        "steps[[]0].elect: not possible in a proxy: the upstream cluster elects its leaders",
    ),
    '@pytest.mark.kafka(faults=["disk-full"])': ("pass", "fault.action: disk-full is not possible in a proxy: *"),
    "@pytest.mark.kafka": (
        'kafka_broker.cluster.move_leader("orders", 0, 1)',
        "move_leader: a proxy does not choose leaders; the cluster behind it does",
    ),
    "@pytest.mark.kafka()": (
        'kafka_broker.cluster.partition("orders", 0)',
        "partition orders-0: the brokers behind a proxy have it; use an admin client",
    ),
}


@pytest.mark.parametrize(("mark", "body", "reason"), [(mark, *case) for mark, case in SKIPPED.items()], ids=SKIPPED)
def test_a_test_that_needs_our_own_broker_is_skipped(
    pytester: pytest.Pytester, cluster: SyncBroker, mark: str, body: str, reason: str
) -> None:
    code = f"""
        import pytest
        from sluice.broker.scenarios.model import CreateTopic, Elect
        from sluice.scenarios import Scenario, Step

        STEPS = (Step(at="1s", elect=Elect("t")),)
        ELECTS = Scenario(name="x", brokers=1, topics=(CreateTopic(name="t"),), steps=STEPS)

        {mark}
        def test_it(kafka_broker):
            {body}
    """
    result = run(pytester, cluster, code)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines([f"SKIPPED*kafka-upstream: {reason}"])


def test_clients_log_in_at_the_proxy(pytester: pytest.Pytester, cluster: SyncBroker) -> None:
    code = """
        import pytest
        from confluent_kafka import Producer

        @pytest.mark.kafka(tls=True)
        def test_tls(kafka_broker):
            assert kafka_broker.client_config("java")["security.protocol"] == "SSL"
            use(kafka_broker, None)

        @pytest.mark.kafka(tls=True, sasl="SCRAM-SHA-512", users={"shop": "secret"})
        def test_scram(kafka_broker):
            use(kafka_broker, "shop")
            kafka_broker.wait_for("request", where=lambda event: event.listener == "SASL_SSL")

        def use(broker, user):
            producer = Producer(broker.client_config("confluent-kafka", user=user))
            producer.produce("orders", b"one pizza")
            assert producer.flush(10) == 0
            assert [one.value for one in broker.client().receive("orders")] == [b"one pizza"]
    """
    run(pytester, cluster, code).assert_outcomes(passed=2)
    assert topics_of(cluster) == ["before"]


def test_a_second_cluster_in_a_test_is_skipped(pytester: pytest.Pytester, cluster: SyncBroker) -> None:
    code = """
        def test_mirror(kafka_broker, kafka_cluster_factory):
            kafka_cluster_factory()
    """
    result = run(pytester, cluster, code)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*a second cluster in one test: both would be the same upstream"])


def test_scenarios_and_listeners_of_a_cluster_of_three(pytester: pytest.Pytester) -> None:
    code = """
        import pytest

        def read(broker):
            broker.client().send("orders", b"x")
            assert [one.value for one in broker.client().receive("orders")] == [b"x"]

        @pytest.mark.kafka(brokers=3)
        def test_a_broker_that_is_down(kafka_broker):
            for node_id in kafka_broker.brokers:
                kafka_broker.cluster.stop(node_id, controlled=False)
                kafka_broker.cluster.start(node_id)
            read(kafka_broker)

        @pytest.mark.kafka(scenario="throttle-storm")
        def test_a_scenario(kafka_broker, kafka_scenario):
            assert not kafka_scenario.done
            read(kafka_broker)

        @pytest.mark.kafka(scenario="leader-ping-pong")
        def test_elections(kafka_broker): ...
    """
    with SyncBroker(3, config={"default.replication.factor": 3}) as cluster:
        result = run(pytester, cluster, code)
        assert topics_of(cluster) == []
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*kafka-upstream: *not possible in a proxy: the upstream cluster elects*"])


CHANGES = {
    "kafka_broker": 'kafka_broker.client().send("before", b"x")',
    "kafka_broker_session": 'kafka_broker_session.client().send("before", b"x")',
}


@pytest.mark.parametrize(("fixture", "change"), CHANGES.items(), ids=CHANGES)
def test_a_test_that_changes_what_existed_fails(
    pytester: pytest.Pytester, cluster: SyncBroker, fixture: str, change: str
) -> None:
    code = f"""
        import contextlib

        def test_it({fixture}):
            with contextlib.suppress(Exception):
                {change}

        def test_next({fixture}):
            {fixture}.client().send("orders", b"x")
    """
    result = run(pytester, cluster, code)
    result.assert_outcomes(passed=2, errors=1)
    expected = "*kafka-upstream: Produce: topic before existed before the test. Use another name, or delete it*"
    result.stdout.fnmatch_lines([expected])
    assert topics_of(cluster) == ["before"]
    assert cluster.cluster.partition("before", 0).leader == 1


def test_client_properties_of_the_proxies_are_read_from_a_file(pytester: pytest.Pytester) -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
    lines = "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", f"sasl.jaas.config={jaas}"
    file = pytester.makefile(".properties", upstream="\n".join(lines))
    code = """
        def test_it(kafka_broker):
            kafka_broker.client().send("orders", b"x")
    """
    with SyncBroker(sasl="PLAIN", users={"u": "p"}) as cluster:
        run(pytester, cluster, code, "--kafka-upstream-config", str(file)).assert_outcomes(passed=1)


def test_an_upstream_that_does_not_respond_fails_the_test(pytester: pytest.Pytester) -> None:
    with SyncBroker() as stopped:
        pass  # its address remains readable
    result = run(pytester, stopped, "def test_it(kafka_broker): pass")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*upstream *: expected a Kafka broker, got no response within 10.0 s"])


# -- unittest ----------------------------------------------------------------------------------------------------------


def results_of(case: type[unittest.TestCase]) -> unittest.TestResult:
    result = unittest.TestResult()
    unittest.TestLoader().loadTestsFromTestCase(case).run(result)
    return result


def test_kafka_test_case_has_a_proxy(cluster: SyncBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    class Orders(KafkaTestCase):
        def test_it(self) -> None:
            self.kafka.client().send("orders", b"x")
            self.kafka.assert_requests("Produce", exactly=1)

        def test_that_moves_a_leader(self) -> None:
            self.kafka.cluster.move_leader("orders", 0, 1)

    monkeypatch.setenv("SLUICE_KAFKA_UPSTREAM", cluster.bootstrap)
    result = results_of(Orders)
    assert result.wasSuccessful(), result.errors + result.failures
    assert [reason for _, reason in result.skipped] == [
        "kafka-upstream: move_leader: a proxy does not choose leaders; the cluster behind it does"
    ]
    assert topics_of(cluster) == ["before"]


def test_kafka_test_case_that_needs_three_brokers_is_skipped(
    cluster: SyncBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Orders(KafkaTestCase):
        kafka_options: ClassVar[BrokerOptions] = {"brokers": 3}

        def test_it(self) -> None: ...

    monkeypatch.setenv("SLUICE_KAFKA_UPSTREAM", cluster.bootstrap)
    assert [reason for _, reason in results_of(Orders).skipped] == [
        "kafka-upstream: brokers: expected 3, the upstream has 1"
    ]
