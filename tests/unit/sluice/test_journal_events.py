"""The events as data: what they are called, how they are written, and that they say what they are."""

import inspect

import msgspec
import pytest

from sluice.journal_events import KINDS, AnyEvent, BrokerState, ClientEvent, Event, decode, schema


def fields_told(kind: type[Event]) -> list[str]:
    """The fields that docstrings tell of, those that it has from its bases too."""
    told: list[str] = []
    for each in reversed(kind.__mro__):
        if issubclass(each, Event):
            lines = [line for line in inspect.cleandoc(each.__doc__ or "").splitlines() if not line.startswith(" ")]
            told += [line.split(":")[0] for line in lines[1:] if ": " in line]
    return told


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_kind_tells_what_all_its_fields_are(kind: type[AnyEvent]) -> None:
    assert fields_told(kind) == list(kind.__struct_fields__)


def test_an_event_is_written_with_its_kind_and_read_again() -> None:
    event = BrokerState(seq=1, at_ns=2, broker=3, state="running")
    line = msgspec.json.encode(event)
    assert line == b'{"kind":"broker-state","seq":1,"at_ns":2,"broker":3,"state":"running"}'
    assert decode(line) == event


def test_an_event_that_lacks_a_field_is_none() -> None:
    with pytest.raises(msgspec.ValidationError, match="state"):
        decode(b'{"kind":"broker-state","seq":1,"at_ns":2,"broker":3}')


def test_the_schema_tells_all_kinds_apart() -> None:
    found = schema()
    assert found["discriminator"] == {
        "propertyName": "kind",
        "mapping": {name: f"#/$defs/{kind.__name__}" for name, kind in KINDS.items()},
    }


def test_all_but_the_clusters_events_tell_which_client_it_was() -> None:
    of_cluster = {"group-state", "transaction-state", "leader-change", "broker-state", "scenario-step", "gap"}
    assert {name for name, kind in KINDS.items() if not issubclass(kind, ClientEvent)} == of_cluster
