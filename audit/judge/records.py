"""What became of records, as a driver told: the only way to see what an application is told of a delivery."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sluice.audit.judge.model.observation import Callback, Observation

DELIVERED, FAILED = "delivered", "failed"


class Record(NamedTuple):
    """One record.

    number: in the order of sending
    partition: -1: not known
    sent_ns: when it was handed to the client
    end: delivered or failed; "" where nobody has told
    ended_ns: when that was told
    """

    number: int
    partition: int
    sent_ns: int
    end: str
    ended_ns: int

    @property
    def took_ms(self) -> float:
        """From when it was sent to its end."""
        return (self.ended_ns - self.sent_ns) / 1e6


def records(callbacks: Iterable[Callback]) -> list[Record]:
    """All that were sent, in that order."""
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
    """Until when the client was at work: it closes what it has when it is told to end."""
    closed = [callback.at_ns for callback in observation.callbacks if callback.event == "closed"]
    return min([observation.ended_ns, *closed])


def has_records(observations: Sequence[Observation]) -> bool:
    """Whether a driver told of any."""
    return any(callback.event == "sent" for one in observations for callback in one.callbacks)
