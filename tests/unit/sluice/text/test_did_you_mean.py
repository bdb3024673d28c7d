"""Suggestions for misspelled names; an unrelated name gets none."""

import pytest

from sluice.text.did_you_mean import did_you_mean, meant, nearest, one_of

KNOWN = ("client_id", "brokers", "quota.producer.default", "Produce")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        pytest.param("broker", "brokers", id="a letter is missing"),
        pytest.param("cliend_id", "client_id", id="a letter is wrong"),
        pytest.param("CLIENT_ID", "client_id", id="upper case"),
        pytest.param("produce", "Produce", id="lower case"),
        pytest.param("producer.default", "quota.producer.default", id="a part is missing"),
        pytest.param("xyz", None, id="an unrelated name"),
        pytest.param("", None, id="an empty name"),
    ],
)
def test_nearest_name_is_suggested(name: str, found: str | None) -> None:
    assert nearest(name, KNOWN) == found
    assert did_you_mean(name, KNOWN) == ("" if found is None else f"did you mean {found}?")


@pytest.mark.parametrize(
    ("name", "between", "accepted", "instead"),
    [
        pytest.param(
            "broker",
            ", did you mean brokers?",
            "did you mean brokers? It must be one of brokers, quota",
            "did you mean brokers?",
            id="nearly one",
        ),
        pytest.param("xyz", ";", "must be one of brokers, quota", "see the list", id="like none"),
    ],
)
def test_suggestion_is_a_sentence(name: str, between: str, accepted: str, instead: str) -> None:
    known = ("brokers", "quota")
    assert meant(name, known) == between
    assert one_of(name, known) == accepted
    assert did_you_mean(name, known, "see the list") == instead
