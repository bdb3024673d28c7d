"""The pytest plugin, run by pytest: fixtures, the marker, and failure reports."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.broker_process import CLEAN_ENVIRONMENT
from tests.support.console import matches
from tests.support.nested_pytest import WITHOUT, run

pytest_plugins = ["pytester"]


# -- fixtures ----------------------------------------------------------------------------------------------------------


def test_each_test_has_its_own_broker(pytester: pytest.Pytester) -> None:
    code = """
        import pytest

        seen = set()

        @pytest.mark.parametrize("number", [1, 2])
        def test_it(kafka_broker, number):
            kafka_broker.client("shop").send("orders", b"one pizza")
            assert [one.value for one in kafka_broker.client().receive("orders")] == [b"one pizza"]
            kafka_broker.assert_requests("Produce", client_id="shop", exactly=1)
            seen.add(id(kafka_broker))

        def test_they_were_two():
            assert len(seen) == 2
    """
    run(pytester, code).assert_outcomes(passed=3)


def test_marker_sets_options(pytester: pytest.Pytester) -> None:
    code = """
        import pytest
        from sluice.faults import Close

        pytestmark = pytest.mark.kafka(brokers=2, config={"num.partitions": 4})

        def test_of_the_module(kafka_broker):
            assert list(kafka_broker.brokers) == [1, 2]
            kafka_broker.cluster.create_topic("orders")
            assert kafka_broker.cluster.partition("orders", 3).leader in (1, 2)

        @pytest.mark.kafka(brokers=1, quota={"client_id": "shop", "produce": "100k"}, faults=[Close()])
        def test_of_the_test_where_both_say_it(kafka_broker):
            assert list(kafka_broker.brokers) == [1]
            assert kafka_broker.quotas == [({"client-id": "shop"}, {"producer_byte_rate": 100_000.0})]
            assert len(kafka_broker.faults.list()) == 1

        @pytest.mark.kafka(scenario="throttle-storm", brokers=3)
        def test_with_a_scenario(kafka_broker, kafka_scenario):
            assert len(kafka_broker.brokers) == 3
            assert not kafka_scenario.done

        @pytest.mark.kafka
        def test_with_a_bare_mark(kafka_broker):
            assert len(kafka_broker.brokers) == 2
    """
    run(pytester, code, "--strict-markers").assert_outcomes(passed=4)


def test_marker_secures_the_broker(pytester: pytest.Pytester) -> None:
    code = """
        import pytest
        from confluent_kafka import Producer
        from sluice.client.errors import KafkaException

        ACLS = [{"user": "shop", "allow": ["write", "CREATE", "Describe"], "topic": "ord*"}]

        @pytest.mark.kafka(tls=True, sasl="SCRAM-SHA-512", users={"shop": "a,b:c", "kitchen": "k"}, acls=ACLS)
        def test_of_a_user_with_permissions(kafka_broker):
            def errors(user, topic):
                found = []
                producer = Producer(kafka_broker.client_config("confluent-kafka", user=user))
                producer.produce(topic, b"one", on_delivery=lambda error, message: found.append(error and error.name()))
                assert producer.flush(10) == 0
                return found

            denied = "TOPIC_AUTHORIZATION_FAILED"
            assert (errors("shop", "orders"), errors("kitchen", "orders")) == ([None], [denied])
            assert errors("shop", "x") == [denied]
            kafka_broker.reset()
            kafka_broker.client().send("orders", "one pizza")
            assert [one.value for one in kafka_broker.client().receive("orders")] == [b"one pizza"]

        @pytest.mark.kafka(sasl="PLAIN")
        @pytest.mark.parametrize("library", ["confluent-kafka", "aiokafka", "kafka-python", "java"])
        def test_settings(kafka_broker, library):
            values = kafka_broker.client_config(library, client_id="shop").values()
            assert {"SASL_PLAINTEXT", "PLAIN", "shop", kafka_broker.bootstrap} <= {*values}
    """
    run(pytester, code).assert_outcomes(passed=5)


# Arguments of the marker -> the message; `...` matches anything. test_wrong_calls.py has those of all brokers.
WRONG_MARKS = {
    "3": "expected NAME=VALUE, got 3",
    '"broker"': "expected NAME=VALUE, got 'broker'",
    "broker=3": "broker: unknown option; expected one of brokers, config, quota, ... Did you mean brokers?",
    "brokers='three'": "brokers: expected a number, such as 3, got 'three'",
    "brokers=None": "brokers: expected a number, such as 3, got None",
    "config=['num.partitions=3']": "config: expected properties by their names",
    "config={'num.partition': 1}": "config: num.partition: no such property",
    "quota='1M'": "quota: expected arguments of quota()",
    "quota={'client': 'a', 'produce': 1}": "quota.client: unknown field; expected one of client_id, user, produce",
    "faults='close'": "faults: expected several rules",
    "scenario=''": "'': unknown scenario",
    "scenario=5": "scenario: expected a name of the catalogue, a file or a Scenario",
    "seed='x'": "seed: expected a number, got 'x'",
}


def test_invalid_marker_is_reported_in_one_line(pytester: pytest.Pytester) -> None:
    tests = [
        f"@pytest.mark.kafka({mark})\ndef test_{number}(kafka_broker): ..." for number, mark in enumerate(WRONG_MARKS)
    ]
    tests += [
        "@pytest.mark.kafka(brokers=2)\ndef test_session(kafka_broker_session): ...",
        "def test_scenario(kafka_scenario): ...",
    ]
    result = run(pytester, "\n".join(["import pytest", *tests]), "-p", "no:randomly")
    result.assert_outcomes(errors=len(tests))
    *lines, of_session = [line for line in result.outlines if line.startswith("@pytest.mark.kafka: ")]
    reported = zip(WRONG_MARKS.items(), lines, strict=True)
    assert [mark for (mark, message), line in reported if not matches(f"@pytest.mark.kafka: {message}...", line)] == []
    assert of_session.endswith(": brokers: only for kafka_broker; kafka_broker_session accepts quota, faults")
    result.stdout.fnmatch_lines(['kafka_scenario: no scenario; add @pytest.mark.kafka(scenario="NAME")'])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*During handling*")
    result.stdout.no_fnmatch_line("*sluice/*.py*")


def test_factory_starts_any_number_of_brokers(pytester: pytest.Pytester) -> None:
    code = """
        import socket

        seen = []

        def test_two(kafka_cluster_factory):
            one, other = kafka_cluster_factory(brokers=2), kafka_cluster_factory(quota={"produce": "1M"})
            assert (len(one.brokers), len(other.brokers), len(other.quotas)) == (2, 1, 1)
            seen.extend([*one.brokers.values(), *other.brokers.values()])

        def test_they_are_gone():
            for address in seen:
                host, port = address.split(":")
                with socket.socket() as attempt:
                    assert attempt.connect_ex((host, int(port))) != 0

        def test_a_wrong_option_raises(kafka_cluster_factory):
            import pytest
            from sluice.errors import SluiceError

            with pytest.raises(SluiceError, match="broker: unknown option; .* Did you mean brokers"):
                kafka_cluster_factory(broker=2)
    """
    run(pytester, code).assert_outcomes(passed=3)


SESSION = """
    import pytest
    from sluice.journal_events import Throttle

    addresses = set()

    @pytest.fixture(scope="session")
    def shop(kafka_broker_session):
        kafka_broker_session.client("shop").send("orders", b"at first")
        return kafka_broker_session.bootstrap

    @pytest.mark.kafka(quota={"produce": "10M"}, faults=["close"])
    def test_leaves_much(kafka_broker_session, shop):
        kafka = kafka_broker_session
        addresses.add(kafka.bootstrap)
        assert (len(kafka.quotas), len(kafka.faults.list())) == (1, 1)
        kafka.faults.clear()
        kafka.quota(client_id="shop", produce="100k")
        kafka.client("shop").send("orders", bytes(1_020_000))
        kafka.wait_for(Throttle)
        kafka.assert_throttled("shop")
        kafka.faults.add("close")
        kafka.cluster.stop(1)

    def test_finds_nothing(kafka_broker_session, shop):
        kafka = kafka_broker_session
        addresses.add(kafka.bootstrap)
        assert kafka.journal.events() == []
        assert (kafka.quotas, kafka.faults.list()) == ([], [])
        with pytest.raises(TimeoutError):
            kafka.client().receive("orders", timeout_s=0.05)

    @pytest.mark.kafka(quota={"client_id": "shop", "produce": "100k"})
    def test_the_same_quota_remembers_nothing(kafka_broker_session):
        kafka_broker_session.client("shop").send("orders", bytes(900_000))
        kafka_broker_session.assert_not_throttled("shop")

    @pytest.mark.kafka(brokers=2)
    def test_the_mark_is_for_the_other(kafka_broker, kafka_broker_session):
        assert (len(kafka_broker.brokers), len(kafka_broker_session.brokers)) == (2, 1)

    def test_it_had_one_address():
        assert len(addresses) == 1
