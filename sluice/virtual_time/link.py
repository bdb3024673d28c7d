"""How bytes pass between two hosts of the memory network."""

from dataclasses import dataclass
from random import Random  # noqa: TID251  (the type of what is injected; nothing is drawn from the module itself)

# Linux sends a lost segment again after this, doubled each time.
_RETRANSMIT_S = 0.2


@dataclass(frozen=True, slots=True)
class Link:
    """How bytes pass. `latency_s` one way, plus up to `jitter_s`, drawn for each piece; `bytes_per_s` in each direction
    of each connection, None: no limit; `loss`: the part of pieces that is lost and sent again, which in TCP is a delay
    of 200 ms, doubled each time.
    """

    latency_s: float = 0.0
    jitter_s: float = 0.0
    bytes_per_s: float | None = None
    loss: float = 0.0

    def __post_init__(self) -> None:
        """Raises ValueError."""
        for name, value, is_possible, accepted in (
            ("latency_s", self.latency_s, self.latency_s >= 0, "0 or more"),
            ("jitter_s", self.jitter_s, self.jitter_s >= 0, "0 or more"),
            ("bytes_per_s", self.bytes_per_s, self.bytes_per_s is None or self.bytes_per_s > 0, "more than 0, or None"),
            ("loss", self.loss, 0 <= self.loss < 1, "from 0 to less than 1; partition() loses all"),
        ):
            if not is_possible:
                raise ValueError(f"{name} is {value}, it can be {accepted}")

    def delay_s(self, random: Random) -> float:
        """How long the next piece is under way, its own length aside."""
        delay_s = self.latency_s
        if self.jitter_s:
            delay_s += random.uniform(0, self.jitter_s)
        again_s = _RETRANSMIT_S
        while self.loss and random.random() < self.loss:
            delay_s += again_s
            again_s *= 2
        return delay_s


INSTANT = Link()
