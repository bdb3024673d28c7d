"""Run the experiments of docs/fleets: `python -m tools.docs.results.fleet_experiments` writes the page and its figures.

Each has ten seeds. The same code gives the same figures, byte for byte.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from jinja2 import Environment, StrictUndefined
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from msgspec.structs import replace

from sluice.broker.scenarios.files import scenario_of
from sluice.fleet.models.client_model import ClientModel, Group
from sluice.fleet.models.presets import AIOKAFKA, BEFORE_KIP_580, KAFKA, LIBRDKAFKA
from sluice.fleet.run import map_jobs, workers_for
from sluice.fleet.simulation.arrays import Floats
from sluice.fleet.simulation.broker import BROKERS, BrokerModel
from sluice.fleet.simulation.counters import Count
from sluice.fleet.simulation.engine import simulate
from sluice.fleet.simulation.schedule import schedule_of

FOLDER = Path(__file__).parents[3] / "docs" / "fleets"
TEMPLATE = Path(__file__).parent / "fleet_experiments.md.jinja"
VALUES = FOLDER / "values.json"
SEEDS = range(10)
BINS_PER_S = 10
# Fast enough not to form a queue: the client's own timing is the subject.
_FAST = BrokerModel(produce_us=1, metadata_us=1, connection_us=1, kilobyte_us=0.01)
_ATTEMPTS = (Count.CONNECTIONS, Count.METADATA_REQUESTS, Count.PRODUCE_REQUESTS, Count.PRODUCE_RETRIES)
_NO_JITTER = replace(KAFKA, retry_backoff_jitter=0, reconnect_backoff_jitter=0, retry_backoff_redraws=False)
_KILLED_S = 3
_KILL: dict[str, object] = {"at": f"{_KILLED_S}s", "kill": 1}
_AT = _KILLED_S * BINS_PER_S

Counts = npt.NDArray[np.int64]

Values = dict[str, float]  # for the page


def _run(
    groups: Sequence[Group] | ClientModel,
    *steps: Mapping[str, object],
    clients: int = 10_000,
    brokers: int = 3,
    seconds: float = 40,
    broker: BrokerModel = BROKERS["kafka"],
) -> Counts:
    """Return counts by seed, bin and kind."""
    document = {"name": "experiment", "brokers": brokers, "duration": f"{seconds}s", "steps": list(steps)}
    chosen = [Group("clients", groups, clients)] if isinstance(groups, ClientModel) else groups
    schedule = schedule_of(scenario_of(document))
    return np.array([simulate(chosen, schedule, broker, seed=seed).counts for seed in SEEDS])


def first_second() -> Values:
    """Count the retries of clients whose requests all fail from 1 s on."""
    fault = {"kind": "error", "code": "NOT_ENOUGH_REPLICAS"}
    step = {"at": "1s", "fault": {"api": "Produce", "action": fault}}
    axes, figure = _axes("retries of a client since its first failure", "seconds since the failure")
    found = {}
    for label, model in (("constant 100 ms", BEFORE_KIP_580), ("exponential, 100 ms to 1 s", KAFKA)):
        busy = replace(model, requests_per_s=100, loop="closed")
        counts = _run(busy, step, clients=1000, brokers=1, seconds=6, broker=_FAST)
        retries = np.cumsum(counts[:, BINS_PER_S:, Count.PRODUCE_RETRIES], axis=1) / 1000
        # Clients fail within 10 ms of one another, so that the last retry of a second may fall just after it.
        found[label] = float(np.median(retries[:, BINS_PER_S]))
        _band(axes, np.concatenate((np.zeros((len(SEEDS), 1)), retries), axis=1), label)
    old, new = found.values()
    _finish(figure, axes, "kip-580-first-second")
    return {"old": old, "new": new}


def metadata_storm() -> Values:
    """Kill a leader, and count Metadata requests until the election and after it."""
    models = {
        "constant 100 ms": BEFORE_KIP_580, "exponential without jitter": _NO_JITTER, "exponential with jitter": KAFKA,
    }  # fmt: skip
    axes, figure = _axes("Metadata requests per second", "seconds since the broker was killed")
    totals, peaks = {}, {}
    for label, model in models.items():
        rates = _run(model, _KILL, seconds=_KILLED_S + 15)[:, _AT - 5 :, Count.METADATA_REQUESTS] * BINS_PER_S
        totals[label] = float(np.median(rates.sum(axis=1))) / BINS_PER_S
        peaks[label] = float(np.median(rates[:, 5 + 2 * BINS_PER_S :].max(axis=1)))
        _band(axes, rates, label, from_s=-0.5)
    _finish(figure, axes, "metadata-storm", failure=(0, 15))
    old, plain, new = totals.values()
    return {
        "old": old,
        "plain": plain,
        "new": new,
        "plain_peak": peaks["exponential without jitter"],
        "peak": peaks["exponential with jitter"],
    }


def reconnect_storm() -> Values:
    """Kill the only broker, and count connection attempts; then kill one of three, by the scope of the backoff."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    step = {**_KILL, "during": "15s"}
    peaks = {}
    models = {"constant 50 ms": BEFORE_KIP_580, "exponential without jitter": _NO_JITTER, "KIP-144": KAFKA}
    for label, model in models.items():
        rates = _run(model, step, brokers=1, seconds=_KILLED_S + 16)[:, _AT - 5 :, Count.CONNECTIONS] * BINS_PER_S
        peaks[label] = float(np.median(rates[:, 5 + 5 * BINS_PER_S : 5 + 15 * BINS_PER_S].max(axis=1)))
        _band(left, rates[:, : 12 * BINS_PER_S], label, from_s=-0.5)
    _label(left, "connection attempts per second", "seconds since the broker was killed")
    left.set_yscale("symlog", linthresh=1000)
    for label, scope in (("counted per broker (KIP-144)", "broker"), ("counted per client", "client")):
        counts = _run(replace(KAFKA, reconnect_backoff_scope=scope, acks="1"), _KILL, seconds=_KILLED_S + 15)
        _band(
            right,
            counts[:, _AT + 8 * BINS_PER_S : _AT + 12 * BINS_PER_S, Count.COMPLETED] * BINS_PER_S,
            label,
            from_s=8,
        )
    _label(right, "completed operations per second", "seconds since one of three brokers was killed")
    _write(figure, "reconnect-storm")
    static, plain, full = peaks.values()
    return {"static": static, "plain": plain, "full": full}


