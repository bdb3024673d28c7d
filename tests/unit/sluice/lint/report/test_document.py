"""The JSON document."""

import json

import msgspec

from sluice.lint.report.document import document
from tests.support.journals import ns
from tests.support.lint_results import RULES, result


def test_a_finding_has_its_evidence_reason_and_remedies() -> None:
    made = json.loads(msgspec.json.encode(document(result(), RULES, "run.ndjson")))
    assert {name: made[name] for name in ("version", "source", "events", "lost")} == {
        "version": 1,
        "source": "run.ndjson",
        "events": 1234,
        "lost": 5,
    }
    found = made["findings"][0]
    assert found["clients"] == [
        {"client_id": "shop", "software_name": "apache-kafka-java", "software_version": "4.4.0"}
    ]
    assert found["evidence"][0]["examples"] == [{"seq": 17, "at_ns": ns(5), "attempt": "orders-0@7.0.3"}]
    assert found["remedies"] == {"Java client": "acks=all"}
    assert made["clients"][1]["settings"][0]["certainty"] == "stated"
