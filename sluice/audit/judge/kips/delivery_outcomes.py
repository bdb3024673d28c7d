"""KIP-91's statements about the outcomes that an application receives: when a record fails, and in which order."""

from collections.abc import Callable
from itertools import pairwise

from sluice.audit.judge.case import Case, VerdictDetails
from sluice.audit.judge.expected import number, required
from sluice.audit.judge.model.verdict import Verdict
from sluice.audit.judge.observer.throttles import throttled_spans
from sluice.audit.judge.records import DELIVERED, FAILED, Record, has_records, observed_until_ns, records

_NS_PER_MS = 1_000_000
# From the end of a batch to its report: a sender iteration and the driver's output.
_REPORTED_MS = 250.0
_MANY = 2
# Up to this share of records may be late because of the machine.
_LATE_SHARE = 0.25
_CLOSING_NS = 1000 * _NS_PER_MS


def _delivery_ms(case: Case) -> float:
    return required(number(case.subject.settings, "delivery.timeout.ms"))


def _with_driver(rule: Callable[[Case], Verdict]) -> Callable[[Case], Verdict]:
    why = "only a driver reports the outcomes of records, and this client has none"
    return lambda case: rule(case) if has_records(case.observations) else case.not_observable(why)


@_with_driver
def _ends_in_time(case: Case) -> Verdict:
    timeout_ms = _delivery_ms(case)
    linger_ms = number(case.subject.settings, "linger.ms") or 0.0
    low, high = timeout_ms - linger_ms - _REPORTED_MS, timeout_ms + _REPORTED_MS + case.lag_ms
    failed = [
        (each.took_ms, f"run {run.repetition + 1}, record {each.number}")
        for run in case.observations
        for each in records(run.callbacks)
        if each.end == FAILED and each.ended_ns < observed_until_ns(run) - _CLOSING_NS
    ]
    never = sum(
        not each.end and (observed_until_ns(run) - each.sent_ns) / _NS_PER_MS > high
        for run in case.observations
        for each in records(run.callbacks)
    )
    took_ms = sorted(each for each, _ in failed)
    details: VerdictDetails = {
        "measured": {
            "failed": len(failed),
            "never_ended": never,
            "soonest_ms": took_ms[0] if took_ms else 0.0,
            "latest_ms": took_ms[-1] if took_ms else 0.0,
        },
        "expected": {
            "failed": "at least 1",
            "never_ended": "0",
            "soonest_ms": f"{timeout_ms:g} ms",
            "latest_ms": f"{timeout_ms:g} ms",
        },
    }
    if never:
        return case.deviates(f"reports no outcome for {never} records within {high:.0f} ms", **details)
    if not failed:
        return case.inconclusive("no record failed", runs_needed=1, **details)
    late = sum(each > high for each in took_ms)
    if late and late <= _LATE_SHARE * len(took_ms):
        return case.inconclusive(
            f"fails {late} of {len(took_ms)} records late, after up to {took_ms[-1]:.0f} ms, possibly because the "
            "machine was busy",
            runs_needed=case.runs,
            **details,
        )
    if late:
        return case.deviates(
            f"fails a record after {took_ms[-1]:.0f} ms; expected at most delivery.timeout.ms ({timeout_ms:g})",
            where=max(failed)[1],
            **details,
        )
    if took_ms[0] < low:
        return case.deviates(
            f"fails a record after only {took_ms[0]:.0f} ms; expected delivery.timeout.ms ({timeout_ms:g})",
            where=min(failed)[1],
            **details,
        )
    return case.passes(
        f"fails {len(failed)} records after {took_ms[0]:.0f} to {took_ms[-1]:.0f} ms; delivery.timeout.ms is "
        f"{timeout_ms:g}",
        **details,
    )


