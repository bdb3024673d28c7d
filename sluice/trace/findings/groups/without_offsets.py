"""Groups without committed offsets: another group has them, or the group reads and does not commit."""

from collections.abc import Iterator

from sluice.journal_events import NO_ID, Request
from sluice.trace.described import has_failed
from sluice.trace.findings.history import (
    NS_PER_S,
    Found,
    History,
    client_of,
    duration,
    grouped,
    listed,
    seqs,
    topics_of,
)
from sluice.trace.model import Severity

_COMMITS = ("OffsetCommit", "TxnOffsetCommit")
_MEMBERS = ("JoinGroup", "ConsumerGroupHeartbeat")
_LONG_NS = 6 * NS_PER_S  # above Kafka's auto.commit.interval.ms of 5 s


def find(history: History) -> Iterator[Found]:
    commits = grouped((one for one in history.apis(*_COMMITS) if not has_failed(one)), lambda one: one.group_id)
    lookups = grouped((one for one in history.apis("OffsetFetch") if not has_failed(one)), lambda one: one.group_id)
    for group_id, requests in lookups.items():
        first = requests[0]
        found = any(one.offset != NO_ID for one in first.partitions)
        if found or not first.partitions:
            continue
        for other, of_other in commits.items():
            earlier = [one for one in of_other if one.received_ns < first.received_ns]
            shared = [topic for topic in topics_of(earlier) if topic in topics_of([first])]
            if other != group_id and shared:
                yield _another_group(history, group_id, other, first, earlier[-1], shared[0])
                break
    yield from _nothing_committed(history, commits, lookups)


def _another_group(history: History, group_id: str, other: str, lookup: Request, commit: Request, topic: str) -> Found:
    client = client_of(lookup)
    title = f"Group {group_id} has no committed offsets of {topic}, but group {other} has some"
    text = f"Client {client} fetched the offsets of group {group_id} at {history.when(lookup.received_ns)}. There were "
    text += "none, so auto.offset.reset applies. Group "
    text += f"{other} had committed at {history.when(commit.received_ns)}: check the group id."
    shown = [lookup.seq, commit.seq]
    names = [client, group_id, other, topic]
    return Found("group-without-offsets", "warning", title, text, lookup.received_ns, shown, names)


def _nothing_committed(
    history: History, commits: dict[str, list[Request]], lookups: dict[str, list[Request]]
) -> Iterator[Found]:
    joins = grouped((one for one in history.apis(*_MEMBERS) if not has_failed(one)), lambda one: one.group_id)
    for group_id, requests in joins.items():
        clients = {client_of(one) for one in requests}
        reads = [
            one
            for one in history.apis("Fetch")
            if client_of(one) in clients
            and any(each.fetched is not None and each.fetched.bytes for each in one.partitions)
        ]
        if not reads or group_id in commits:
            continue
        again = [one for one in lookups.get(group_id, ()) if one.received_ns > reads[0].received_ns]
        if not again and history.end_ns - reads[0].received_ns < _LONG_NS:
            continue
        first = reads[0]
        client = client_of(first)
        title = f"Group {group_id} reads, but never committed an offset"
        text = (
            f"Client {client} got records of {listed(topics_of(reads))} from {history.when(first.received_ns)} on. The "
        )
        text += f"group committed nothing within {duration(history.end_ns - first.received_ns)}. "
        if again:
            when = history.when(again[0].received_ns)
            text += f"Client {client_of(again[0])} fetched its offsets at {when}, and found none."
        else:
            text += "Its next start reads the same records, or none of them."
        names = [client, group_id, *topics_of(reads)]
        severity: Severity = "warning" if again else "info"
        yield Found("nothing-committed", severity, title, text, first.received_ns, seqs([first, *again[:1]]), names)
