"""Requests that a client is not authorized for, and failed authentication."""

from collections.abc import Iterator

from sluice.protocol.errors import ErrorCode, name_of
from sluice.trace.described import counted
from sluice.trace.findings.history import Found, History, client_of, grouped, listed, seqs, topics_of

AUTHORIZATION_CODES = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
    }
)
_AUTHENTICATION = frozenset({"SaslAuthenticate", "SaslHandshake"})


def find(history: History) -> Iterator[Found]:
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
