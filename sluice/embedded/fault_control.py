"""Faults that a test makes and ends: `broker.faults`."""

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, TypedDict, Unpack, overload

import msgspec

from sluice.errors import SluiceError

if TYPE_CHECKING:
    from sluice.broker.faults.actions import AnyAction
    from sluice.broker.faults.engine import FaultEngine
    from sluice.broker.faults.fault import Fault
    from sluice.broker.faults.rule import Rule


class RuleFields(TypedDict, total=False):
    """The fields of a Rule but for its action; that says what they mean."""

    id: str
    broker: int | list[int]
    api: str | list[str]
    version: str | int
    client_id: str
    software_name: str
    software_version: str
    principal: str
    listener: str
    topic: str
    partition: int | list[int]
    group: str
    transactional_id: str
    connection_older_than: str | int | float
    connection_younger_than: str | int | float
    request: int
    after: str | int | float
    until: str | int | float
    probability: float
    seed: int
    times: int
    during: str | int | float
    on: list[int]
    schedule: str


class LocalFault:
    """A fault rule until it is removed, or to the end of a `with` block."""

    def __init__(self, fault: "Fault") -> None:
        self._fault = fault

    @property
    def id(self) -> str:
        """As it was given, or fault-1, fault-2 and so on."""
        return self._fault.id

    @property
    def hits(self) -> int:
        """How many requests or connections it has hit; of a state, on how many brokers it is."""
        return self._fault.hits

    @property
    def matched(self) -> int:
        """How many matched, whether it was their turn to be hit or not."""
        return self._fault.matched

    @property
    def enabled(self) -> bool:
        """False: something went wrong with it, which ended it."""
        return self._fault.enabled

    @property
    def problem(self) -> str:
        """What that was, else empty."""
        return self._fault.problem

    def remove(self) -> None:
        """Ends it: what waits because of it goes on, and what it brought about is undone. Once is enough."""
        if not self._fault.is_removed:
            self._fault.remove()

    def __enter__(self) -> "LocalFault":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Raises SluiceError where the fault was disabled, so that no test passes for the lack of it."""
        self.remove()
        if error is None:
            raise_problem(self.id, self.problem)


class LocalFaults:
    """The fault rules of a broker."""

    def __init__(self, faults: "FaultEngine") -> None:
        self._faults = faults

    @overload
    def add(self, rule: "Rule | Mapping[str, object]", /) -> LocalFault: ...

    @overload
    def add(self, rule: "AnyAction | str", /, **fields: Unpack[RuleFields]) -> LocalFault: ...

    def add(self, rule: "AnyAction | Rule | Mapping[str, object] | str", /, **fields: Unpack[RuleFields]) -> LocalFault:
        """Puts a rule in force: an action with what it hits and how often, or a rule as a file has it.

            broker.faults.add(Error("NOT_LEADER_OR_FOLLOWER"), api="Produce", times=3)
            broker.faults.add("close", client_id="shop", probability=0.1)
            broker.faults.add({"action": {"kind": "delay", "ms": 200}, "api": "Fetch"})

        Raises `sluice.faults.FaultError`, a SluiceError, for a rule that cannot work.
        """
        return LocalFault(self._faults.add(_to_plain(rule, fields)))

    def list(self) -> "list[LocalFault]":
        """Those that were added and not removed, in that order."""
        return [LocalFault(fault) for fault in self._faults.list()]

    def remove(self, fault_id: str) -> None:
        """Ends a rule by its id. Raises FaultError where there is none."""
        self._faults.remove(fault_id)

    def clear(self) -> None:
        """Removes all."""
        self._faults.clear()


def raise_problem(fault_id: str, problem: str) -> None:
    """Raises SluiceError if there was one."""
    if problem:
        raise SluiceError(f"fault rule {fault_id} was disabled: {problem}")


def _to_plain(rule: object, fields: RuleFields) -> object:
    """Return the rule as plain values, so that it is checked like a rule in a file."""
    from sluice.broker.faults.matching.errors import FaultError
    from sluice.broker.faults.rule import Rule

    try:
        plain = msgspec.to_builtins(rule)
    except TypeError as error:
        name = rule.__name__ if isinstance(rule, type) else ""
        raise FaultError("fault.action", f"{name} is a class: write {name}()" if name else str(error)) from None
    if not isinstance(rule, Mapping | Rule):
        return {**fields, "action": plain}
    if fields:  # a type checker finds it as well
        raise FaultError("fault", f"it is a whole rule: say {', '.join(fields)} in it, or give an action alone")
    return plain
