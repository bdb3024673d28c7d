"""The outcomes of records as reported by a driver; the wire does not show them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sluice.audit.judge.model.observation import Callback, Observation

DELIVERED, FAILED = "delivered", "failed"


class Record(NamedTuple):
    """One record.

    number: position in the order of sending, from 0
    partition: -1 if not known
    sent_ns: when the application passed it to the client
    end: delivered or failed; "" if not reported
    ended_ns: when the end was reported
    """

    number: int
    partition: int
    sent_ns: int
    end: str
    ended_ns: int

    @property
    def took_ms(self) -> float:
        return (self.ended_ns - self.sent_ns) / 1e6


def records(callbacks: Iterable[Callback]) -> list[Record]:
    sent: dict[int, Callback] = {}
    ends: dict[int, Callback] = {}
    for callback in callbacks:
        if callback.event == "sent":
            sent.setdefault(callback.record, callback)
        elif callback.event in (DELIVERED, FAILED):
            ends.setdefault(callback.record, callback)
    return [
        Record(
            number,
            max(one.partition, ends[number].partition) if number in ends else one.partition,
            one.at_ns,
            ends[number].event if number in ends else "",
            ends[number].at_ns if number in ends else 0,
        )
        for number, one in sent.items()
    ]


def observed_until_ns(observation: Observation) -> int:
    """Return the end of the observation; closing the client ends its work."""
    closed = [callback.at_ns for callback in observation.callbacks if callback.event == "closed"]
    return min([observation.ended_ns, *closed])


def has_records(observations: Sequence[Observation]) -> bool:
    return any(callback.event == "sent" for one in observations for callback in one.callbacks)
