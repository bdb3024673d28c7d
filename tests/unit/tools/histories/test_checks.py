"""Each check of tools/histories finds its anomaly in a history, and none in the correct history."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from tools.histories.checks import CHECKS, anomalies, wrong_copies
from tools.histories.history import (
    AnyOperation,
    Commit,
    Committed,
    End,
    EndOffset,
    Guarantee,
    History,
    Init,
    Operation,
    Outcome,
    Poll,
    Send,
)

T = TypeVar("T", bound=Operation)
A, B = "producer", "consumer"
OK = Outcome.OK


def done(kind: type[T], at_ms: float, process: str = B, **fields: object) -> T:
    """Return an operation that completed after 1 ms."""
    return kind(process=process, invoked_ms=at_ms, completed_ms=at_ms + 1, outcome=OK, **fields)


def send(at_ms: float, value: int, offset: int, *, process: str = A, transaction: int | None = None) -> Send:
    return done(
        Send,
        at_ms,
        process,
        value=value,
        key="a",
        partition=0,
        guarantee=Guarantee.EXACTLY_ONCE,
        offset=offset,
        transaction=transaction,
    )


def end(at_ms: float, transaction: int, *, commits: bool) -> End:
    return done(End, at_ms, "tx", transaction=transaction, commits=commits)


def init(at_ms: float, process: str) -> Init:
    return done(Init, at_ms, process, transactional_id="id")


def poll(
    at_ms: float, *records: tuple[int, int], committed_only: bool = False, group: str | None = None, session: int = 0
) -> Poll:
    return done(
        Poll,
        at_ms,
        partition=0,
        records=[*records],
        committed_only=committed_only,
        session=session,
        first=None if group else 0,
        group=group,
    )


def final(*records: tuple[int, int], committed_only: bool) -> Poll:
    read = poll(1000, *records, committed_only=committed_only, session=99 + committed_only)
    return replace(read, process="final", is_final=True)


def end_offset(at_ms: float, offset: int) -> EndOffset:
    return done(EndOffset, at_ms, partition=0, committed_only=False, offset=offset)


def commit(at_ms: float, offset: int) -> Commit:
    return done(Commit, at_ms, group="g", partition=0, offset=offset)


def committed(at_ms: float, offset: int | None) -> Committed:
    return done(Committed, at_ms, group="g", partition=0, offset=offset)


# Offsets 0 and 1: idempotent; 2 and 3: a committed transaction, and its marker at 4; 5: an aborted one.
ALL = [(0, 0), (1, 1), (2, 2), (3, 3), (5, 4)]
CORRECT: list[AnyOperation] = [
    init(0, "tx.0"),
    send(10, 0, 0),
    send(12, 1, 1),
    send(14, 2, 2, process="tx.0", transaction=7),
    send(16, 3, 3, process="tx.0", transaction=7),
    end(18, 7, commits=True),
    init(20, "tx.1"),
    send(22, 4, 5, process="tx.1", transaction=8),
    end(24, 8, commits=False),
    poll(30, (0, 0), (1, 1), group="g", session=1),
    commit(32, 2),
    poll(34, (2, 2), (3, 3), group="g", session=1),
    commit(36, 4),
    committed(38, 4),
    end_offset(40, 6),
    poll(42, (0, 0), (1, 1), (2, 2)),
    poll(44, (3, 3), (5, 4)),
    poll(46, (0, 0), (1, 1), (2, 2), (3, 3), committed_only=True, session=2),
    final(*ALL, committed_only=False),
    final(*ALL[:4], committed_only=True),
]
Change = Callable[[list[AnyOperation]], None]


def swap(old: AnyOperation, *new: AnyOperation) -> Change:
    def change(operations: list[AnyOperation]) -> None:
        index = operations.index(old)
        operations[index : index + 1] = new

    return change


def add(*new: AnyOperation) -> Change:
    return lambda operations: operations.extend(new)


def both(*changes: Change) -> Change:
    def change(operations: list[AnyOperation]) -> None:
        for each in changes:
            each(operations)

    return change


def of(kind: type[AnyOperation], number: int = 0) -> AnyOperation:
    return [each for each in CORRECT if isinstance(each, kind)][number]


def in_logs(*records: tuple[int, int], committed: tuple[tuple[int, int], ...] | None = None) -> Change:
    def change(operations: list[AnyOperation]) -> None:
        operations[:] = [each for each in operations if not (isinstance(each, Poll) and each.is_final)]
        operations += [
            final(*records, committed_only=False),
            final(*(records[:4] if committed is None else committed), committed_only=True),
        ]

    return change


WRONG: dict[str, tuple[str, Change]] = {
    "an acknowledged record is in no log": ("lost write", add(send(50, 9, 9))),
    "an acknowledged record has another offset": ("lost write", swap(of(Send, 1), send(12, 1, 8))),
    "a record of a committed transaction is not read": ("lost write", in_logs(*ALL, committed=tuple(ALL[:2]))),
    "a record of an idempotent producer is in the log twice": ("duplicate", in_logs(*ALL, (6, 1))),
    "a record follows a later one of its key": (
        "order",
        both(swap(of(Send, 0), send(10, 0, 1)), swap(of(Send, 1), send(12, 1, 0)), in_logs((0, 1), (1, 0), *ALL[2:])),
    ),
    "a record was never sent": ("phantom", in_logs(*ALL, (6, 9))),
    "a record was received before it was sent": ("phantom", add(poll(5, (0, 0), session=5))),
    "a record of a failed send was received": (
        "phantom",
        swap(of(Send, 0), replace(of(Send, 0), outcome=Outcome.FAIL)),
    ),
    "a record of an aborted transaction is read": ("dirty read", add(poll(50, *ALL, committed_only=True, session=5))),
    "a record is read before its transaction is committed": (
        "dirty read",
        add(poll(15, *ALL[:3], committed_only=True, session=5)),
    ),
    "one of two records of a committed transaction is read": (
        "torn transaction",
        in_logs(*ALL, committed=tuple(ALL[:3])),
    ),
    "one of two records of a transaction with an unknown outcome is read": (
        "torn transaction",
        both(swap(of(End), replace(of(End), outcome=Outcome.INFO)), in_logs(*ALL, committed=tuple(ALL[:3]))),
    ),
    "a consumer receives an offset again": ("consumer order", add(poll(50, (3, 3)))),
    "a consumer does not receive an offset": ("skipped records", add(poll(50, ALL[0], ALL[2], session=5))),
    "a consumer does not receive the first offset": ("skipped records", add(poll(50, ALL[1], session=5))),
    "a consumer does not receive a record of a committed transaction": (
        "skipped records",
        add(poll(50, *ALL[:2], ALL[3], committed_only=True, session=5)),
    ),
    "an offset has another value at another time": ("reused offset", add(poll(50, (0, 1), session=5))),
    "a fenced producer's record is acknowledged": (
        "fencing",
        both(add(send(50, 5, 6, process="tx.0")), in_logs(*ALL, (6, 5))),
    ),
    "a fenced producer's record is appended later": (
        "fencing",
        both(add(replace(send(50, 5, -1, process="tx.0"), outcome=Outcome.INFO)), in_logs(*ALL, (6, 5))),
    ),
    "a committed offset is lost": ("committed offset", add(committed(50, None))),
    "a committed offset goes back": ("committed offset", add(committed(50, 2))),
    "a committed offset was never committed": ("committed offset", add(committed(50, 5))),
    "a group commits beyond a record that it has not received": ("unread commit", add(commit(50, 6), committed(52, 6))),
    "an end offset goes back": ("end offset", add(end_offset(50, 5))),
    "an end offset is below a received record": ("end offset", swap(of(EndOffset), end_offset(48, 5))),
}


def test_correct_history_has_no_anomaly() -> None:
    assert anomalies(History([*CORRECT])) == []


@pytest.mark.parametrize(("rule", "change"), WRONG.values(), ids=WRONG)
def test_anomaly_is_found_when(rule: str, change: Change) -> None:
    operations = [*CORRECT]
    change(operations)
    assert rule in {anomaly.rule for anomaly in anomalies(History(operations))}


def test_every_check_finds_an_anomaly_in_some_history() -> None:
    found = set()
    for _, change in WRONG.values():
        operations = [*CORRECT]
        change(operations)
        found |= {check for check in CHECKS if [*check(History(operations))]}
    assert found == {*CHECKS} - {wrong_copies}  # which has its own test


COPIES = {
    "equal": ([0, 1], 2, True),
    "all": ([0, 1, 2, 3], 4, True),
    "lost": ([0], 2, False),
    "twice": ([0, 1, 1], 2, False),
    "other-order": ([1, 0], 2, False),
    "beyond-the-offset": ([0, 1, 2], 2, False),
    "without-the-offset": ([0, 1], 0, False),
}


@pytest.mark.parametrize(("copies", "copied_up_to", "is_right"), COPIES.values(), ids=COPIES)
def test_copies_are_the_records_up_to_the_committed_offset(
    copies: list[int], copied_up_to: int, is_right: bool
) -> None:
    history = History([*CORRECT], copies={0: copies}, copied_up_to={0: copied_up_to})
    assert (not [*wrong_copies(history)]) is is_right
