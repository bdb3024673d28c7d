"""Histories of random operations under random failures have no anomaly.

A seed is 30 s of virtual time. Every second seed has a data directory, and kills of all brokers. The campaign
`histories` runs a hundred; `pytest FILE --history-seed N` repeats one. Each is played in a process of its own with the
same hashes: aiokafka iterates over sets of strings.
"""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sluice.broker.coordinator.group.offsets import OffsetStore
from sluice.broker.log.log_results import AppendResult
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.log.producer_state import ProducerState
from sluice.protocol.records.log_validator import Appendable
from tests.support.fixed_hashes import start
from tools.histories.checks import Anomaly, anomalies
from tools.histories.history import History
from tools.histories.run import play

_DEFAULT_SEEDS = 2  # with and without a data directory
# Long enough for some hundred batches.
_DEFECT_S = 10
# Long enough for rebalances and some failures.
_REPEATED_S = 4
_SHOWN = 3  # anomalies; the first is mostly the cause of the others


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        one, many = metafunc.config.getoption("--history-seed"), metafunc.config.getoption("--history-seeds")
        metafunc.parametrize("seed", range(many or _DEFAULT_SEEDS) if one is None else [one])


def report(seed: int, history: History, found: list[Anomaly]) -> str:
    """Return the anomalies with an excerpt of the history, and the command that repeats them."""
    lines = [f"seed {seed}: {len(found)} anomalies"]
    for anomaly in found[:_SHOWN]:
        lines += [f"{anomaly.rule}: {anomaly.text}", history.excerpt(anomaly.operations)]
    return "\n".join([*lines, f"repeat with: pytest {__file__} --history-seed {seed}"])


def check(seed: int, folder: str) -> str:
    """Return "no anomaly" or a report of them; odd seeds have a data directory in the folder."""
    history = play(seed, Path(folder) if seed % 2 else None)
    found = anomalies(history)
    return report(seed, history, found) if found else "no anomaly"


def test_history_has_no_anomaly(seed: int, tmp_path: Path) -> None:
    result = start(__name__, f"check({seed}, {str(tmp_path)!r})").communicate()[0]
    assert result == "no anomaly\n", result


def test_same_seed_gives_the_same_history() -> None:
    """The command in a report repeats the anomaly, whatever ran before in the process."""
    assert play(3, duration_s=_REPEATED_S) == play(3, duration_s=_REPEATED_S)


def test_same_seed_gives_the_same_history_in_other_processes() -> None:
    """Addresses differ between processes, and on Python 3.11 the hash of None."""
    running = [start(__name__, f"play(3, duration_s={_REPEATED_S})") for _ in range(2)]
    first, second = [process.communicate()[0] for process in running]
    assert first
    assert second == first


def _acknowledge_without_storing(patch: pytest.MonkeyPatch) -> None:
    """Acknowledge every 40th batch of records without storing it; a lost marker would only stop the clients."""
    store, numbers = PartitionLog._store, count(1)

    def forgetful(self: PartitionLog, appendable: Appendable, *arguments: Any) -> AppendResult:
        header = appendable.header
        if header is not None and not header.is_control and next(numbers) % 40 == 0:
            return AppendResult(base_offset=self.log_end_offset, last_offset=self.log_end_offset)
        return store(self, appendable, *arguments)

    patch.setattr(PartitionLog, "_store", forgetful)


def _store_twice(patch: pytest.MonkeyPatch) -> None:
    """Store every 10th batch of an idempotent producer twice."""
    store, numbers = PartitionLog._store, count(1)

    def repeating(self: PartitionLog, appendable: Appendable, *arguments: Any) -> AppendResult:
        header = appendable.header
        if header is not None and header.producer_id >= 0 and not header.is_control and next(numbers) % 10 == 0:
            store(self, appendable, *arguments)
            # A batch begins with its offset.
            again = self.log_end_offset.to_bytes(8, "big") + bytes(appendable.data[8:])
            appendable = replace(appendable, data=memoryview(again))
        return store(self, appendable, *arguments)

    patch.setattr(PartitionLog, "_store", repeating)
    patch.setattr(ProducerState, "check_batch", lambda *arguments: None)


def _report_no_aborted_transaction(patch: pytest.MonkeyPatch) -> None:
    """Omit the aborted transactions in responses to read_committed consumers."""
    patch.setattr(PartitionLog, "aborted_transactions", lambda *arguments: [])


def _commit_the_offsets_of_aborted_transactions(patch: pytest.MonkeyPatch) -> None:
    end = OffsetStore.end_transaction
    patch.setattr(OffsetStore, "end_transaction", lambda self, producer, committed: end(self, producer, True))


# Defect -> the rules that it breaks; any of them finds it.
_DEFECTS = {
    _acknowledge_without_storing: {"lost write", "reused offset"},
    _store_twice: {"duplicate"},
    _report_no_aborted_transaction: {"dirty read"},
    _commit_the_offsets_of_aborted_transactions: {"wrong copy"},
}


def rules_broken_with(damage: Callable[[pytest.MonkeyPatch], None]) -> set[str]:
    """Return the rules that a history with a defect of the broker breaks."""
    with pytest.MonkeyPatch.context() as patch:
        damage(patch)
        return {anomaly.rule for anomaly in anomalies(play(0, duration_s=_DEFECT_S))}


def broken_rules() -> str:
    return json.dumps([sorted(rules_broken_with(damage)) for damage in _DEFECTS])


def test_each_defect_of_the_broker_is_found() -> None:
    broken = json.loads(start(__name__, "broken_rules()").communicate()[0])
    found = dict(zip(_DEFECTS, broken, strict=True))
    assert [damage.__name__ for damage, rules in _DEFECTS.items() if not rules & {*found[damage]}] == [], found
