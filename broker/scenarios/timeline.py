"""A scenario as a sequence of moments, each checked against the expected state of the cluster at that time.

A contradiction, such as starting a running broker, is reported with its path when the file is read.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from msgspec import UNSET

from sluice.broker.faults.matching.values import Duration, RuleProblem, parse_ms, parse_positive_ms
from sluice.broker.scenarios.steps.action import Action, ExpectedState, LogMessage, StepProblem
from sluice.broker.scenarios.steps.brokers import KINDS, BrokerStep
from sluice.broker.scenarios.steps.configs import ConfigAlteration
from sluice.broker.scenarios.steps.faults import RuleAddition, RuleRelease, RuleRemoval
from sluice.broker.scenarios.steps.quotas import QuotaAlteration
from sluice.broker.scenarios.steps.topics import InitialTopic, LeaderMove, PartitionElection, TopicCreation
from sluice.config.broker_config import Config
from sluice.errors import ConfigError, ScenarioError

from .durations import format_duration
from .model import Scenario, Step, config_texts

# Limit of all moments, to bound the time of the check.
_MOST_MOMENTS = 10_000


class Moment(NamedTuple):
    """One action at a time since the start; `times` is the number of a repetition."""

    at_ms: float
    path: str
    action: Action
    times: str = ""
    is_end: bool = False  # whether it undoes an earlier moment


class Timeline(NamedTuple):
    """The moments in order, the length, and the config of brokers started for the scenario."""

    moments: list[Moment]
    duration_ms: float
    config: Config


ACTIONS: dict[str, Callable[..., Action]] = {
    "say": LogMessage,
    **{kind: lambda broker, kind=kind: BrokerStep(kind, broker) for kind in KINDS},
    "move_leader": LeaderMove,
    "elect": PartitionElection,
    "quota": QuotaAlteration,
    "remove_quota": QuotaAlteration,
    "alter_config": ConfigAlteration,
    "create_topic": TopicCreation,
    "fault": RuleAddition,
    "remove_fault": RuleRemoval,
    "release_fault": RuleRelease,
}
REVERSIBLE = ("stop", "kill", "isolate", "move_leader", "quota", "remove_quota", "alter_config", "fault")


def timeline(scenario: Scenario) -> Timeline:
    """Raise ScenarioError for an invalid scenario."""
    config = _config(scenario)
    each = (moment for index, step in enumerate(scenario.steps) for moment in _moments(f"steps[{index}]", step))
    steps = list(islice(each, _MOST_MOMENTS + 1))
    if len(steps) > _MOST_MOMENTS:
        raise ScenarioError("steps", f"expected at most {_MOST_MOMENTS} moments, with all repetitions")
    # At the same time, ends precede beginnings; the rest keeps the order of the file.
    steps.sort(key=lambda moment: (moment.at_ms, not moment.is_end))
    moments = [*_initial(scenario), *steps]
    last_ms = moments[-1].at_ms if moments else 0.0
    duration_ms = last_ms if scenario.duration is UNSET else _ms("duration", scenario.duration)
    for moment in moments:
        if moment.at_ms > duration_ms:
            raise ScenarioError(
                moment.path,
                f"at {format_duration(moment.at_ms)}; expected at most the duration, {format_duration(duration_ms)}",
            )
    if not (scenario.steps or scenario.topics or duration_ms):
        raise ScenarioError("steps", "missing; expected one or more, or a duration")
    _check(moments, ExpectedState(config))
    return Timeline(moments, duration_ms, config)


def _config(scenario: Scenario) -> Config:
    if "sluice.brokers" in scenario.config:
        raise ScenarioError("config.sluice.brokers", "set `brokers` instead")
    try:
        return Config.of(broker_properties(scenario))
    except ConfigError as error:
        raise ScenarioError("config", str(error).removeprefix("config: ")) from None


def broker_properties(scenario: Scenario) -> dict[str, str]:
    return {**config_texts(scenario.config), "sluice.brokers": str(scenario.brokers)}


def _initial(scenario: Scenario) -> Iterator[Moment]:
    for index, topic in enumerate(scenario.topics):
        yield Moment(0, f"topics[{index}]", InitialTopic(topic))
    for index, quota in enumerate(scenario.quotas):
        yield Moment(0, f"quotas[{index}]", QuotaAlteration(quota))
    for index, rule in enumerate(scenario.faults):
        yield Moment(0, f"faults[{index}]", RuleAddition(rule))


def _moments(path: str, step: Step) -> Iterator[Moment]:
    kind, wanted = _change(path, step)
    first_ms, every_ms, times = _ms(f"{path}.at", step.at), 0.0, 1
    if step.repeat is not UNSET:
        every_ms, times = _ms(f"{path}.repeat.every", step.repeat.every, parse_positive_ms), step.repeat.times
    during_ms = None if step.during is UNSET else _ms(f"{path}.during", step.during, parse_positive_ms)
    if during_ms is None and step.meanwhile:
        raise ScenarioError(f"{path}.meanwhile", "requires `during`")
    if during_ms is not None and kind not in REVERSIBLE:
        raise ScenarioError(
            f"{path}.during", f"expected a step that can be undone ({', '.join(REVERSIBLE)}), got {kind}"
        )
    for number in range(times):
        at_ms = first_ms + number * every_ms
        nth = f" ({number + 1} of {times})" if times > 1 else ""
        actions = {f"{path}.{kind}": (ACTIONS[kind](wanted), f"{path}.during")}
        for index, rule in enumerate(step.meanwhile):
            place = f"{path}.meanwhile[{index}]"
            actions[place] = (RuleAddition(rule), place)
        for place, (action, end_place) in actions.items():
            yield Moment(at_ms, place, action, nth)
            end = None if during_ms is None else action.inverse()
            if during_ms is not None and end is not None:
                yield Moment(at_ms + during_ms, end_place, end, nth, is_end=True)


def _change(path: str, step: Step) -> tuple[str, object]:
    given = [(kind, wanted) for kind in ACTIONS if (wanted := getattr(step, kind)) is not UNSET]
    if len(given) != 1:
        found = " and ".join(kind for kind, _ in given) or "none"
        raise ScenarioError(path, f"expected exactly one of {', '.join(ACTIONS)}, got {found}")
    return given[0]


def _ms(path: str, duration: Duration, parse: Callable[[Duration, str], float] = parse_ms) -> float:
    try:
        return parse(duration, path)
    except RuleProblem as problem:
        raise ScenarioError(problem.path, problem.problem) from None


def _check(moments: Iterable[Moment], expected: ExpectedState) -> None:
    for moment in moments:
        try:
            moment.action.check(expected)
        except StepProblem as problem:
            path = f"{moment.path}.{problem.part}" if problem.part else moment.path
            raise ScenarioError(path, f"at {format_duration(moment.at_ms)}{moment.times}: {problem}") from None