def aiokafka() -> Values:
    """Kill a leader of aiokafka's producers, with its constant backoff and with an exponential one."""
    axes, figure = _axes("connections and requests per second", "seconds since the broker was killed")
    changed = replace(AIOKAFKA, retry_backoff_max_ms=1000, retry_backoff_jitter=0.2, retry_backoff_redraws=False)
    totals = {}
    for label, model in (("aiokafka 0.14: constant 100 ms", AIOKAFKA), ("with exponential backoff", changed)):
        rates = _run(model, {**_KILL, "during": "20s"}, seconds=_KILLED_S + 24)[:, _AT - BINS_PER_S :][
            :, :, _ATTEMPTS
        ].sum(axis=2)
        totals[label] = float(np.median(rates[:, BINS_PER_S : 10 * BINS_PER_S].sum(axis=1)))
        seconds = rates[:, : 25 * BINS_PER_S].reshape(len(SEEDS), 25, BINS_PER_S).sum(axis=2)
        _band(axes, seconds, label, from_s=-1, bins_per_s=1)
    _finish(figure, axes, "aiokafka-backoff", failure=(0, 20))
    old, new = totals.values()
    return {"old": old, "new": new}


def librdkafka() -> Values:
    """Fail Produce requests of librdkafka for 60 s."""
    fault = {"kind": "error", "code": "NOT_ENOUGH_REPLICAS"}
    step = {"at": "2s", "fault": {"api": "Produce", "action": fault}, "during": "70s"}
    axes, figure = _axes("Produce requests per second", "seconds since the failure began")
    peaks = {}
    for label, wraps in (("librdkafka 2.16", True), ("with a capped shift", False)):
        model = replace(LIBRDKAFKA, retry_backoff_wraps=wraps)
        counts = _run(model, step, clients=1000, brokers=1, seconds=80)[:, 2 * BINS_PER_S :]
        rates = counts[:, :, (Count.PRODUCE_REQUESTS, Count.PRODUCE_RETRIES)].sum(axis=2)[:, : 70 * BINS_PER_S]
        seconds = rates.reshape(len(SEEDS), 70, BINS_PER_S).sum(axis=2)
        peaks[label] = float(np.median(seconds[:, 10:].max(axis=1)))
        _band(axes, seconds, label, bins_per_s=1)
    _finish(figure, axes, "librdkafka-shift")
    wrapped, capped = peaks.values()
    return {"wrapped": wrapped, "capped": capped}


def isolation() -> Values:
    """Run one client that bootstraps beside 1,000 others, and set its quota after 5 s."""
    others = Group("others", replace(KAFKA, record_bytes=1000), 1000)
    # More than a broker can serve, so that five requests are in flight.
    bulk = Group("bulk", replace(KAFKA, record_bytes=1e6, records_per_request=1, requests_per_s=1000), 1)
    quota = {"at": "5s", "quota": {"client_id": "bulk", "producer_byte_rate": 10_000_000}}
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    alone = _run([others], clients=0, brokers=1, seconds=30)
    both = _run([others, bulk], quota, clients=0, brokers=1, seconds=30)
    waits = {}
    for label, counts in (("beside the client that bootstraps", both), ("alone", alone)):
        queued = counts[:, BINS_PER_S:, Count.QUEUED_US] / np.maximum(counts[:, BINS_PER_S:, Count.SERVED], 1) / 1000
        waits[label] = queued
        _band(left, queued, label, from_s=1)
    _label(left, "mean time in the broker (ms)", "seconds")
    left.axvline(5, color="0.5", linewidth=0.8, linestyle="--")
    seconds = both[:, :, Count.BYTES].reshape(len(SEEDS), 30, BINS_PER_S).sum(axis=2) / 1e6
    _band(right, seconds, "all clients", bins_per_s=1)
    _label(right, "MB per second", "seconds; the quota is set at 5 s")
    right.axvline(5, color="0.5", linewidth=0.8, linestyle="--")
    _write(figure, "kip-13-isolation")
    before, after = (
        float(np.median(part))
        for part in np.split(waits["beside the client that bootstraps"], [4 * BINS_PER_S], axis=1)
    )
    burst = float(np.median(seconds[:, 5]))
    return {"before": before, "after": after, "alone": float(np.median(waits["alone"])), "burst": burst}


