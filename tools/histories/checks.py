"""The checks of a history: pure functions that yield an anomaly for each violation of a guarantee of Kafka.

They follow the Kafka workload of Jepsen (https://github.com/jepsen-io/redpanda), without its inference of transaction
dependencies: each value is unique, and a final read returns the whole log.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from .history import AnyOperation, Commit, Committed, EndOffset, Guarantee, History, Init, Outcome, Poll, Send


class Anomaly(NamedTuple):
    """A violation, and the operations that show it."""

    rule: str
    text: str
    operations: tuple[AnyOperation, ...] = ()


Check = Callable[[History], Iterator[Anomaly]]


def lost_writes(history: History) -> Iterator[Anomaly]:
    """An acknowledged record is in the final log, at the offset of its acknowledgement (KIP-98: or not committed)."""
    sends, ends = history.sends, history.ends
    for committed_only in (False, True):
        final = history.final(committed_only=committed_only)
        reader = "read_committed" if committed_only else "read_uncommitted"
        values = {partition: {value for _, value in log} for partition, log in final.items()}
        at = {(partition, offset): value for partition, log in final.items() for offset, value in log}
        for send in sends.values():
            end = None if send.transaction is None else ends.get(send.transaction)
            is_committed = send.transaction is None or (end is not None and end.is_ok and end.commits)
            if not send.is_ok or (committed_only and not is_committed):
                continue
            if send.partition not in final or send.value not in values[send.partition]:
                text = f"a {reader} consumer does not receive value {send.value} of partition {send.partition}"
                yield Anomaly("lost write", text, (send,))
            elif send.offset >= 0 and at.get((send.partition, send.offset)) != send.value:
                text = f"value {send.value} is not at its offset {send.offset} of partition {send.partition}"
                yield Anomaly("lost write", text, (send,))


def wrong_copies(history: History) -> Iterator[Anomaly]:
    """The copies are exactly the committed records up to the offset that was committed with them (KIP-447)."""
    for partition, log in history.final(committed_only=True).items():
        copied_up_to = history.copied_up_to.get(partition, 0)
        expected = [value for offset, value in log if offset < copied_up_to]
        copies = history.copies.get(partition, [])
        if copies != expected:
            lost, extra = [v for v in expected if v not in copies], [v for v in copies if v not in expected]
            text = f"partition {partition} up to offset {copied_up_to}: {len(copies)} of {len(expected)} records"
            yield Anomaly("wrong copy", f"{text}, lost {lost[:5]}, extra {extra[:5]}")


def duplicates(history: History) -> Iterator[Anomaly]:
    """A record of an idempotent producer is in the log once."""
    sends = history.sends
    for partition, log in history.final(committed_only=False).items():
        offsets: defaultdict[int, list[int]] = defaultdict(list)
        for offset, value in log:
            offsets[value].append(offset)
        for value, found in offsets.items():
            send = sends.get(value)
            if len(found) > 1 and send is not None and send.guarantee is Guarantee.EXACTLY_ONCE:
                yield Anomaly("duplicate", f"value {value} is at the offsets {found} of partition {partition}", (send,))


def unordered_keys(history: History) -> Iterator[Anomaly]:
    """Records of one process with the same key are in the order of the sends, at their first occurrence.

    Without idempotence, this holds for acknowledged records only: a copy of a request that expired may be appended
    late.
    """
    sends = history.sends
    for log in history.final(committed_only=False).values():
        last: dict[tuple[str, str], Send] = {}
        seen: set[int] = set()
        for _, value in log:
            send = sends.get(value)
            if send is None or value in seen or send.guarantee is Guarantee.AT_LEAST_ONCE:
                continue
            seen.add(value)
            if send.guarantee is Guarantee.ORDERED and not send.is_ok:
                continue
            before = last.get((send.process, send.key))
            if before is not None and before.value > value:
                text = f"value {value} of key {send.key} follows {before.value}"
                yield Anomaly("order", text, (send, before))
            last[send.process, send.key] = send


def phantoms(history: History) -> Iterator[Anomaly]:
    """A record that a consumer receives was sent, to that partition, before."""
    sends = history.sends
    for poll in _polls(history):
        for offset, value in poll.records:
            send = sends.get(value)
            if send is None or send.partition != poll.partition or send.invoked_ms > poll.completed_ms:
                text = f"value {value} at offset {offset} of partition {poll.partition} was not sent there"
                yield Anomaly("phantom", text, (poll,))
            elif send.outcome is Outcome.FAIL:
                yield Anomaly("phantom", f"value {value} was received although its send failed", (send, poll))


def dirty_reads(history: History) -> Iterator[Anomaly]:
    """A read_committed consumer receives no record of an aborted transaction, nor of one before its commit."""
    sends, ends = history.sends, history.ends
    for poll in _polls(history):
        for offset, value in poll.records if poll.committed_only else ():
            send = sends.get(value)
            if send is None or send.transaction is None:
                continue
            end = ends.get(send.transaction)
            if end is None or end.invoked_ms > poll.completed_ms:
                text = f"value {value} at offset {offset} was received before its transaction was committed"
                yield Anomaly("dirty read", text, (send, poll))
            elif end.is_ok and not end.commits:
                text = f"value {value} at offset {offset} belongs to an aborted transaction"
                yield Anomaly("dirty read", text, (send, end, poll))


def torn_transactions(history: History) -> Iterator[Anomaly]:
    """All records of a transaction are read by read_committed consumers, or none."""
    parts: defaultdict[int, list[Send]] = defaultdict(list)
    for send in history.sends.values():
        if send.transaction is not None and send.is_ok:
            parts[send.transaction].append(send)
    read = {value for log in history.final(committed_only=True).values() for _, value in log}
    for transaction, sent in parts.items():
        missing = [send for send in sent if send.value not in read]
        if missing and len(missing) < len(sent):
            text = f"{len(missing)} of {len(sent)} records of transaction {transaction} are missing"
            yield Anomaly("torn transaction", text, tuple(sent))


def skipped_records(history: History) -> Iterator[Anomaly]:
    """A consumer receives the records of a partition in the order of offsets, and omits none that it may read."""
    sessions: defaultdict[tuple[str, int, int], list[Poll]] = defaultdict(list)
    for poll in _polls(history):
        if poll.session is not None:
            sessions[poll.process, poll.partition, poll.session].append(poll)
    for (process, partition, _), polls in sessions.items():
        read = [offset for poll in polls for offset, _ in poll.records]
        if any(one >= following for one, following in pairwise(read)):
            backwards = next((one, following) for one, following in pairwise(read) if one >= following)
            text = f"{process} received offset {backwards[1]} of partition {partition} after {backwards[0]}"
            yield Anomaly("consumer order", text, tuple(polls))
        first = polls[0].first if polls[0].first is not None else read[0]
        log = history.final(committed_only=polls[0].committed_only).get(partition, [])
        expected = {offset for offset, _ in log if first <= offset <= read[-1]}
        if skipped := sorted(expected - {*read}):
            text = f"{process} received no records at the offsets {skipped[:5]} of partition {partition}"
            yield Anomaly("skipped records", text, tuple(polls))


def reused_offsets(history: History) -> Iterator[Anomaly]:
    """An offset has the same value for all consumers at all times."""
    values: dict[tuple[int, int], tuple[int, Poll]] = {}
    for poll in _polls(history):
        for offset, value in poll.records:
            known, earlier = values.setdefault((poll.partition, offset), (value, poll))
            if known != value:
                text = f"offset {offset} of partition {poll.partition} has the values {known} and {value}"
                yield Anomaly("reused offset", text, (earlier, poll))


def fenced_writes(history: History) -> Iterator[Anomaly]:
    """A record that a producer sends after a successor with its transactional id has initialized is never appended."""
    inits = [each for each in history.operations if isinstance(each, Init) and each.is_ok]
    ids = {each.process: each.transactional_id for each in inits}
    appended = {value for log in history.final(committed_only=False).values() for _, value in log}
    for send in history.sends.values():
        own_id = ids.get(send.process)
        own = [each for each in inits if each.process == send.process]
        for init in inits:
            if init.transactional_id != own_id or init.process == send.process or not own[-1].precedes(init):
                continue
            if init.precedes(send) and (send.is_ok or send.value in appended):
                text = f"value {send.value} of {send.process} was appended after {init.process} had fenced it"
                yield Anomaly("fencing", text, (init, send))


def group_offsets(history: History) -> Iterator[Anomaly]:
    """The committed offset of a group never goes back, is not lost, and is one that was committed.

    Members commit only positions, which rise.
    """
    commits: defaultdict[tuple[str, int], list[Commit]] = defaultdict(list)
    requests: defaultdict[tuple[str, int], list[Committed]] = defaultdict(list)
    for each in history.operations:
        if isinstance(each, Commit):
            commits[each.group, each.partition].append(each)
        elif isinstance(each, Committed) and each.is_ok:
            requests[each.group, each.partition].append(each)
    for (group, partition), found in requests.items():
        own = commits[group, partition]
        for request in found:
            offset = _number(request)
            earlier: list[tuple[int, Commit | Committed]] = [
                (each.offset, each) for each in own if each.is_ok and each.precedes(request)
            ]
            earlier += [(_number(each), each) for each in found if each.precedes(request)]
            highest, cause = max(earlier, key=lambda each: each[0], default=(-1, None))
            where = f"group {group}, partition {partition}"
            if cause is not None and offset < highest:
                text = f"{where}: the committed offset is {offset} after {highest}"
                yield Anomaly("committed offset", text, (cause, request))
            if offset >= 0 and not any(
                each.offset == offset and each.invoked_ms <= request.completed_ms for each in own
            ):
                yield Anomaly("committed offset", f"{where}: {offset} was not committed", (request,))


def unread_commits(history: History) -> Iterator[Anomaly]:
    """A group has received all records before its committed offset."""
    read: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    isolation: dict[str, bool] = {}
    for poll in _polls(history):
        if poll.group is not None:
            read[poll.group, poll.partition].update(offset for offset, _ in poll.records)
            isolation[poll.group] = poll.committed_only
    for each in history.operations:
        if isinstance(each, Committed) and each.is_ok and each.offset is not None:
            log = history.final(committed_only=isolation.get(each.group, False)).get(each.partition, [])
            expected = {offset for offset, _ in log if offset < each.offset}
            if unread := sorted(expected - read[each.group, each.partition]):
                text = f"group {each.group} committed {each.offset} of partition {each.partition} without {unread[:5]}"
                yield Anomaly("unread commit", text, (each,))


def end_offsets(history: History) -> Iterator[Anomaly]:
    """The end offset that a consumer receives never goes back, nor below records that it has received."""
    last: dict[tuple[str, int], tuple[int, AnyOperation]] = {}
    for each in sorted(history.operations, key=lambda each: each.completed_ms):
        if not each.is_ok or not isinstance(each, EndOffset | Poll):
            continue
        offset = each.offset if isinstance(each, EndOffset) else each.records[-1][0] + 1
        known, cause = last.get((each.process, each.partition), (-1, each))
        if isinstance(each, EndOffset) and offset < known and cause.precedes(each):
            text = f"{each.process} received the end offset {offset} of partition {each.partition} after {known}"
            yield Anomaly("end offset", text, (cause, each))
        if offset > known:
            last[each.process, each.partition] = offset, each


CHECKS: tuple[Check, ...] = (
    lost_writes, wrong_copies, duplicates, unordered_keys, phantoms, dirty_reads, torn_transactions, skipped_records,
    reused_offsets, fenced_writes, group_offsets, unread_commits, end_offsets,
)  # fmt: skip


def anomalies(history: History) -> list[Anomaly]:
    """Return the violations that all checks find."""
    return [anomaly for check in CHECKS for anomaly in check(history)]


def _polls(history: History) -> Iterator[Poll]:
    return (each for each in history.operations if isinstance(each, Poll) and each.records)


def _number(request: Committed) -> int:
    return -1 if request.offset is None else request.offset
