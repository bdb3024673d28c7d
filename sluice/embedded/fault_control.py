"""Fault rules that a test adds and removes: `broker.faults`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict, Unpack, overload

import msgspec

from sluice.errors import FaultError, SluiceError
from sluice.text.arguments import Count, checks_arguments

if TYPE_CHECKING:
    from sluice.broker.faults.actions import AnyAction
    from sluice.broker.faults.engine import FaultEngine
    from sluice.broker.faults.fault import Fault, FaultState
    from sluice.broker.faults.rule import Rule


class RuleFields(TypedDict, total=False):
    """The fields of a Rule except its action; `sluice.broker.faults.rule.Rule` describes them."""

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


@checks_arguments
class LocalFault:
    """An active fault rule, until it is removed or its `with` block ends."""

    def __init__(self, fault: "Fault") -> None:
        self._fault = fault

    @property
    def id(self) -> str:
        """The id of the rule; by default fault-1, fault-2, ..."""
        return self._fault.id

    @property
    def hits(self) -> int:
        """The number of requests or connections hit; for a state, the number of brokers in it."""
        return self._fault.hits

    @property
    def matched(self) -> int:
        """The number of matching requests or connections, hit or not."""
        return self._fault.matched

    @property
    def state(self) -> "FaultState":
        """The state: pending (before `after`), in force, over, disabled or removed."""
        return self._fault.state

    @property
    def enabled(self) -> bool:
        """Whether the rule works; False after an error disabled it."""
        return self._fault.enabled

    @property
    def problem(self) -> str:
        """The error that disabled the rule, else empty."""
        return self._fault.problem

    @property
    def held(self) -> int:
        """The number of requests that a `hold` holds now."""
        return self._fault.held

    def release(self, count: Count | None = None) -> int:
        """Let the oldest requests that a `hold` holds continue; return their number.

        The rule stays in force: it also holds later requests.

        Args:
            count: Maximum number of requests; None: all.
        """
        return self._fault.release(count)

    def remove(self) -> None:
        """Remove the rule, release what it delays and undo its state. Further calls do nothing."""
        if not self._fault.is_removed:
            self._fault.remove()

    def __enter__(self) -> "LocalFault":
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Remove the rule. Raises SluiceError if it was disabled, so that no test passes without its fault."""
        self.remove()
        if error is None:
            raise_problem(self.id, self.problem)


@checks_arguments
class LocalFaults:
    """The fault rules of a broker."""

    def __init__(self, faults: "FaultEngine") -> None:
        self._faults = faults

    @overload
    def add(self, rule: "Rule | Mapping[str, object]", /) -> LocalFault: ...

    @overload
    def add(self, rule: "AnyAction | str", /, **fields: Unpack[RuleFields]) -> LocalFault: ...

    def add(self, rule: "AnyAction | Rule | Mapping[str, object] | str", /, **fields: Unpack[RuleFields]) -> LocalFault:
        """Add a rule: an action and fields, or a whole rule as in a file.

            broker.faults.add(Error("NOT_LEADER_OR_FOLLOWER"), api="Produce", times=3)
            broker.faults.add("close", client_id="shop", probability=0.1)
            broker.faults.add({"action": {"kind": "delay", "ms": 200}, "api": "Fetch"})

        Raises:
            FaultError: The rule is invalid (`sluice.faults.FaultError`, a SluiceError).
        """
        return LocalFault(self._faults.add(_to_plain(rule, fields)))

    def list(self) -> "list[LocalFault]":
        """Return the added rules that were not removed, oldest first."""
        return [LocalFault(fault) for fault in self._faults.list()]

    def remove(self, fault_id: str) -> None:
        """Remove a rule by its id. Raises FaultError if it does not exist."""
        self._faults.remove(fault_id)

    def clear(self) -> None:
        """Remove all rules."""
        self._faults.clear()


def raise_problem(fault_id: str, problem: str) -> None:
    if problem:
        raise SluiceError(f"fault rule {fault_id} was disabled: {problem}")


def _to_plain(rule: object, fields: RuleFields) -> object:
    """Return plain values, so that the rule is checked as in a file."""
    from sluice.broker.faults.rule import Rule

    try:
        plain = msgspec.to_builtins(rule)
    except TypeError as error:
        name = rule.__name__ if isinstance(rule, type) else ""
        raise FaultError("fault.action", f"{name} is a class: write {name}()" if name else str(error)) from None
    if not isinstance(rule, Mapping | Rule):
        return {**fields, "action": plain}
    if fields:  # a type checker finds it as well
        raise FaultError("fault", f"a whole rule excludes further fields; move {', '.join(fields)} into the rule")
    return plain