def delivery_timeout() -> Values:
    """Stop all brokers for several times, and count the records that fail, by delivery.timeout.ms."""
    outages = (10, 20, 40, 60, 90, 120, 180)
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    axes = figure.subplots()
    at_90 = {}
    for timeout_s in (10, 30, 120):
        shares = np.zeros((len(SEEDS), len(outages)))
        model = replace(KAFKA, delivery_timeout_ms=timeout_s * 1000, request_timeout_ms=min(timeout_s * 500, 30_000))
        for index, outage_s in enumerate(outages):
            step = {"at": "5s", "kill": 1, "during": f"{outage_s}s"}
            counts = _run(model, step, clients=5, brokers=1, seconds=outage_s + 15)
            shares[:, index] = counts[:, :, Count.EXPIRED].sum(axis=1) / (5 * outage_s) * 100
        (line,) = axes.plot(outages, np.median(shares, axis=0), marker="o", markersize=3, label=f"{timeout_s} s")
        axes.fill_between(
            outages, shares.min(axis=0), shares.max(axis=0), alpha=0.25, color=line.get_color(), linewidth=0
        )
        at_90[timeout_s] = float(np.median(shares[:, outages.index(90)]))
    _label(axes, "records of the outage that fail (%)", "length of the outage (s)")
    axes.legend(title="delivery.timeout.ms", fontsize="small")
    _write(figure, "kip-91-deadlines")
    return {"at_10": at_90[10], "at_30": at_90[30]}


EXPERIMENTS = {
    each.__name__: each
    for each in (first_second, metadata_storm, reconnect_storm, aiokafka, librdkafka, isolation, delivery_timeout)
}


def _axes(label: str, x_label: str) -> tuple[Axes, Figure]:
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=x_label, ylabel=label)
    return axes, figure


def _label(axes: Axes, label: str, x_label: str) -> None:
    axes.set(xlabel=x_label, ylabel=label)
    _fit(axes)


def _fit(axes: Axes) -> None:
    """Set the limits and the legend, once the data is there."""
    if axes.get_ylim()[1] >= 1000:
        axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(alpha=0.3)
    axes.set_ylim(bottom=0)
    axes.margins(x=0)
    if len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend(fontsize="small")


def _band(axes: Axes, by_seed: Floats | Counts, label: str, from_s: float = 0, bins_per_s: int = BINS_PER_S) -> None:
    at = from_s + np.arange(by_seed.shape[1]) / bins_per_s
    (line,) = axes.step(at, np.median(by_seed, axis=0), where="post", linewidth=1.4, label=label)
    low, high = by_seed.min(axis=0), by_seed.max(axis=0)
    axes.fill_between(at, low, high, step="post", alpha=0.25, color=line.get_color(), linewidth=0)


def _finish(figure: Figure, axes: Axes, name: str, failure: tuple[float, float] | None = None) -> None:
    if failure is not None:
        axes.axvspan(*failure, color="tab:red", alpha=0.06, label="broker is down")
    _fit(axes)
    _write(figure, name)


def _write(figure: Figure, name: str) -> None:
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


def main(chosen: Sequence[str]) -> None:
    """Run these experiments, by default all, in processes, and write the page."""
    FOLDER.mkdir(exist_ok=True)
    names = chosen or list(EXPERIMENTS)
    found: dict[str, Values | None] = json.loads(VALUES.read_text(encoding="utf-8")) if chosen else {}
    found.update(zip(names, map_jobs(_experiment, names, workers_for(len(names)), None), strict=True))
    VALUES.write_text(
        json.dumps({name: found[name] for name in EXPERIMENTS if name in found}, indent=1) + "\n", encoding="utf-8"
    )
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True)
    environment.filters["about"] = lambda value: f"{float(f'{value:.2g}'):,.0f}"
    page = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(found)
    (FOLDER / "experiments.md").write_text(page, encoding="utf-8")


def _experiment(name: str) -> Values:
    return {key: float(f"{value:.3g}") for key, value in EXPERIMENTS[name]().items()}


if __name__ == "__main__":
    main(sys.argv[1:])
