"""Errors after which clients do not retry, except those that other findings explain."""

from collections.abc import Iterator

from sluice.journal_events import Request
from sluice.protocol.errors import ErrorCode, name_of
from sluice.trace.described import counted
from sluice.trace.findings.cluster.transactions import FENCED_CODES
from sluice.trace.findings.groups.member_lost import MEMBER_CODES
from sluice.trace.findings.history import Found, History, client_of, grouped, listed, seqs, topics_of

from .authorization_failed import AUTHORIZATION_CODES
from .retries_ended import is_retriable

_EXPLAINED = AUTHORIZATION_CODES | MEMBER_CODES | FENCED_CODES | {ErrorCode.INVALID_TOPIC_EXCEPTION}
# Steps of protocols: a client continues after them.
_EXPECTED = frozenset(
    {
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)


def find(history: History) -> Iterator[Found]:
    pairs = [(each, code) for each in history.failed for code in each.error_codes if _counts(each, code)]
    kinds = grouped(pairs, lambda pair: (client_of(pair[0]), pair[0].api, pair[1], pair[0].rule_id))
    for (client, api, code, rule_id), alike in kinds.items():
        requests = [request for request, _ in alike]
        first = requests[0]
        names = [client, *topics_of(requests), *filter(None, (rule_id, first.group_id, first.transactional_id))]
        subject = listed(dict.fromkeys(filter(None, (*topics_of(requests), first.group_id, first.transactional_id))))
        by_rule = f", by fault rule {rule_id}" if rule_id else ""
        title = f"{api} of client {client} failed with {name_of(code)}{by_rule}"
        text = f"{counted(len(requests), 'request')}" + (f" for {subject}" if subject else "")
        text += f", from {history.when(first.received_ns)}. {_message(code)}"
        yield Found("not-retriable", "error", title, text, first.received_ns, seqs(requests), names)


def _counts(request: Request, code: int) -> bool:
    if is_retriable(code) or code in _EXPLAINED or code in _EXPECTED:
        return False
    return code != ErrorCode.UNSUPPORTED_VERSION or request.api != "ApiVersions"  # which offers lower versions


def _message(code: int) -> str:
    return ErrorCode(code).message if code in ErrorCode._value2member_map_ else ""
