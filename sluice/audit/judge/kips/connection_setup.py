"""KIP-144's statements about the setup of connections, with KIP-899 and KIP-601: logins, bootstrap addresses, timeouts.

A stalled TLS handshake shows the setup timeout of clients that include it; KIP-601 does not require that.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import sqrt
from statistics import median

from sluice.audit.judge.case import Case, VerdictDetails
from sluice.audit.judge.expected import JITTER, Backoff, number, reconnect_backoff, required
from sluice.audit.judge.growth import judge_growth, share_is_off
from sluice.audit.judge.model.attempts import Kind
from sluice.audit.judge.model.observation import BOOTSTRAP_LISTENER, Observation
from sluice.audit.judge.model.statements import RECOVERY
from sluice.audit.judge.model.verdict import State, Verdict
from sluice.audit.judge.waits import Track
from sluice.journal_events import ClientEvent, ConnectionOpened, Request

from .kip144 import of_reconnects

_NS_PER_MS = 1_000_000
_MANY_FAILED = 5
_SETUP_MS, _SETUP_MAX_MS = "socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms"
_LEAST_SETUPS, _EARLY_MS = 2, 50.0
# With more jitter, a wait may be nearer to the next lower step.
_JITTER_OF_STEP = 1 - 1 / sqrt(2)


@of_reconnects
def _authentication(case: Case, tracks: list[Track], backoff: Backoff) -> Verdict:
    backoff = backoff._replace(jitter=_JITTER_OF_STEP)
    allowed = case.tolerance(backoff.base_ms).later(_JITTER_OF_STEP * backoff.max_ms)
    by_two = [
        track._replace(waits=[wait._replace(failures=2 * wait.failures + 1) for wait in track.waits])
        for track in tracks
    ]
    verdict = judge_growth(case, by_two, backoff, allowed)
    # The KIP counts failed connections, and does not mention authentication.
    by_one = judge_growth(case, tracks, backoff, allowed)
    return by_one if verdict.state is State.DEVIATES and by_one.state is not State.DEVIATES else verdict


def _returns_to_bootstrap(case: Case) -> Verdict:
    strategy = case.subject.settings[RECOVERY]
    if strategy != "rebootstrap":
        return case.not_observable(f"{RECOVERY} is {strategy} in this run")
    failed, returned_ms = 0, list[float]()
    for run in case.observations:
        of_fault = [event for event in run.events if isinstance(event, ClientEvent) and _is_in_fault(run, event)]
        at_brokers = (event for event in of_fault if event.listener != BOOTSTRAP_LISTENER)
        lost_ns = [event.at_ns for event in at_brokers if isinstance(event, ConnectionOpened)]
        failed += len(lost_ns)
        # The connection to the bootstrap address may still be open.
        returns = (event for event in of_fault if event.listener == BOOTSTRAP_LISTENER)
        returned_ms += [
            (event.at_ns - lost_ns[0]) / _NS_PER_MS
            for event in returns
            if isinstance(event, ConnectionOpened | Request) and lost_ns and event.at_ns > lost_ns[0]
        ][:1]
    details: VerdictDetails = {
        "measured": {"failed_connections": failed, "returns": len(returned_ms)},
        "expected": {"returns": "at least 1"},
    }
    if returned_ms:
        return case.passes(
            f"returns to the bootstrap address {median(returned_ms):.0f} ms after the first broker failed", **details
        )
    if failed < _MANY_FAILED:
        return case.inconclusive(f"{failed} connections to brokers failed", runs_needed=1, **details)
    return case.deviates(
        f"connects {failed} times to brokers that fail, and never to the bootstrap address",
        where=f"run {case.observations[0].repetition + 1}, all connections",
        **details,
    )


def _is_in_fault(run: Observation, event: ClientEvent) -> bool:
    from_ns, until_ns = run.fault_from_ns, run.fault_until_ns
    return from_ns is not None and from_ns < event.at_ns and (until_ns is None or event.at_ns < until_ns)


def _setup_timeout(case: Case) -> Verdict:
    settings = case.subject.settings
    base_ms, max_ms = required(number(settings, _SETUP_MS)), required(number(settings, _SETUP_MAX_MS))
    reconnect = required(reconnect_backoff(settings))
    timeout = Backoff(base_ms, max_ms)
    late_ms = case.tolerance(base_ms).late_ms + (1 + JITTER) * reconnect.max_ms
    waits = list(_times_between(case))
    first_ms = [waited_ms for failures, waited_ms, _ in waits if failures == 0]
    low_ms, high_ms = timeout.band_ms(0)
    details: VerdictDetails = {
        "measured": {"connections": len(waits), "first_ms": median(first_ms) if first_ms else 0.0},
        "expected": {"first_ms": f"{low_ms:g} to {(1 + JITTER) * base_ms:g} ms, plus the reconnect backoff"},
    }
    if len(first_ms) < _LEAST_SETUPS:
        if any(isinstance(event, ConnectionOpened) for run in case.observations for event in run.events):
            return case.not_observable(
                "it keeps a connection whose TLS handshake stalls; KIP-601 limits only TCP's setup"
            )
        return case.inconclusive("the client did not connect", runs_needed=1, **details)
    if not low_ms - _EARLY_MS <= median(first_ms) <= high_ms + late_ms:
        return case.not_observable(
            f"it gives up a stalled TLS handshake after {median(first_ms):.0f} ms by another timeout; KIP-601 limits "
            "only TCP's setup"
        )
    wrong = [
        (failures, waited_ms, where)
        for failures, waited_ms, where in waits
        if not timeout.band_ms(failures)[0] - _EARLY_MS
        <= waited_ms
        <= (1 + JITTER) * timeout.value_ms(failures) + late_ms
    ]
    if share_is_off(len(wrong), 0, len(waits)):
        failures, waited_ms, where = wrong[-1]
        return case.deviates(
            f"gives up connection {failures + 1} after {waited_ms:.0f} ms; expected {timeout.band_ms(failures)[0]:.0f} "
            f"to {(1 + JITTER) * timeout.value_ms(failures) + late_ms:.0f} ms",
            where=where,
            **details,
        )
    return case.passes(
        f"gives up connections that are not set up after {median(first_ms):.0f} ms at first, "
        f"{max(waited_ms for _, waited_ms, _ in waits):.0f} ms later",
        **details,
    )


def _times_between(case: Case) -> Iterator[tuple[int, float, str]]:
    """Yield failures before, ms from one connection to the next, and where."""
    for run, found in zip(case.observations, case.found, strict=True):
        for one in found:
            if one.kind is not Kind.CONNECT:
                continue
            # A stalled connection ends with the fault, before its timeout.
            of_fault = [each for each in one.attempts if run.fault_until_ns is None or each.at_ns < run.fault_until_ns]
            for failures, (before, after) in enumerate(pairwise(of_fault)):
                where = f"run {run.repetition + 1}, attempts {failures + 1} and {failures + 2} of {one.key}"
                yield failures, (after.at_ns - before.at_ns) / _NS_PER_MS, where


RULES: dict[str, Callable[[Case], Verdict]] = {
    "KIP-144/12": _authentication,
    "KIP-144/13": _returns_to_bootstrap,
    "KIP-144/14": _setup_timeout,
}
