"""Connections that a limit refused."""

from collections.abc import Iterator

from sluice.journal_events import ClientEvent, ConnectionOpened, ConnectionRefused
from sluice.trace.described import counted
from sluice.trace.findings.history import Found, History, client_of, grouped, listed, seqs


def find(history: History) -> Iterator[Found]:
    for reason, alike in grouped(history.of(ConnectionRefused), lambda one: one.reason).items():
        first = alike[0]
        title = f"{counted(len(alike), 'connection')} refused: {reason}"
        clients = dict.fromkeys(one.client_id for one in alike if one.client_id)
        text = f"From {history.when(first.at_ns)} to {history.when(alike[-1].at_ns)}."
        holders = _holders(history, first)
        if holders:
            text += f" Open connections from the same address at the first refusal: {listed(holders)}."
        yield Found("connection-refused", "error", title, text, first.at_ns, seqs(alike), [*clients])


def _holders(history: History, refused: ConnectionRefused) -> list[str]:
    """Return the connections of an address that were open when another was refused, with their clients."""
    clients = {one.connection: client_of(one) for one in history.requests}
    return [
        f"#{one.connection} of client {clients[one.connection]}"
        for one in history.of(ConnectionOpened)
        if one.connection in clients
        and _host(one) == _host(refused)
        and one.at_ns <= refused.at_ns
        and (one.connection not in history.closed or history.closed[one.connection].at_ns > refused.at_ns)
    ]


def _host(event: ClientEvent) -> str:
    return event.peer.rpartition(":")[0]
