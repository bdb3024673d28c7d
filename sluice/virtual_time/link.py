"""Latency, bandwidth and loss between two hosts of the memory network."""

from dataclasses import dataclass
from random import Random  # noqa: TID251  (only the type of an injected object)

from sluice.errors import ArgumentError

# Linux's first retransmission timeout, doubled each time.
_RETRANSMIT_S = 0.2


@dataclass(frozen=True, slots=True)
class Link:
    """The path between two places.

    latency_s: one-way latency in seconds
    jitter_s: maximum additional latency, random for each segment
    bytes_per_s: bandwidth in each direction of each connection; None: no limit
    segment_bytes: maximum size of a segment; None: no limit, or 16 KiB with a limited bandwidth
    loss: probability that a segment is lost and retransmitted, which delays it by 200 ms, doubled each time
    """

    latency_s: float = 0.0
    jitter_s: float = 0.0
    bytes_per_s: float | None = None
    segment_bytes: int | None = None
    loss: float = 0.0

    def __post_init__(self) -> None:
        for name, value, is_possible, accepted in (
            ("latency_s", self.latency_s, self.latency_s >= 0, "0 or more"),
            ("jitter_s", self.jitter_s, self.jitter_s >= 0, "0 or more"),
            ("bytes_per_s", self.bytes_per_s, self.bytes_per_s is None or self.bytes_per_s > 0, "more than 0, or None"),
            (
                "segment_bytes",
                self.segment_bytes,
                self.segment_bytes is None or self.segment_bytes >= 1,
                "1 or more, or None",
            ),
            ("loss", self.loss, 0 <= self.loss < 1, "from 0 to less than 1; partition() loses all"),
        ):
            if not is_possible:
                raise ArgumentError(f"Link: {name}: expected {accepted}, got {value}")

    def delay_s(self, random: Random) -> float:
        """Return the delay of the next segment, besides its transmission time."""
        delay_s = self.latency_s
        if self.jitter_s:
            delay_s += random.uniform(0, self.jitter_s)
        again_s = _RETRANSMIT_S
        while self.loss and random.random() < self.loss:
            delay_s += again_s
            again_s *= 2
        return delay_s


INSTANT = Link()
