"""Clients whose last connections were closed by the brokers as these stopped."""

from collections.abc import Iterator

from sluice.journal_events import ConnectionClosed
from sluice.trace.described import counted
from sluice.trace.findings.history import NS_PER_S, Found, History, client_of, grouped, listed, seqs

_AT_ONCE_NS = NS_PER_S  # brokers of a cluster stop one after the other


def find(history: History) -> Iterator[Found]:
    clients = {one.connection: client_of(one) for one in history.requests}
    closed = [one for one in history.of(ConnectionClosed) if one.connection in clients]
    for client, ends in grouped(closed, lambda one: clients[one.connection]).items():
        last_ns = max(ends[-1].at_ns, history.last_seen_ns[client])
        last = [one for one in ends if last_ns - one.at_ns < _AT_ONCE_NS]
        if last and not any(one.by_client or one.reason for one in last):
            yield _finding(history, client, last)


def _finding(history: History, client: str, left: list[ConnectionClosed]) -> Found:
    first = left[0]
    title = f"Client {client} was not closed"
    text = f"{counted(len(left), 'connection')} still open when the brokers stopped, at {history.when(first.at_ns)}: "
    text += f"{listed(f'#{one.connection}' for one in left)}. Close clients in the test, also after a failure."
    return Found("unclosed-client", "warning", title, text, first.at_ns, seqs(left), [client])