@_with_driver
def _in_order(case: Case) -> Verdict:
    failed, swapped = 0, 0
    for run in case.observations:
        by_partition: dict[int, list[Record]] = {}
        for each in records(run.callbacks):
            if each.end == FAILED:
                by_partition.setdefault(each.partition, []).append(each)
        for of_partition in by_partition.values():
            failed += len(of_partition)
            swapped += sum(
                before.ended_ns > after.ended_ns + _NS_PER_MS
                for before, after in pairwise(sorted(of_partition, key=lambda each: each.number))
            )
    details: VerdictDetails = {
        "measured": {"failed": failed, "swapped": swapped},
        "expected": {"failed": "at least 2", "swapped": "0"},
    }
    if swapped:
        return case.deviates(f"fails {swapped} of {failed} records before an earlier one; expected 0", **details)
    if failed < 2:
        return case.inconclusive(f"{failed} records failed; expected at least 2", runs_needed=1, **details)
    return case.passes(f"fails {failed} records in the order of sending", **details)


@_with_driver
def _keeps_through_outage(case: Case) -> Verdict:
    timeout_ms, request_ms = _delivery_ms(case), number(case.subject.settings, "request.timeout.ms") or 0.0
    waited, delivered, failed = 0, 0, 0
    for run in case.observations:
        if run.fault_from_ns is None or run.fault_until_ns is None:
            continue
        for each in records(run.callbacks):
            waits_ms = (run.fault_until_ns - each.sent_ns) / _NS_PER_MS
            # Only records that wait for longer than request.timeout.ms, and do not expire during the outage.
            if each.sent_ns < run.fault_from_ns or not request_ms < waits_ms < timeout_ms - _REPORTED_MS:
                continue
            waited += 1
            delivered += each.end == DELIVERED
            failed += each.end == FAILED and each.took_ms < timeout_ms - _REPORTED_MS
    details: VerdictDetails = {
        "measured": {"records": waited, "delivered": delivered, "failed_early": failed},
        "expected": {"records": "at least 1", "failed_early": "0"},
    }
    if failed:
        return case.deviates(
            f"fails {failed} of {waited} records earlier than delivery.timeout.ms ({timeout_ms:g}); expected 0",
            **details,
        )
    if not delivered:
        return case.inconclusive(
            f"no record waited longer than request.timeout.ms ({request_ms:g}) for the end of the outage",
            runs_needed=1,
            **details,
        )
    return case.passes(
        f"delivers {delivered} records that waited longer than request.timeout.ms ({request_ms:g})", **details
    )


@_with_driver
def _expires_while_throttled(case: Case) -> Verdict:
    timeout_ms = _delivery_ms(case)
    overdue, failed, delivered, throttles = 0, 0, 0, 0
    for run in case.observations:
        spans = [
            (span.sent_ns, span.sent_ns + span.throttle_time_ms * _NS_PER_MS)
            for span in throttled_spans(run.events)
            if span.throttle_time_ms >= timeout_ms
        ]
        throttles += len(spans)
        for each in records(run.callbacks):
            over_ns = each.sent_ns + round((timeout_ms + _REPORTED_MS) * _NS_PER_MS)
            if not any(begin_ns < each.sent_ns and over_ns < end_ns for begin_ns, end_ns in spans):
                continue
            overdue += 1
            failed += each.end == FAILED
            delivered += each.end == DELIVERED and each.ended_ns > over_ns
    details: VerdictDetails = {
        "measured": {"records": overdue, "failed": failed, "delivered_late": delivered},
        "expected": {"records": "at least 1", "delivered_late": "0"},
    }
    if delivered:
        return case.deviates(
            f"delivers {delivered} of {overdue} records later than delivery.timeout.ms ({timeout_ms:g}); expected 0",
            **details,
        )
    if throttles >= _MANY and not failed:
        return case.not_observable(
            f"no record waits through any of {throttles} throttles: it is sent meanwhile, or to another broker"
        )
    if not failed:
        return case.inconclusive(
            f"no record waited for a throttle longer than delivery.timeout.ms ({timeout_ms:g})",
            runs_needed=1,
            **details,
        )
    return case.passes(
        f"fails {failed} records that expired during a throttle; delivery.timeout.ms is {timeout_ms:g}", **details
    )


RULES: dict[str, Callable[[Case], Verdict]] = {
    "KIP-91/2": _ends_in_time,
    "KIP-91/8": _in_order,
    "KIP-91/13": _keeps_through_outage,
    "KIP-91/16": _expires_while_throttled,
}
