"""Brokers that were stopped, isolated or fenced: the context of most other findings."""

from collections.abc import Iterator

from sluice.journal_events import BrokerState
from sluice.trace.findings.history import NS_PER_S, Found, History, duration, grouped, seqs
from sluice.trace.model import Severity

_DOWN = frozenset({"stopped", "isolated"})
_AT_END_NS = NS_PER_S  # brokers stop with the test
_UP = frozenset({"running"})


def find(history: History) -> Iterator[Found]:
    for node_id, states in grouped(history.of(BrokerState), lambda event: event.broker).items():
        down = [one for one in states if one.state in _DOWN and one.at_ns < history.end_ns - _AT_END_NS]
        if not down:
            continue
        first = down[0]
        again = next((one for one in states if one.seq > first.seq and one.state in _UP), None)
        until = "until the end" if again is None else f"for {duration(again.at_ns - first.at_ns)}"
        title = f"Broker {node_id} was {first.state} at {history.when(first.at_ns)} {until}"
        severity: Severity = "warning" if again is None else "info"
        yield Found("broker-down", severity, title, "", first.at_ns, seqs(states), [])
