"""A name that is nearly right leads to the right one; one that is like none leads nowhere."""

import pytest

from sluice.did_you_mean import did_you_mean, nearest

KNOWN = ("client_id", "brokers", "quota.producer.default", "Produce")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        pytest.param("broker", "brokers", id="a letter is missing"),
        pytest.param("cliend_id", "client_id", id="a letter is wrong"),
        pytest.param("CLIENT_ID", "client_id", id="it is written large"),
        pytest.param("produce", "Produce", id="it is written small"),
        pytest.param("producer.default", "quota.producer.default", id="a part is missing"),
        pytest.param("xyz", None, id="it is like none"),
        pytest.param("", None, id="it is empty"),
    ],
)
def test_the_nearest_name_is_found(name: str, meant: str | None) -> None:
    assert nearest(name, KNOWN) == meant
    assert did_you_mean(name, KNOWN) == ("" if meant is None else f"did you mean {meant}?")
