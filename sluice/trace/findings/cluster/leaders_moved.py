"""Leaders that moved, by topic: the context of errors of clients that still sent to the old one."""

from collections.abc import Iterator

from sluice.journal_events import NO_ID, LeaderChange
from sluice.trace.findings.history import Found, History, grouped, listed, seqs

_INTERNAL = "__"


def find(history: History) -> Iterator[Found]:
    moved = [one for one in history.of(LeaderChange) if NO_ID not in (one.before, one.broker)]
    moved = [one for one in moved if not one.topic.startswith(_INTERNAL)]
    for topic, changes in grouped(moved, lambda one: one.topic).items():
        first = changes[0]
        names = listed(f"{topic}-{one.partition} from broker {one.before} to {one.broker}" for one in changes)
        title = f"The leader moved at {history.when(first.at_ns)}: {names}"
        yield Found("leader-moved", "info", title, "", first.at_ns, seqs(changes), [topic])
