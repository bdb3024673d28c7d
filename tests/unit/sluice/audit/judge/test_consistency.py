"""Verdicts that exclude each other become inconclusive, before a report shows them."""

import msgspec
import pytest

from sluice.audit.judge.consistency import consistent
from sluice.audit.judge.model.verdict import Fit, State, Verdict

PASS, DEVIATES = State.PASS, State.DEVIATES
PROBE = "produce-timed-out"


def constant(base_ms: float, jitter: float = 0.0) -> Fit:
    return Fit(
        model="constant",
        base_ms=base_ms,
        multiplier=1,
        cap_ms=None,
        jitter=jitter,
        residual=jitter,
        confidence=1,
        waits=9,
    )


def of(statement: str, state: State, fit: Fit | None = None, why: str = "", **measured: float) -> Verdict:
    return Verdict(statement=statement, state=state, why=why, probe=PROBE, fit=fit, measured=dict(measured))


# franz-go: "about 4944 ms each time", "216 ms when grown", "5 times in a second".
CONSTANT = of("KIP-580/1", DEVIATES, constant(4944))
CONTRADICTIONS = {
    "long waits, and many attempts in a second": (CONSTANT, of("KIP-580/17", DEVIATES, sends=5)),
    "long waits, and short ones when grown": (CONSTANT, of("KIP-580/2", DEVIATES, median_ms=216)),
    "long waits, and short first ones": (CONSTANT, of("KIP-580/6", PASS, first_wait_ms=290)),
    "waits that double, and too many attempts": (of("KIP-580/1", PASS), of("KIP-580/17", DEVIATES, sends=9)),
    "waits that double, and waits that do not": (of("KIP-144/1", PASS), of("KIP-144/4", DEVIATES)),
    "doubling waits, and constant ones": (of("KIP-580/1", PASS), of("KIP-580/18", PASS)),
    "a first wait of the base, and none": (of("KIP-144/3", PASS), of("KIP-144/5", DEVIATES)),
    "given up too early, and too late": (of("KIP-91/1", DEVIATES), of("KIP-91/14", DEVIATES)),
    "no jitter, and waits that differ": (
        of("KIP-580/16", DEVIATES, why="waits without jitter"),
        of("KIP-580/1", DEVIATES, constant(100, 0.3)),
    ),
}
AGREEING = {
    "waits that explain the attempts": (of("KIP-580/1", DEVIATES, constant(250)), of("KIP-580/17", DEVIATES, sends=5)),
    "waits that never grow": (of("KIP-580/1", DEVIATES, constant(250)), of("KIP-580/2", DEVIATES, median_ms=207)),
    "no jitter, and waits that are equal": (
        of("KIP-580/16", DEVIATES, why="waits without jitter"),
        of("KIP-580/1", DEVIATES, constant(100, 0.01)),
    ),
    "all pass": (of("KIP-580/1", PASS), of("KIP-580/17", PASS)),
}  # fmt: skip


@pytest.mark.parametrize("pair", CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_contradiction_is_inconclusive(pair: tuple[Verdict, Verdict]) -> None:
    other = of("KIP-91/15", PASS)
    *found, third = consistent([*pair, other])
    assert [verdict.state for verdict in found] == [State.INCONCLUSIVE] * 2
    assert [each.why.partition(":")[0] for each in found] == [f"contradicts {each.statement}" for each in pair[::-1]]
    assert third is other


@pytest.mark.parametrize("pair", AGREEING.values(), ids=AGREEING.keys())
def test_agreement_remains(pair: tuple[Verdict, Verdict]) -> None:
    assert consistent(pair) == list(pair)


def test_verdicts_of_different_probes_do_not_contradict_each_other() -> None:
    first, second = CONTRADICTIONS["long waits, and many attempts in a second"]
    second = msgspec.structs.replace(second, probe="produce-mute")
    assert consistent([first, second]) == [first, second]
