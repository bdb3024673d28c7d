"""A committed offset that decreased, so that records are read again."""

from collections.abc import Iterator

from sluice.journal_events import NO_ID, Request
from sluice.trace.described import has_failed
from sluice.trace.findings.history import Found, History, client_of

_COMMITS = ("OffsetCommit", "TxnOffsetCommit")


def find(history: History) -> Iterator[Found]:
    last: dict[tuple[str, str, int], tuple[int, Request]] = {}
    reported: set[tuple[str, str, int]] = set()
    for request in history.apis(*_COMMITS):
        if has_failed(request):
            continue
        for partition in request.partitions:
            key = request.group_id, partition.topic, partition.partition
            if partition.offset == NO_ID:
                continue
            before = last.get(key)
            last[key] = partition.offset, request
            if before is not None and partition.offset < before[0] and key not in reported:
                reported.add(key)
                yield _finding(history, key, before, last[key])


def _finding(
    history: History, key: tuple[str, str, int], before: tuple[int, Request], after: tuple[int, Request]
) -> Found:
    group_id, topic, partition = key
    name = f"{topic}-{partition}"
    offset, request = after
    who = client_of(request)
    earlier = client_of(before[1])
    title = f"Group {group_id} committed {name} back from {before[0]} to {offset}"
    text = f"Client {who} committed offset {offset} at {history.when(request.received_ns)}, after client {earlier} had "
    text += f"committed {before[0]} at {history.when(before[1].received_ns)}. {before[0] - offset} records can be read "
    text += "again." if who == earlier else "again. The first client may have committed after it lost the partition."
    seqs = [before[1].seq, request.seq]
    return Found("commit-went-back", "warning", title, text, request.received_ns, seqs, [group_id, topic, who])
