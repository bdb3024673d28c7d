"""The pytest plugin's findings: `--kafka-lint`."""

import json
from textwrap import dedent

import pytest

from tests.support import nested_pytest
from tests.support.nested_pytest import WITHOUT

pytest_plugins = ["pytester"]

TESTS = """
    import pytest
    from confluent_kafka import Producer
    from sluice import SyncBroker

    def produce(broker, client_id):
        producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": client_id})
        producer.produce("orders", b"one pizza")
        assert producer.flush(10) == 0

    def test_without_a_client_id(kafka_broker):
        produce(kafka_broker, "")

    def test_in_the_session(kafka_broker_session):
        produce(kafka_broker_session, "")

    def test_after_it_in_the_session(kafka_broker_session):
        produce(kafka_broker_session, "shop")

    def test_of_its_own_broker():
        with SyncBroker() as broker:
            produce(broker, "")

    def test_with_a_client_id(kafka_broker):
        produce(kafka_broker, "shop")

    def test_own_client(kafka_broker):
        for _ in range(20):
            kafka_broker.client("").send("orders", b"one pizza")

    def test_fails_by_itself(kafka_broker):
        produce(kafka_broker, "")
        assert False, "by itself"

    def test_unused(kafka_broker): ...

    def test_without_a_broker(): ...
"""
FAILED = ("without_a_client_id", "in_the_session", "of_its_own_broker", "fails_by_itself")


# The other rules would judge the small tests, too.
ONE_RULE = """
    from sluice.lint import registry, run

    rules = registry.all_rules

    def pytest_configure():
        run.all_rules = lambda: {"no-client-id": rules()["no-client-id"]}

    def pytest_unconfigure():
        run.all_rules = rules
"""


@pytest.fixture(autouse=True)
def _one_rule(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(dedent(ONE_RULE))


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return nested_pytest.run(pytester, TESTS, "--basetemp=base", *arguments)


def failed(result: pytest.RunResult) -> set[str]:
    lines = [line.split()[1] for line in result.outlines if line.startswith("FAILED ")]
    return {line.removeprefix("test_shop.py::test_") for line in lines}


def test_finding_fails_the_test_that_caused_it(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--kafka-lint=info")
    result.assert_outcomes(failed=4, passed=5)
    assert failed(result) == {*FAILED}
    shown = result.stdout.str()
    title = "sluice lint: 1 finding of severity info or worse"
    assert result.outlines.count(title) == 3, "not of the one that fails"
    result.stdout.fnmatch_lines(
        [
            "sluice lint: 1 finding of severity info or worse",
            "* no-client-id: client *",
            "  librdkafka*: *client.id*",
            '  in a baseline: {"rule":"no-client-id","scope":"client","subject":"rdkafka","software":"confluent-*"}',
        ]
    )
    assert shown.count("sluice-traces/test_shop.py-test_") == 4, "failed tests have traces"
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*pytest_plugin*")


def test_without_the_option_no_test_is_judged(pytester: pytest.Pytester) -> None:
    assert failed(run(pytester)) == {"fails_by_itself"}


def test_findings_below_the_severity_pass(pytester: pytest.Pytester) -> None:
    assert failed(run(pytester, "--kafka-lint=error", "--kafka-trace=off")) == {"fails_by_itself"}


def test_known_findings_pass(pytester: pytest.Pytester) -> None:
    known = {"rule": "no-client-id", "scope": "client", "subject": "rdkafka", "software": "confluent-kafka-python"}
    (pytester.path / "known.json").write_text(json.dumps({"version": 1, "findings": [known]}))
    result = run(pytester, "--kafka-lint=info", "--kafka-lint-baseline=known.json")
    assert failed(result) == {"fails_by_itself"}


def test_findings_of_several_processes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shop=dedent(TESTS))
    result = pytester.runpytest_subprocess("-n", "2", "--kafka-lint=info", *WITHOUT)
    assert failed(result) == {*FAILED}


WRONG = {
    "unknown severity": (["--kafka-lint=fatal"], "--kafka-lint: expected one of error, warning, info, got fatal"),
    "no baseline": (["--kafka-lint=info", "--kafka-lint-baseline=none"], "--kafka-lint-baseline: none: cannot read *"),
    "baseline alone": (["--kafka-lint-baseline=none"], "--kafka-lint-baseline: needs --kafka-lint"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_wrong_option_is_an_error_in_one_line(pytester: pytest.Pytester, arguments: list[str], message: str) -> None:
    result = run(pytester, *arguments)
    assert result.ret is pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
