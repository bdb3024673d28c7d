"""The fold of events, from the journal's own types and from lines, and the findings of rules."""

from sluice.journal_events import AnyEvent, Gap
from sluice.lint.clients import ClientKey
from sluice.lint.run import Fold, lint
from tests.support.journals import Journal, ns


def events() -> list[AnyEvent]:
    journal = Journal(client_id="shop", software=("apache-kafka-java", "4.4.0"))
    journal.beside(client_id="", software=("apache-kafka-java", "4.4.0")).request("Metadata", 0, 1)
    journal.request("JoinGroup", 1, 2, group_id="g")
    journal.group_state(3, "Empty", "Stable")
    return [*journal.events, Gap(seq=9, at_ns=ns(4), broker=0, lost=6)]


def test_events_reach_the_facts_of_their_client_and_group() -> None:
    fold = Fold()
    fold.take(events())
    shop = ClientKey("shop", "apache-kafka-java", "4.4.0")
    assert [(facts.key.client_id, facts.traffic.apis.total()) for facts in fold.clients.values()] == [
        ("", 1),
        ("shop", 1),
    ]
    assert {name: list(facts.clients) for name, facts in fold.groups.items()} == {"g": [shop]}
    assert (fold.events, fold.lost) == (4, 6)


def test_a_client_without_an_id_is_found() -> None:
    (found,) = [each for each in lint(events()).findings if each.rule == "no-client-id"]
    assert found.subject == "(no client id) (apache-kafka-java 4.4.0)"
    assert [(each.text, [example.seq for example in each.examples]) for each in found.evidence] == [
        ("1 requests with no client id", [1])
    ]
