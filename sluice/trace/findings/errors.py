"""Errors after which clients do not retry: missing authorization, unknown topics, and others."""

from collections.abc import Iterator

from sluice.journal_events import Request
from sluice.protocol.errors import ErrorCode, name_of
from sluice.text.error_text import did_you_mean
from sluice.trace.described import counted

from .history import Found, History, client_of, grouped, listed, seqs, topics_of
from .members import MEMBER_CODES
from .retries_ended import is_retriable
from .transactions import FENCED_CODES

AUTHORIZATION_CODES = frozenset({
    ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_SASL_MECHANISM,
})  # fmt: skip
_AUTHENTICATION = frozenset({"SaslAuthenticate", "SaslHandshake"})


def authorization_failed(history: History) -> Iterator[Found]:
    requests = [each for each in history.failed if not AUTHORIZATION_CODES.isdisjoint(each.error_codes)]
    for (client, api, rule_id), alike in grouped(requests, lambda one: (client_of(one), one.api, one.rule_id)).items():
        first = alike[0]
        codes = " and ".join(dict.fromkeys(name_of(code) for each in alike for code in each.error_codes))
        by_rule = f", by fault rule {rule_id}" if rule_id else ""
        named = [*topics_of(alike), *dict.fromkeys(filter(None, (first.group_id, first.transactional_id)))]
        if api in _AUTHENTICATION:
            title = f"Client {client} failed to authenticate: {codes}{by_rule}"
        else:
            title = f"{first.principal} is not authorized for {api} {listed(named)}".strip() + by_rule
        text = f"{counted(len(alike), 'request')} of client {client} failed with {codes}, from "
        text += f"{history.when(first.received_ns)}."
        kind = "authentication-failed" if api in _AUTHENTICATION else "authorization-failed"
        yield Found(kind, "error", title, text, first.received_ns, seqs(alike), [client, *named])


_CODES = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INVALID_TOPIC_EXCEPTION}
)
_USES = frozenset({"Metadata", "Produce", "Fetch", "ListOffsets"})


def unknown_topic(history: History) -> Iterator[Found]:
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


def not_retriable(history: History) -> Iterator[Found]:
    """Yield errors that no other finding explains."""
    pairs = [(each, code) for each in history.failed for code in each.error_codes if _is_unexplained(each, code)]
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


def _is_unexplained(request: Request, code: int) -> bool:
    if is_retriable(code) or code in _EXPLAINED or code in _EXPECTED:
        return False
    return code != ErrorCode.UNSUPPORTED_VERSION or request.api != "ApiVersions"  # which offers lower versions


def _message(code: int) -> str:
    return ErrorCode(code).message if code in ErrorCode._value2member_map_ else ""
