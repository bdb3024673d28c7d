"""The result of a run: what was counted for each seed, and the figures derived from it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from sluice.errors import ConfigError
from sluice.fleet.models.client_model import ClientModel
from sluice.fleet.simulation.arrays import US_PER_MS, US_PER_S, Mask
from sluice.fleet.simulation.broker import BrokerModel
from sluice.fleet.simulation.counters import BIN_US, KINDS, Count
from sluice.fleet.simulation.quota import Fairness

FORMAT = 1
_BINS_PER_S = US_PER_S // BIN_US
ATTEMPTS = (
    Count.CONNECTIONS, Count.METADATA_REQUESTS, Count.PRODUCE_REQUESTS, Count.PRODUCE_RETRIES, Count.FETCH_REQUESTS,
    Count.HEARTBEATS, Count.COORDINATOR_LOOKUPS,
)  # fmt: skip
# Recovered: for this long, operations complete at this share of the rate before.
STEADY_S = 5
STEADY_SHARE = 0.95
_DEVIATIONS = 2
LATE_FACTOR, LATE_MS = 2.0, 100.0
# In the first second, operations are only being created.
WARM_S = 1


class ClientGroup(Struct, frozen=True):
    name: str
    clients: int
    model: ClientModel


class Phase(Struct, frozen=True):
    """A time without a change of the scenario.

    Args:
        running: Brokers that run.
        leading: Brokers that run and lead partitions.
        without_leader: The share of the partitions whose leader does not run, or that have none.
        replicated_ms: Until then, acks=all waits for a killed replica; 0 if it does not.
        faults: What the fault rules do.
    """

    from_ms: int
    running: int
    leading: int
    without_leader: float
    replicated_ms: int
    faults: list[str]


class Result(Struct, frozen=True, kw_only=True):
    """A run, as in its JSON file.

    counts: by seed, bin of `bin_ms` and kind, in the order of `kinds`
    trigger_ms, healed_ms: the first and the last change of the scenario
    fairness: of quotas, by seed; empty without quotas
    phases: of the scenario; empty in older results
    """

    format: int = FORMAT
    scenario: str
    groups: list[ClientGroup]
    broker: BrokerModel
    brokers: int
    trigger_ms: int
    healed_ms: int
    seeds: list[int]
    kinds: tuple[str, ...] = KINDS
    bin_ms: int = BIN_US // US_PER_MS
    counts: list[list[list[int]]]
    events: int
    fairness: list[Fairness] = []
    phases: list[Phase] = []

    def array(self) -> npt.NDArray[np.int64]:
        """Return the counts by seed, bin and kind; 0 for kinds that an older result does not have."""
        known = np.array(self.counts, dtype=np.int64).reshape(len(self.seeds), -1, len(self.kinds))
        found = np.zeros((*known.shape[:2], len(KINDS)), dtype=np.int64)
        found[:, :, [KINDS.index(kind) for kind in self.kinds]] = known
        return found


class Figures(NamedTuple):
    """Figures of one seed. Rates are per second.

    Args:
        before_per_s: Attempts (connections and requests) before the trigger.
        peak_per_s: The most attempts in one second from the trigger on, and `peak_at_s` its second.
        amplification: Attempts from the trigger until recovery, or the end, over those of the same time before it.
        disturbed_s: Seconds from the trigger on with fewer, or much later, operations than before.
        recovery_s: Time from the last change of the scenario until operations complete as before; None: not in time.
        expired: Operations that failed by `delivery.timeout.ms`.
        queue_peak_ms: The longest mean time of a second in a broker's queue.
        dropped_syns: Connection attempts, and repetitions, that found a broker's accept queue full.
        lag_peak: The most records that consumers had not received at the end of a second.
    """

    before_per_s: float
    peak_per_s: float
    peak_at_s: int
    amplification: float
    disturbed_s: int
    recovery_s: int | None
    expired: int
    completed: int
    queue_peak_ms: float
    lag_peak: int
    dropped_syns: int


def by_second(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    seconds = len(counts) // _BINS_PER_S
    found: npt.NDArray[np.int64] = counts[: seconds * _BINS_PER_S].reshape(seconds, _BINS_PER_S, -1).sum(axis=1)
    return found


def figures_of(result: Result) -> list[Figures]:
    return [figures_of_counts(counts, result.trigger_ms, result.healed_ms) for counts in result.array()]


def figures_of_counts(bins: npt.NDArray[np.int64], trigger_ms: int, healed_ms: int) -> Figures:
    counts = by_second(bins)
    trigger = min(trigger_ms // 1000, len(counts))
    attempts = counts[:, ATTEMPTS].sum(axis=1)
    steady = counts[WARM_S:trigger] if trigger > WARM_S else counts[:trigger]
    before = float(steady[:, ATTEMPTS].sum() / max(len(steady), 1))
    is_healthy = _healthy_seconds(counts, steady)
    recovered = _recovered_at(is_healthy, -(-healed_ms // 1000))
    until = len(counts) if recovered is None else max(recovered, trigger + 1)
    disturbed = attempts[trigger:until]
    peak_at = trigger + int(np.argmax(attempts[trigger:])) if trigger < len(counts) else 0
    queued = counts[:, Count.QUEUED_US] / np.maximum(counts[:, Count.SERVED], 1) / US_PER_MS
    return Figures(
        before_per_s=before,
        peak_per_s=float(attempts[peak_at]) if len(counts) else 0.0,
        peak_at_s=peak_at,
        amplification=float(disturbed.sum() / (before * len(disturbed))) if before and len(disturbed) else 1.0,
        disturbed_s=int(np.count_nonzero(~is_healthy[trigger:])),
        recovery_s=None if recovered is None else max(recovered - healed_ms // 1000, 0),
        expired=int(counts[:, Count.EXPIRED].sum()),
        completed=int(counts[:, Count.COMPLETED].sum()),
        queue_peak_ms=float(queued.max(initial=0.0)),
        lag_peak=int(counts[:, Count.LAG].max(initial=0)),
        dropped_syns=int(counts[:, Count.DROPPED_SYNS].sum()),
    )


def _healthy_seconds(counts: npt.NDArray[np.int64], steady: npt.NDArray[np.int64]) -> Mask:
    """Return for each second whether operations complete as before.

    With fewer than one operation per second and client, their number differs from second to second: by chance, it is
    more than two standard deviations below the mean in one of 40.
    """
    completed = counts[:, Count.COMPLETED]
    rate = steady[:, Count.COMPLETED].sum() / max(len(steady), 1)
    least = rate * STEADY_SHARE - _DEVIATIONS * (steady[:, Count.COMPLETED].std() if len(steady) else 0.0)
    latency_ms = counts[:, Count.LATENCY_US] / np.maximum(completed, 1) / US_PER_MS
    before_ms = steady[:, Count.LATENCY_US].sum() / max(steady[:, Count.COMPLETED].sum(), 1) / US_PER_MS
    is_healthy: Mask = (completed >= least) & (latency_ms <= before_ms * LATE_FACTOR + LATE_MS)
    return is_healthy


def _recovered_at(is_healthy: Mask, healed_s: int) -> int | None:
    starts = range(healed_s, len(is_healthy) - STEADY_S + 1)
    return next((start for start in starts if is_healthy[start : start + STEADY_S].all()), None)


def write(result: Result, folder: Path) -> None:
    """Write `result.json` and `result.parquet` (a row for each seed and bin)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_bytes(msgspec.json.encode(result))
    array = result.array()
    seeds, bins, _ = array.shape
    columns: dict[str, npt.NDArray[np.int64]] = {
        "seed": np.repeat(np.array(result.seeds), bins),
        "at_ms": np.tile(np.arange(bins) * result.bin_ms, seeds),
        **{kind: array[:, :, number].ravel() for number, kind in enumerate(KINDS)},
    }
    pq.write_table(pa.table(columns), folder / "result.parquet")


def read(path: Path) -> Result:
    """Read `result.json`, or the one in a folder. Raises ConfigError."""
    file = path / "result.json" if path.is_dir() else path
    try:
        return msgspec.json.decode(file.read_bytes(), type=Result)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise ConfigError(f"{file}: expected a result of `sluice fleet run`; {error}") from None


def summary(figures: Sequence[Figures]) -> Mapping[str, tuple[float, float, float]]:
    names = [name for name in Figures._fields if name != "recovery_s"]
    values = {name: sorted(getattr(each, name) for each in figures) for name in names}
    return {name: (found[0], float(np.median(found)), found[-1]) for name, found in values.items()}
