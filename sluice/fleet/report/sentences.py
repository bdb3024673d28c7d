"""A sentence for each plot that states why it looks so, computed from the counts and phases of the run.

Numbers are medians over the seeds. Seconds are those of the plots.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from sluice.fleet.results import (
    ATTEMPTS,
    LATE_FACTOR,
    LATE_MS,
    STEADY_S,
    STEADY_SHARE,
    WARM_S,
    Phase,
    Result,
    by_second,
)
from sluice.fleet.simulation.arrays import US_PER_MS, US_PER_S, Floats, Mask
from sluice.fleet.simulation.counters import Count
from sluice.fleet.sweep import Row

_NAMES = {
    Count.CONNECTIONS: "connections",
    Count.METADATA_REQUESTS: "Metadata requests",
    Count.PRODUCE_REQUESTS: "Produce requests",
    Count.PRODUCE_RETRIES: "retries of Produce",
    Count.FETCH_REQUESTS: "Fetch requests",
    Count.HEARTBEATS: "heartbeats",
    Count.COORDINATOR_LOOKUPS: "FindCoordinator requests",
}
_MORE = 1.2  # what exceeds the value before by less is the same
_SHORT_MS = 5.0  # a queue that is not worth an explanation


class _Run:
    """The medians of the counts by second, and those of a normal second."""

    def __init__(self, result: Result) -> None:
        seeds = np.array([by_second(counts) for counts in result.array()], dtype=np.float64)
        self.result = result
        self.counts: Floats = np.median(seeds, axis=0)
        self.trigger = min(result.trigger_ms // 1000, len(self.counts))
        # If the scenario begins with a change, its last seconds show what is normal.
        normal = self.counts[WARM_S : self.trigger] if self.trigger > WARM_S else self.counts[-STEADY_S:]
        self.normal: Floats = normal.mean(axis=0) if len(normal) else np.zeros(self.counts.shape[1])

    def phase(self, second: int) -> Phase | None:
        """Return the phase that is in force for the longest part of a second."""
        starts = [*(phase.from_ms for phase in self.result.phases), len(self.counts) * 1000]
        overlaps = [min(end, (second + 1) * 1000) - max(start, second * 1000) for start, end in pairwise(starts)]
        return self.result.phases[int(np.argmax(overlaps))] if overlaps else None

    def cause(self, first: int, last: int) -> str:
        """Return what keeps operations from completing in most of these seconds, or ""."""
        found = [self._cause(self.phase(second), second) for second in range(first, last + 1)]
        return max(found, key=found.count)

    def _cause(self, phase: Phase | None, second: int) -> str:
        if phase is None:
            return ""
        if not phase.running:
            return "no broker runs"
        if phase.faults:
            return f"the fault rules {' and '.join(phase.faults)}"
        waits = phase.replicated_ms > second * 1000 and any(
            group.model.acks == "all" or group.model.role == "consumer" for group in self.result.groups
        )
        causes = []
        if phase.without_leader:
            causes.append(f"{phase.without_leader * 100:.0f} % of the partitions do not have a leader that runs")
        if waits:
            causes.append(
                f"acks=all waits for the killed replica until it leaves the ISR, at {phase.replicated_ms / 1000:g} s"
            )
        if causes:
            return " and ".join(causes)
        if self.counts[: second + 1, Count.THROTTLED_US].any():
            return "quotas throttle the clients"
        if self.counts[second, Count.CONNECTIONS] > self.normal[Count.CONNECTIONS] * _MORE:
            return "clients are still connecting"
        if self.queue_ms()[second] > LATE_MS:
            return "requests wait in the queues of the brokers"
        return ""

    def queue_ms(self) -> Floats:
        found: Floats = self.counts[:, Count.QUEUED_US] / np.maximum(self.counts[:, Count.SERVED], 1) / US_PER_MS
        return found

    def work_s(self) -> Floats:
        """Return the CPU time that the attempts of each second need, by kind as in _NAMES."""
        broker, counts = self.result.broker, self.counts
        accepted = np.maximum(counts[:, Count.CONNECTIONS] - counts[:, Count.REFUSED], 0)
        of_bytes_us = counts[:, Count.BYTES] / 1000 * broker.kilobyte_us
        found: Floats = np.array([
            accepted * broker.connection_us,
            counts[:, Count.METADATA_REQUESTS] * broker.metadata_us,
            counts[:, Count.PRODUCE_REQUESTS] * broker.produce_us + of_bytes_us,
            counts[:, Count.PRODUCE_RETRIES] * broker.produce_us,
            counts[:, Count.FETCH_REQUESTS] * broker.fetch_us,
            counts[:, Count.HEARTBEATS] * broker.metadata_us,
            counts[:, Count.COORDINATOR_LOOKUPS] * broker.metadata_us,
        ])  # fmt: skip
        return found / US_PER_S

    def running(self, second: int) -> int:
        phase = self.phase(second)
        return self.result.brokers if phase is None else phase.running

    def leading(self, second: int) -> int:
        phase = self.phase(second)
        return self.result.brokers if phase is None else phase.leading


def attempts_sentence(result: Result) -> str:
    """Return when most attempts are made, of which kind the additional ones are, and why."""
    run = _Run(result)
    totals, normal = run.counts[:, ATTEMPTS].sum(axis=1), float(run.normal[list(ATTEMPTS)].sum())
    if run.trigger >= len(totals):
        return "The scenario changes nothing that the clients notice."
    peak = run.trigger + int(np.argmax(totals[run.trigger :]))
    if totals[peak] <= normal * _MORE:
        return (
            f"No second has more than {_MORE:g} times the normal attempts: clients wait, or do not notice the failure."
        )
    more = np.maximum(run.counts[peak] - run.normal, 0)[list(ATTEMPTS)]
    kind = ATTEMPTS[int(np.argmax(more))]
    many = _span(totals > normal * _MORE, run.trigger)
    ratio = f", {totals[peak] / normal:.1f} times those of a normal second" if normal else ""
    lasting = f" More than {_MORE:g} times the normal attempts are made for {many[1] - many[0] + 1} s." if many else ""
    return (
        f"Most attempts are made in second {peak}: {totals[peak]:,.0f}{ratio}. {more.max() / more.sum() * 100:.0f} % of"
        f" the additional ones are {_NAMES[kind]}: {_reason(run, kind, peak)}.{lasting}"
    )


def kinds_sentence(result: Result) -> str:
    """Return what the failure adds until the end of the run, by kind and client."""
    run = _Run(result)
    clients = sum(group.clients for group in result.groups)
    more = {kind: float((run.counts[run.trigger :, kind] - run.normal[kind]).sum()) for kind in ATTEMPTS}
    added = [(kind, count) for kind, count in more.items() if count >= max(clients * 0.01, 1)]
    if not added:
        return "The failure adds no attempts."
    texts = [f"{count:,.0f} {_NAMES[kind]}" for kind, count in sorted(added, key=lambda pair: -pair[1])]
    refused = run.counts[run.trigger :, Count.REFUSED].sum()
    why = f"; {refused:,.0f} connections are refused" if refused else ""
    each = sum(count for _, count in added) / clients
    return f"From second {run.trigger} on, the failure adds {_listed(texts)}, {each:.1f} attempts per client{why}."


def outcomes_sentence(result: Result) -> str:
    """Return when fewer operations complete than before, and why; and those that complete late, or fail."""
    run = _Run(result)
    completed, rate = run.counts[:, Count.COMPLETED], float(run.normal[Count.COMPLETED])
    if run.trigger >= len(completed):
        return "Nothing changes, so operations complete at the same rate."
    latency_ms = run.counts[:, Count.LATENCY_US] / np.maximum(completed, 1) / US_PER_MS
    normal_ms = run.normal[Count.LATENCY_US] / max(rate, 1) / US_PER_MS
    sentences = []
    fewer = _span(completed < rate * STEADY_SHARE, run.trigger)
    if fewer is not None:
        first, last = fewer
        share = completed[first : last + 1].mean() / rate if rate else 0.0
        amount = (
            "no operations complete"
            if share < 0.005
            else f"{share * 100:.0f} % of the normal number of operations completes"
        )
        sentences.append(f"{_seconds(first, last)}, {amount}{_because(run.cause(first, last))}.")
        if last + 1 < len(completed) and completed[last + 1] > rate * _MORE:
            sentences.append(
                f"In second {last + 1}, {completed[last + 1]:,.0f} complete: those that waited, after"
                f" {latency_ms[last + 1]:,.0f} ms on average."
            )
        elif last + 1 == len(completed):
            sentences.append("That is until the end of the run.")
    late = _span(latency_ms > normal_ms * LATE_FACTOR + LATE_MS, run.trigger if fewer is None else fewer[1] + 2)
    if late is not None:
        peak = latency_ms[late[0] : late[1] + 1].max()
        sentences.append(
            f"{_seconds(*late)}, operations complete up to {peak:,.0f} ms after their creation"
            f"{_because(run.cause(*late))}."
        )
    expired = run.counts[:, Count.EXPIRED]
    if expired.sum():
        sentences.append(
            f"{expired.sum():,.0f} operations fail, most in second {int(np.argmax(expired))}: they were created"
            " delivery.timeout.ms before."
        )
    if sentences:
        return " ".join(sentences)
    added_ms = max(float((latency_ms[run.trigger :] - normal_ms).max()), 0)
    return f"Operations complete at the normal rate, at most {added_ms:,.0f} ms later than in a normal second."


def queue_sentence(result: Result) -> str:
    """Return how long requests wait, which of them fill the queues, and what drains these."""
    run = _Run(result)
    queue_ms, work_s = run.queue_ms(), run.work_s()
    peak = int(np.argmax(queue_ms))
    use = [work_s[:, second].sum() / max(run.leading(second), 1) for second in range(len(queue_ms))]
    if queue_ms[peak] < _SHORT_MS:
        return (
            f"Requests wait for less than {_SHORT_MS:g} ms: in the busiest second, they need {max(use) * 100:.0f} % of"
            " the CPU time of the leaders."
        )
    first = peak  # a queue is longest after the work that fills it: it is as long as in a second before
    while first and queue_ms[first - 1] >= queue_ms[peak] / 2:
        first -= 1
    work = work_s[:, first : peak + 1].sum(axis=1)
    kind = list(_NAMES)[int(np.argmax(work))]
    share = work.max() / max(work.sum(), 1e-9)
    seconds = f"in second {peak}" if first == peak else f"from second {first} to {peak}"
    text = (
        f"Requests wait longest in second {peak}, {queue_ms[peak]:,.0f} ms on average: what arrives {seconds} needs"
        f" {np.mean(use[first : peak + 1]) * 100:.0f} % of the CPU time of the leaders, {share * 100:.0f} % of it for"
        f" {_NAMES[kind]}."
    )
    steady_ms = run.normal[Count.QUEUED_US] / max(run.normal[Count.SERVED], 1) / US_PER_MS
    long = _span(queue_ms > steady_ms * LATE_FACTOR + LATE_MS, 0)
    if long is None or long[0] == long[1]:
        return text
    first, last = long
    arrives = float(np.mean(use[first : last + 1]))
    while_long = f"{_seconds(first, last)}, the work that arrives is {arrives * 100:.0f} % of what the leaders can do"
    if last + 1 == len(queue_ms):
        return f"{text} {while_long}, and the queues are not empty at the end of the run."
    drain = (
        "The rest of their time drains the queues" if arrives < 1 else "Later seconds with less work drain the queues"
    )
    return f"{text} {while_long}. {drain}."


def bytes_sentence(result: Result) -> str:
    """Return the burst that quotas allow, and how long they throttle."""
    run = _Run(result)
    sent, throttled_s = run.counts[:, Count.BYTES], run.counts[:, Count.THROTTLED_US].sum() / US_PER_S
    if not throttled_s:
        return "No request is throttled: the clients send less than their quotas."
    peak, rest = int(np.argmax(sent)), float(sent[run.trigger :].mean())
    clients = sum(group.clients for group in result.groups)
    return (
        f"Most bytes are sent in second {peak}, {sent[peak]:,.0f}; the mean from second {run.trigger} on is"
        f" {rest:,.0f}. Clients are throttled for {throttled_s / clients:,.1f} s each, until their average of ten"
        " seconds is at the quota."
    )


def sweep_sentence(rows: Sequence[Row], fleet: str, brokers: int) -> str:
    """Return in which cells a fleet does not recover, and why; and where it is disturbed longest."""
    found = [row for row in rows if row.fleet == fleet]
    lost = [row for row in found if row.recovery_s < 0]
    worst = max(found, key=lambda row: row.disturbed_s)
    longest = (
        f"It is disturbed longest, for {worst.disturbed_s} s, by an outage of {worst.outage_s:g} s at a load of"
        f" {worst.load:g}."
    )
    if not lost:
        return f"{fleet} recovers in all cells. {longest}"
    outages = {
        load: min(row.outage_s for row in lost if row.load == load) for load in sorted({row.load for row in lost})
    }
    least = min(outages)
    where = _listed([f"{load:g} from an outage of {outage_s:g} s on" for load, outage_s in outages.items()])
    remaining = (brokers - 1) / brokers
    if brokers > 1 and least > remaining:
        why = (
            f"after the outage, {brokers - 1} of {brokers} brokers lead all partitions, and can carry a load of"
            f" {remaining:.2f}"
        )
    else:
        why = "requests, with connections and retries, wait longer than their timeouts or than the rest of the run"
    return f"{fleet} does not recover at a load of {where}: {why}. {longest}"


def _reason(run: _Run, kind: int, second: int) -> str:
    counts = run.counts[second]
    if kind == Count.CONNECTIONS and counts[Count.REFUSED] > counts[Count.CONNECTIONS] / 2:
        down = run.result.brokers - run.running(second)
        stopped = f", as {down} of {run.result.brokers} brokers {'is' if down == 1 else 'are'} down" if down else ""
        return f"{counts[Count.REFUSED]:,.0f} are refused{stopped}"
    if kind == Count.CONNECTIONS:
        return "clients connect again after connections were lost"
    if kind in (Count.METADATA_REQUESTS, Count.COORDINATOR_LOOKUPS):
        return (
            "clients look for a new leader" if kind == Count.METADATA_REQUESTS else "members look for their coordinator"
        )
    if kind == Count.PRODUCE_RETRIES:
        return (
            f"in this second {counts[Count.ERRORS]:,.0f} requests got an error, and"
            f" {counts[Count.REQUEST_TIMEOUTS]:,.0f} timed out"
        )
    if kind == Count.PRODUCE_REQUESTS:
        return "records that had waited are sent"
    return "they got a response at once, and are repeated" if kind == Count.FETCH_REQUESTS else "members are back"


def _span(mask: Mask, start: int) -> tuple[int, int] | None:
    """Return the first and the last second of the longest time for which a condition holds, from `start` on."""
    best: tuple[int, int] | None = None
    first = None
    for second in [*range(start, len(mask)), None]:
        if second is not None and mask[second]:
            first = second if first is None else first
        elif first is not None:
            end = len(mask) - 1 if second is None else second - 1
            if best is None or end - first > best[1] - best[0]:
                best = first, end
            first = None
    return best


def _seconds(first: int, last: int) -> str:
    return f"In second {first}" if first == last else f"From second {first} to {last}"


def _because(cause: str) -> str:
    return f", because {cause}" if cause else ""


def _listed(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
