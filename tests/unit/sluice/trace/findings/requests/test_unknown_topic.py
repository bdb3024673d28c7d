"""Topics that do not exist."""

import pytest

from sluice.journal_events import TopicPartition
from sluice.trace.findings.errors import unknown_topic as find
from tests.support.journals import Journal
from tests.support.trace_findings import Make, found

UNKNOWN = 3


def metadata(topic: str, *, errors: tuple[int, ...] = (UNKNOWN,), rule_id: str = "", then: str = "") -> Make:
    def make(journal: Journal) -> None:
        partition = TopicPartition(topic=topic, partition=-1)
        journal.request("Metadata", 1, 2, partitions=[partition], errors=errors, rule_id=rule_id)
        if then:
            journal.batch(5, 6, topic=then)

    return make


CASES = {
    "a typing mistake": (
        metadata("ordres", then="orders"),
        ["Topic ordres does not exist, but client app requests it"],
    ),
    "created meanwhile": (metadata("orders", then="orders"), []),
    "by a fault rule": (metadata("orders", rule_id="r"), []),
    "another error": (metadata("orders", errors=(5,)), []),
}


@pytest.mark.parametrize(("make", "titles"), CASES.values(), ids=CASES)
def test_unknown_topics(make: Make, titles: list[str]) -> None:
    findings = found(find, make)
    assert [one.title for one in findings] == titles
    assert all("Did you mean orders?" in one.text for one in findings)
