"""Why findings about clients with their defaults are true."""

from collections.abc import Iterable, Mapping, Sequence

from tools.lint.verdicts import Reported

ALL = "*"

# By rule, and by client or ALL.
REASONS: Mapping[str, Mapping[str, str]] = {
    "acks-below-all": {
        "aiokafka": "Its default is `acks=1`.",
        "kafka-python-2": "Its default is `acks=1`; version 3 changed it.",
        "sarama": "Its default is `WaitForLocal`.",
    },
    "no-client-id": {
        ALL: "All applications with the default id share their quota, and have the same name in metrics.",
    },
    "reordering-possible": {
        "confluent-kafka": "Its default is `enable.idempotence=false`, with retries and up to 1,000,000 requests in "
        "flight.",
        "kafka-python-2": "Its default is `enable_idempotence=False`, with retries and five requests in flight; "
        "version 3 changed it.",
        "kafkajs": "Its default is `idempotent: false`, with retries and no limit of requests in flight.",
        "sarama": "Its default is `Producer.Idempotent = false`, with three retries and five requests in flight.",
    },
}


def reason_for(rule: str, client: str) -> str:
    """Return the reason; "" without one."""
    of_rule = REASONS.get(rule, {})
    return of_rule.get(client) or of_rule.get(ALL, "")


def unexplained(found: Iterable[Reported]) -> Sequence[Reported]:
    """Return the findings that nobody has found to be true."""
    return [each for each in found if not reason_for(each.rule, each.client)]
