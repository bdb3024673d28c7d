"""Connections that a limit refused."""

from collections.abc import Iterator

from sluice.journal_events import ConnectionRefused
from sluice.trace.described import counted
from sluice.trace.findings.history import Found, History, client_of, grouped, listed, seqs


def find(history: History) -> Iterator[Found]:
    for reason, alike in grouped(history.of(ConnectionRefused), lambda one: one.reason).items():
        first = alike[0]
        title = f"{counted(len(alike), 'connection')} refused: {reason}"
        clients = dict.fromkeys(map(client_of, alike))
        text = f"From {history.when(first.at_ns)}, by {listed(clients)}."
        yield Found("connection-refused", "error", title, text, first.at_ns, seqs(alike), [*clients])
