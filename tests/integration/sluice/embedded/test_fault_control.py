"""Faults that a test makes: as actions, as rules, as a file has them; and that they end."""

import re
import subprocess
import sys
from typing import Any, get_type_hints

import pytest

from sluice import Broker, SyncBroker
from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.matching.errors import FaultError
from sluice.broker.faults.rule import Rule
from sluice.embedded.fault_control import RuleFields
from sluice.errors import SluiceError
from sluice.journal_events import Fault
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.errors import ErrorCode
from tests.support.local_broker import ask_metadata, live
from tests.support.wire import WireClient

REBOOTSTRAP = {"action": {"kind": "error", "code": "REBOOTSTRAP_REQUIRED"}, "api": "Metadata", "times": 1}


def test_every_field_of_a_rule_may_be_given_by_its_name() -> None:
    fields = get_type_hints(Rule)
    del fields["action"]
    assert {name: hint | None for name, hint in get_type_hints(RuleFields).items()} == fields


ADDED: dict[str, tuple[Any, dict[str, Any]]] = {
    "an action": (Error(code="REBOOTSTRAP_REQUIRED"), {"api": "Metadata", "times": 1}),
    "a rule": (Rule(action=Error(code="REBOOTSTRAP_REQUIRED"), api="Metadata", times=1), {}),
    "a rule as in a file": (REBOOTSTRAP, {}),
}


@pytest.mark.parametrize(("rule", "fields"), ADDED.values(), ids=ADDED)
def test_what_is_added_is_in_force(rule: Any, fields: dict[str, Any]) -> None:
    with SyncBroker() as broker, WireClient(broker.bootstrap) as client:
        fault = broker.faults.add(rule, **fields)
        assert (fault.id, fault.hits, fault.matched, fault.enabled, fault.problem) == ("fault-1", 0, 0, True, "")
        assert client.ask(MetadataRequest(), 13).error_code == ErrorCode.REBOOTSTRAP_REQUIRED
        assert client.ask(MetadataRequest(), 13).error_code == ErrorCode.NONE
        assert (fault.hits, fault.matched) == (1, 1), "one that is over looks at nothing any more"
        (hit,) = broker.wait_for(Fault)
        assert (hit.rule_id, hit.action, hit.api) == ("fault-1", "error", "Metadata")


def test_a_name_is_an_action_with_its_defaults() -> None:
    with SyncBroker() as broker, WireClient(broker.bootstrap, "shop") as client:
        broker.faults.add("close", client_id="sh?p")
        with pytest.raises(ConnectionError):
            client.ask(MetadataRequest(), 9)


def test_faults_are_listed_and_removed() -> None:
    async def do(broker: Broker) -> None:
        faults = broker.faults
        for number in range(3):
            faults.add(Delay(ms=1), id=f"f{number}")
        assert [fault.id for fault in faults.list()] == ["f0", "f1", "f2"]
        faults.remove("f1")
        with faults.add("close", client_id="nobody") as within:
            assert within.id in [fault.id for fault in broker.faults.list()]
        within.remove()
        faults.list()[0].remove()
        assert [fault.id for fault in faults.list()] == ["f2"]
        faults.clear()
        assert faults.list() == []
        with pytest.raises(FaultError, match="unknown fault rule 'f1'"):
            faults.remove("f1")

    live(do, Broker())


WRONG: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no action": ("exolode", {}, "fault.action: unknown action 'exolode'"),
    "no field": ("close", {"colour": "red"}, "fault.colour: unknown field; accepted are "),
    "a value of another type": ("close", {"times": "3"}, "fault.times: must be a whole number or nothing, not '3'"),
    "a code that is none": (Error(code="NO_LUCK"), {}, "fault.action.code: unknown error code 'NO_LUCK'"),
    "an action's class": (Delay, {}, "fault.action: Delay is a class: write Delay()"),
    "what is no rule at all": (object(), {}, "fault.action: "),
    "a rule, and more": (Rule("close"), {"times": 3}, "fault: a whole rule excludes further fields; move times into"),
    "a rule as in a file, and more": (
        {"action": "close"},
        {"on": [1]},
        "fault: a whole rule excludes further fields; move on into ",
    ),
    "a field of a rule from a file": ({"action": "close", "tmes": 3}, {}, "fault.tmes: unknown field"),
}


@pytest.mark.parametrize(("rule", "fields", "problem"), WRONG.values(), ids=WRONG)
def test_what_cannot_work_is_refused_with_its_place(rule: Any, fields: dict[str, Any], problem: str) -> None:
    with SyncBroker() as broker, pytest.raises(FaultError, match=f"^{re.escape(problem)}"):
        broker.faults.add(rule, **fields)


def test_the_hits_of_a_fault_are_waited_for() -> None:
    async def do(broker: Broker) -> None:
        fault = broker.faults.add(Delay(ms=1), api="Metadata")
        await ask_metadata(broker.bootstrap, versions=(9, 9))
        assert await broker.wait_for(fault, times=2) == 2
        with pytest.raises(TimeoutError) as raised:
            await broker.wait_for(fault, times=3, timeout_s=0.02)
        told = "after 0.02 s: fault fault-1 has 2 of 3 hits, 2 matched; "
        assert str(raised.value).startswith(told)

    live(do, Broker())


def test_the_hits_are_waited_for_from_another_thread() -> None:
    with SyncBroker() as broker, broker.faults.add(Delay(ms=1), api="Metadata") as fault:
        with WireClient(broker.bootstrap) as client:
            client.ask(MetadataRequest(), 9)
        assert broker.wait_for(fault) == 1
        with pytest.raises(TimeoutError, match="has 1 of 2 hits"):
            broker.wait_for(fault, times=2, timeout_s=0.02)


def test_a_fault_that_was_disabled_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a mistake of its own")

    monkeypatch.setattr(Delay, "before", fail)
    told = "fault rule fault-1 was disabled: ZeroDivisionError: a mistake of its own"
    with SyncBroker() as broker:
        fault = broker.faults.add(Delay(ms=1), api="Metadata")
        with WireClient(broker.bootstrap) as client:
            client.ask(MetadataRequest(), 9)
        assert not fault.enabled
        with pytest.raises(SluiceError, match=told):
            broker.wait_for(fault, times=2)
        with pytest.raises(SluiceError, match=told), fault:
            pass
        with pytest.raises(KeyError), broker.faults.add("close", client_id="nobody"):
            raise KeyError("whatever a test itself raises is left as it is")


def test_none_is_added_to_a_broker_that_has_stopped() -> None:
    with SyncBroker() as broker:
        faults = broker.faults
    with pytest.raises(SluiceError, match="the broker has stopped"):
        _ = broker.faults
    assert faults.list() == []


FIRST_FAULTS_AT_ONCE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from sluice import SyncBroker

sys.setswitchinterval(1e-6)
together = Barrier(8)

def add(_):
    with SyncBroker() as broker:
        together.wait()
        broker.faults.add({"action": {"kind": "delay", "ms": 1}, "api": "Fetch"})

with ThreadPoolExecutor(8) as pool:
    list(pool.map(add, range(8)))
"""


def test_brokers_in_several_threads_may_have_their_first_faults_at_once() -> None:
    """What finds out about a type as it is first used is not made for that: it ended the process."""
    done = subprocess.run([sys.executable, "-c", FIRST_FAULTS_AT_ONCE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
