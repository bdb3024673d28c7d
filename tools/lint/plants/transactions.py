"""Plants of the rules in sluice/lint/rules/transactions."""

from collections.abc import Mapping, Sequence
from random import Random

from tools.lint.job import Job
from tools.lint.plant import Cell, Plant, anyhow, setting, value_of
from tools.lint.scene import Scene

_ALL = ("aiokafka", "kafka-python", "confluent-kafka", "java-4", "java-3.9", "franz-go", "sarama", "kafkajs")
_TIMEOUT = setting(
    "transaction.timeout.ms",
    franz_go="TransactionTimeout",
    sarama="Producer.Transaction.Timeout",
    kafkajs="producer.transactionTimeout",
)
# The coordinator looks for timeouts at this interval; its default is longer than a run.
_OFTEN: dict[str, str | float] = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 200}


def _job(random: Random, **fields: object) -> Job:
    of_all = {"role": "produce", "transactional_id": "shop", "bursts": random.randint(4, 6), "records": 5}
    return Job(**of_all | fields)  # type: ignore[arg-type]


def _timeouts(planted_ms: int, clients: Sequence[str] = _ALL) -> Mapping[str, Cell]:
    """Return cells with this timeout, remedied by the default."""
    return {each: Cell(value_of(each, _TIMEOUT, planted_ms), value_of(each, _TIMEOUT, 60_000)) for each in clients}


def _many(random: Random) -> Scene:
    return Scene(jobs=[_job(random, bursts=random.randint(40, 60), every_ms=random.randint(10, 30))])


def _held(random: Random) -> Scene:
    return Scene(jobs=[_job(random, hold_ms=random.randint(4_200, 4_400), bursts=1)])


def _too_late(random: Random) -> Scene:
    job = _job(random, hold_ms=random.randint(2_500, 2_800), bursts=1)
    return Scene(jobs=[job], properties=_OFTEN, fails=True)


def _plain(random: Random) -> Scene:
    return Scene(jobs=[_job(random)], fails=True)


def _in_turn(random: Random) -> Scene:
    """Producers start one after the other, while the one before has an open transaction; one is replaced."""
    lives = [_job(random, start_ms=number * 3_000, hold_ms=4_500, bursts=1) for number in range(3)]
    return Scene(jobs=lives, fails=True)


def _one_left(random: Random) -> Scene:
    """The application fails in a transaction, and ends."""
    return Scene(jobs=[_job(random, bursts=1, hold_ms=random.randint(300, 500))], fails=True)


PLANTS: Sequence[Plant] = (
    Plant("one-record-transactions", _many, anyhow(*_ALL), planted={"records": 1}),
    Plant("transaction-near-timeout", _held, _timeouts(5_000)),
    Plant("transaction-timed-out", _too_late, _timeouts(1_000)),
    Plant("transaction-timeout-rejected", _plain, _timeouts(1_800_000)),
    Plant("transactional-id-shared", _in_turn, anyhow(*_ALL), remedied={"transactional_id": "shop-1"}),
    Plant("transaction-left-open", _one_left, anyhow(*_ALL[:3]), planted={"commit": "none"}, remedied={"abort": True}),
)
