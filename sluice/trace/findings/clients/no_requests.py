"""A trace without any request: no client connected, or none got as far as a request."""

from collections.abc import Iterator

from sluice.journal_events import ConnectionOpened
from sluice.trace.described import counted
from sluice.trace.findings.history import Found, History, seqs


def find(history: History) -> Iterator[Found]:
    if history.requests:
        return
    opened = history.of(ConnectionOpened)
    if opened:
        title = "No client sent a Kafka request"
        text = (
            f"{counted(len(opened), 'connection')} opened. Check the security protocol of the client and the listener."
        )
    else:
        title = "No client connected"
        text = "Check bootstrap.servers of the client, and whether the test starts it."
    yield Found("no-requests", "error", title, text, history.start_ns, seqs(opened))