"""


def test_session_broker_is_reset_for_each_test(pytester: pytest.Pytester) -> None:
    run(pytester, SESSION).assert_outcomes(passed=5)


def test_coroutine_tests_of_any_plugin_can_use_it(pytester: pytest.Pytester) -> None:
    code = """
        import asyncio

        import pytest
        from aiokafka import AIOKafkaProducer

        async def produce(bootstrap):
            async with AIOKafkaProducer(bootstrap_servers=bootstrap, client_id="shop") as producer:
                await producer.send_and_wait("orders", b"one pizza")

        @pytest.mark.asyncio
        async def test_with_pytest_asyncio(kafka_broker):
            await produce(kafka_broker.bootstrap)
            kafka_broker.assert_requests("Produce", client_id="shop", exactly=1)

        @pytest.mark.anyio
        @pytest.mark.parametrize("anyio_backend", ["asyncio"])
        async def test_with_anyio(kafka_broker):
            await produce(kafka_broker.bootstrap)
            kafka_broker.assert_requests("Produce", client_id="shop", exactly=1)

        def test_with_neither(kafka_broker):
            asyncio.run(produce(kafka_broker.bootstrap))
    """
    pytester.makeini("[pytest]\nasyncio_mode = strict\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(dedent(code))
    pytester.runpytest_inprocess("-pno:schemathesis").assert_outcomes(passed=3)


def test_own_fixtures_take_precedence(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("import pytest\n@pytest.fixture\ndef kafka_broker():\n    return 'mine'\n")
    code = """
        import pytest

        @pytest.mark.kafka("my own meaning", brokers="many")
        def test_it(kafka_broker):
            assert kafka_broker == "mine"
    """
    run(pytester, code).assert_outcomes(passed=1)


def test_tests_run_in_several_processes(pytester: pytest.Pytester) -> None:
    code = """
        import pytest

        @pytest.mark.parametrize("number", range(6))
        def test_it(kafka_broker, kafka_broker_session, number):
            for kafka in (kafka_broker, kafka_broker_session):
                kafka.client().send("orders", b"%d" % number)
                assert [one.value for one in kafka.client().receive("orders")] == [b"%d" % number]

        def test_that_fails(kafka_broker):
            kafka_broker.client("shop").send("orders", b"one pizza")
            assert False
    """
    pytester.makepyfile(dedent(code))
    result = pytester.runpytest_subprocess("-n", "2", *WITHOUT)
    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(["*- sluice journal -*", "broker 127.0.0.1:*", "  * shop Produce v*"])


# -- reports -----------------------------------------------------------------------------------------------------------


def test_failure_report_contains_the_journal(pytester: pytest.Pytester) -> None:
    code = """
        def test_fails(kafka_broker):
            kafka_broker.client("shop").send("orders", b"one pizza")
            kafka_broker.assert_throttled("shop", at_least_ms=500)

        def test_passes(kafka_broker):
            kafka_broker.client("other").send("orders", b"one pizza")

        def test_fails_without():
            assert False
    """
    result = run(pytester, code)
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(
        [
            '>   *kafka_broker.assert_throttled("shop", at_least_ms=500)',
            "E  *AssertionError: expected: client shop throttled for 500 ms or more",
            "E  *observed: not throttled",
            "E  *its requests: *1 Produce*",
            "E  *the last events of client shop:",
            "*- sluice journal -*",
            "broker 127.0.0.1:*: * events",
            "  * connected from *",
            "  * shop Produce v*",
        ]
    )
    shown = result.stdout.str()
    assert shown.count("- sluice journal -") == 1
    assert "journal_assertions.py" not in shown, "the traceback ends in the test"


@pytest.mark.parametrize("style", ["auto", "long", "short", "native"])
def test_traceback_of_an_error_ends_in_the_test(pytester: pytest.Pytester, style: str) -> None:
    code = """
        import asyncio
        from sluice import Broker
        from sluice.faults import Error

        def test_fails(kafka_broker):
            kafka_broker.faults.add(Error("NOPE"), api="Produce")

        def test_fails_in_a_helper(kafka_broker):
            stop(kafka_broker)

        def stop(broker):
            broker.cluster.stop(7)

        def test_fails_in_a_coroutine():
            async def main():
                async with Broker() as broker:
                    await broker.cluster.stop(7)
            asyncio.run(main())

        def test_other_errors_are_shown_in_full(kafka_broker):
            kafka_broker.wait_for(lambda: 1 / 0)
    """
    result = run(pytester, code, f"--tb={style}")
    result.assert_outcomes(failed=4)
    shown = result.stdout.str()
    assert 'kafka_broker.faults.add(Error("NOPE"), api="Produce")' in shown
    assert "broker.cluster.stop(7)" in shown
    assert shown.count("sluice.errors.UnknownResourceError: there is no broker 7; expected one of 1") >= 2
    for name in ("engine.py", "loop_thread.py", "cluster_server.py", "_base.py"):
        assert name not in shown
    assert "wait_conditions.py" in shown
    assert "engine.py" in run(pytester, code, f"--tb={style}", "--full-trace").stdout.str()


def test_teardown_failure_report_contains_the_journal(pytester: pytest.Pytester) -> None:
    code = """
        import pytest

        @pytest.fixture
        def shop(kafka_broker):
            yield kafka_broker.client("shop")
            assert False

        def test_it(shop):
            shop.send("orders", b"one pizza")
    """
    result = run(pytester, code)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown*", "*- sluice journal -*", "  * shop Produce v*"])


def test_marker_and_fixtures_are_documented(pytester: pytest.Pytester) -> None:
    run(pytester, "", "--markers").stdout.fnmatch_lines(["@pytest.mark.kafka(brokers=1, config={}, *"])
    run(pytester, "", "--fixtures").stdout.fnmatch_lines_random(  # pytest sorts by the text of the line number
        ["kafka_broker -- *", "kafka_broker_session *", "kafka_cluster_factory -- *"]
    )


# -- costs -------------------------------------------------------------------------------------------------------------


UNUSED = """
import sys
import pytest
code = pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]])
print(sorted(name for name in sys.modules if name.partition(".")[0] == "sluice"))
"""


def loaded(folder: Path, files: Mapping[str, str]) -> str:
    for name, text in files.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-c", UNUSED, *WITHOUT]
    done = subprocess.run(command, cwd=folder, env=CLEAN_ENVIRONMENT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_unused_plugin_imports_only_itself(tmp_path: Path) -> None:
    test = "def test_it(tmp_path): ...\ndef test_fails(): assert False\n"
    plugin = ["sluice.pytest_plugin", "sluice.pytest_plugin.observers", "sluice.pytest_plugin.traces"]
    traces = [
        "sluice.embedded",
        *(f"sluice.embedded.traces{name}" for name in ("", ".of_broker", ".recorded_test", ".started")),
    ]
    own = ["sluice", "sluice._version", *traces, "sluice.errors", *plugin, "sluice.version"]
    assert loaded(tmp_path, {"test_it.py": test}) == str(own)


def test_user_modules_of_the_same_names_are_not_replaced(tmp_path: Path) -> None:
    names = ("broker", "client", "protocol", "testing", "journal", "faults")
    test = "\n".join(
        [
            *(f"import {name}" for name in names),
            "def test_it(kafka_broker):",
            f"    assert [{', '.join(f'{name}.MINE' for name in names)}]",
        ]
    )
    assert "sluice.broker.broker" in loaded(
        tmp_path, {"test_it.py": test, **{f"{name}.py": "MINE = 1" for name in names}}
    )


def test_pytest_does_not_recompile_sluice(pytester: pytest.Pytester) -> None:
    code = """
        from importlib.machinery import SourceFileLoader

        def test_it(kafka_broker):
            import sluice.broker.broker
            assert type(sluice.broker.broker.__loader__) is SourceFileLoader
    """
    pytester.makepyfile(dedent(code))
    pytester.runpytest_subprocess(*WITHOUT).assert_outcomes(passed=1)
