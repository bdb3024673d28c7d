"""Topics that never exist in the trace, requested by clients; with the name of a similar topic."""

from collections.abc import Iterator

from sluice.journal_events import Request
from sluice.protocol.errors import ErrorCode, name_of
from sluice.text.error_text import did_you_mean
from sluice.trace.described import counted
from sluice.trace.findings.history import Found, History, client_of, grouped, seqs, topics_of

_CODES = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INVALID_TOPIC_EXCEPTION}
)
_USES = frozenset({"Metadata", "Produce", "Fetch", "ListOffsets"})


def find(history: History) -> Iterator[Found]:
    known = topics_of(each for each in history.requests if each.api in _USES and _CODES.isdisjoint(each.error_codes))
    requests = [each for each in history.failed if not each.rule_id and not _CODES.isdisjoint(each.error_codes)]
    pairs = [(client_of(each), topic, each) for each in requests for topic in topics_of([each]) if topic not in known]
    for (client, topic), of_pair in grouped(pairs, lambda one: one[:2]).items():
        found = [request for _, _, request in of_pair]
        code = name_of(next(code for code in found[0].error_codes if code in _CODES))
        title = f"Topic {topic} does not exist, but client {client} requests it"
        text = f"{counted(len(found), 'request')} failed with {code}, {_apis(found)}, from "
        text += f"{history.when(found[0].received_ns)}.{did_you_mean(topic, known)}"
        yield Found("unknown-topic", "error", title, text, found[0].received_ns, seqs(found), [client, topic])


def _apis(requests: list[Request]) -> str:
    return " and ".join(dict.fromkeys(each.api for each in requests))
