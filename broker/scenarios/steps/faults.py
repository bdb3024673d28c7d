"""Steps that add and remove fault rules; sluice.broker.faults checks the rules."""

from binascii import crc32

import msgspec

from sluice.broker.faults.engine import check_rule, configured_brokers
from sluice.broker.faults.fault import Fault
from sluice.broker.faults.rule import Rule
from sluice.errors import FaultError

from .action import Action, ExpectedState, ScenarioContext, StepProblem

_AT = "rule"


class RuleAddition(Action):
    def __init__(self, rule: Rule) -> None:
        super().__init__(f"{_describe(rule)} is in force")
        self.reversed = f"{_describe(rule)} is removed"
        self.rule = rule
        self._fault: Fault | None = None  # set when it is added

    @property
    def proxy_refusal(self) -> str:  # type: ignore[override]  # read-only here
        return self.rule.the_action.PROXY_REFUSAL

    def check(self, expected: ExpectedState) -> None:
        try:
            check_rule(self.rule, configured_brokers(expected.config), _AT)
        except FaultError as error:
            raise StepProblem(error.problem, error.path.removeprefix(_AT).removeprefix(".")) from None
        if self.rule.id in expected.faults:
            raise StepProblem(f"fault rule {self.rule.id} is already in force at this time", "id")
        if self.rule.id is not None:
            expected.faults.add(self.rule.id)

    def do(self, context: ScenarioContext) -> None:
        fault = self._fault = context.server.faults.add(self._seeded(context), _AT)
        context.faults.append(fault)
        context.restore_at_end(f"fault rule {fault.id}, the {len(context.faults)}.", fault.remove)

    def check_reversal(self, expected: ExpectedState) -> None:
        if self.rule.id is not None:
            expected.end_fault(self.rule.id)

    def reverse(self, context: ScenarioContext) -> None:
        if self._fault is not None:
            self._fault.remove()

    def _seeded(self, context: ScenarioContext) -> Rule:
        rule = self.rule
        draws = rule.probability is not None or type(rule.the_action).DRAWS
        if context.seed is None or rule.seed is not None or not draws:
            return rule
        return msgspec.structs.replace(rule, seed=crc32(f"{context.seed}:{len(context.faults)}".encode()))


class RuleRemoval(Action):
    def __init__(self, rule_id: str) -> None:
        super().__init__(f"fault rule {rule_id} is removed")
        self.rule_id = rule_id

    def check(self, expected: ExpectedState) -> None:
        expected.end_fault(self.rule_id)

    def do(self, context: ScenarioContext) -> None:
        context.server.faults.remove(self.rule_id)


class RuleRelease(Action):
    def __init__(self, rule_id: str) -> None:
        super().__init__(f"fault rule {rule_id} releases what it holds")
        self.rule_id = rule_id

    def check(self, expected: ExpectedState) -> None:
        expected.check_fault(self.rule_id)

    def do(self, context: ScenarioContext) -> None:
        context.server.faults.get(self.rule_id).release()


def _describe(rule: Rule) -> str:
    action = rule.action if isinstance(rule.action, str) else rule.action.kind
    return f"fault rule {rule.id} ({action})" if rule.id else f"a fault rule ({action})"
