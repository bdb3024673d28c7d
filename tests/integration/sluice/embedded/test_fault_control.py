"""Faults set by a test, as actions, rules and file entries, and their removal."""

import subprocess
import sys
from typing import Any, get_type_hints

import pytest

from sluice import Broker, SyncBroker
from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.rule import Rule
from sluice.embedded.fault_control import RuleFields
from sluice.errors import FaultError, SluiceError
from sluice.journal_events import Fault
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.errors import ErrorCode
from tests.support.local_broker import request_metadata, send_metadata
from tests.support.wire import WireClient

REBOOTSTRAP = {"action": {"kind": "error", "code": "REBOOTSTRAP_REQUIRED"}, "api": "Metadata", "times": 1}


def test_every_field_of_a_rule_is_a_keyword_argument() -> None:
    fields = get_type_hints(Rule)
    del fields["action"]
    assert {name: hint | None for name, hint in get_type_hints(RuleFields).items()} == fields


ADDED: dict[str, tuple[Any, dict[str, Any]]] = {
    "an action": (Error(code="REBOOTSTRAP_REQUIRED"), {"api": "Metadata", "times": 1}),
    "a rule": (Rule(action=Error(code="REBOOTSTRAP_REQUIRED"), api="Metadata", times=1), {}),
    "a rule as in a file": (REBOOTSTRAP, {}),
}


@pytest.mark.parametrize(("rule", "fields"), ADDED.values(), ids=ADDED)
def test_added_fault_is_active(rule: Any, fields: dict[str, Any]) -> None:
    with SyncBroker() as broker, WireClient(broker.bootstrap) as client:
        fault = broker.faults.add(rule, **fields)
        assert (fault.id, fault.hits, fault.matched, fault.enabled, fault.problem) == ("fault-1", 0, 0, True, "")
        assert client.call(MetadataRequest(), 13).error_code == ErrorCode.REBOOTSTRAP_REQUIRED
        assert client.call(MetadataRequest(), 13).error_code == ErrorCode.NONE
        assert (fault.hits, fault.matched) == (1, 1), "an expired fault matches nothing"
        (hit,) = broker.wait_for(Fault)
        assert (hit.rule_id, hit.action, hit.api) == ("fault-1", "error", "Metadata")


def test_name_is_an_action_with_its_defaults() -> None:
    with SyncBroker() as broker, WireClient(broker.bootstrap, "shop") as client:
        broker.faults.add("close", client_id="sh?p")
        with pytest.raises(ConnectionError):
            client.call(MetadataRequest(), 9)


async def test_faults_are_listed_and_removed() -> None:
    async with Broker() as broker:
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


async def test_wait_for_fault_hits() -> None:
    async with Broker() as broker:
        fault = broker.faults.add(Delay(ms=1), api="Metadata")
        await request_metadata(broker.bootstrap, versions=(9, 9))
        assert await broker.wait_for(fault, times=2) == 2
        with pytest.raises(TimeoutError) as raised:
            await broker.wait_for(fault, times=3, timeout_s=0.02)
        message = "after 0.02 s: fault fault-1 has 2 of 3 hits, 2 matched; "
        assert str(raised.value).startswith(message)


def test_wait_for_fault_hits_from_another_thread() -> None:
    with SyncBroker() as broker, broker.faults.add(Delay(ms=1), api="Metadata") as fault:
        send_metadata(broker.bootstrap)
        assert broker.wait_for(fault) == 1
        with pytest.raises(TimeoutError, match="has 1 of 2 hits"):
            broker.wait_for(fault, times=2, timeout_s=0.02)


def test_disabled_fault_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("an internal error")

    monkeypatch.setattr(Delay, "before", fail)
    message = "fault rule fault-1 was disabled: ZeroDivisionError: an internal error"
    with SyncBroker() as broker:
        fault = broker.faults.add(Delay(ms=1), api="Metadata")
        send_metadata(broker.bootstrap)
        assert not fault.enabled
        with pytest.raises(SluiceError, match=message):
            broker.wait_for(fault, times=2)
        with pytest.raises(SluiceError, match=message), fault:
            pass
        with pytest.raises(KeyError), broker.faults.add("close", client_id="nobody"):
            raise KeyError("the test's own error is not replaced")


def test_stopped_broker_accepts_no_fault() -> None:
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


def test_brokers_in_several_threads_may_add_their_first_faults_at_once() -> None:
    """The lazy inspection of a type by msgspec is not thread-safe; it crashed the process."""
    done = subprocess.run([sys.executable, "-c", FIRST_FAULTS_AT_ONCE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
