"""Journal events as data: kinds, serialization and field documentation."""

import inspect

import msgspec
import pytest

from sluice.journal_events import KINDS, AnyEvent, BrokerState, ClientEvent, Event, decode, schema


def documented_fields(kind: type[Event]) -> list[str]:
    """Return the documented fields of an event, including inherited ones."""
    documented: list[str] = []
    for each in reversed(kind.__mro__):
        if issubclass(each, Event):
            lines = [line for line in inspect.cleandoc(each.__doc__ or "").splitlines() if not line.startswith(" ")]
            documented += [line.split(":")[0] for line in lines[1:] if ": " in line]
    return documented


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_kind_documents_all_its_fields(kind: type[AnyEvent]) -> None:
    assert documented_fields(kind) == list(kind.__struct_fields__)


def test_event_round_trip_with_its_kind() -> None:
    event = BrokerState(seq=1, at_ns=2, broker=3, state="running")
    line = msgspec.json.encode(event)
    assert line == b'{"kind":"broker-state","seq":1,"at_ns":2,"broker":3,"state":"running"}'
    assert decode(line) == event


def test_event_without_a_required_field_is_rejected() -> None:
    with pytest.raises(msgspec.ValidationError, match="state"):
        decode(b'{"kind":"broker-state","seq":1,"at_ns":2,"broker":3}')


def test_schema_distinguishes_all_kinds() -> None:
    found = schema()
    assert found["discriminator"] == {
        "propertyName": "kind",
        "mapping": {name: f"#/$defs/{kind.__name__}" for name, kind in KINDS.items()},
    }


def test_all_events_except_cluster_events_identify_the_client() -> None:
    of_cluster = {
        "group-state",
        "transaction-state",
        "acquisition-timeout",
        "leader-change",
        "broker-state",
        "rule-change",
        "quota-change",
        "scenario-step",
        "gap",
    }
    assert {name for name, kind in KINDS.items() if not issubclass(kind, ClientEvent)} == of_cluster
