"""What fault rules did: how many requests and connections each hit, of which clients."""

from collections import Counter
from collections.abc import Iterator

from sluice.trace.described import counted
from sluice.trace.findings.history import Found, History, client_of, grouped, listed, seqs


def find(history: History) -> Iterator[Found]:
    requests = grouped(history.requests, lambda one: one.rule_id)
    for rule_id, hits in history.hits.items():
        first = hits[0]
        apis = Counter(each.api or "connections" for each in hits)
        clients = dict.fromkeys(client_of(each) or f"broker {each.broker}" for each in hits)
        title = f"Fault rule {rule_id} fired {counted(len(hits), 'time')}: {first.action}"
        text = f"From {history.when(first.at_ns)} to {history.when(hits[-1].at_ns)}, on "
        text += f"{listed(f'{number} {api}' for api, number in apis.items())} of {listed(clients)}."
        shown = seqs(requests.get(rule_id, ())) + seqs(hits)
        yield Found("rule-fired", "info", title, text, first.at_ns, shown, [rule_id, *clients])
