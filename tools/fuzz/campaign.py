"""A campaign of frames: half are mutated requests, half are random ones that decode (campaign `fuzz-frames`).

Prints the number of frames, the memory, and the longest time from a frame to the response of a new connection.
"""

import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import monotonic, process_time

from tools.fuzz import targets
from tools.fuzz.messages import random_frame
from tools.fuzz.mutation import mutated

LINE_EVERY = 50_000
MOST_RSS_MB = 300
MOST_PROBE_MS = 250
_HANGS_AFTER_S = 120
_FRAMES_PER_BROKER = 5000
# The next frame of a broker that has state from an earlier one finds more than a changed byte.
_CHANGED = 0.3


def frames(random: Random) -> Iterator[bytes]:
    """Yield inputs of the target `frames` without end."""
    inputs = targets.seeds("frames")
    while True:
        number = random.randrange(targets.KINDS)
        if random.random() < 0.5:
            yield bytes([number]) + mutated(random.choice(inputs), inputs, random)[1:]
            continue
        broker = targets.brokers.get(number)
        topic = broker.cluster.topics.get("t")
        data = random_frame(random, broker.broker.served, topic.topic_id if topic else bytes(16))
        yield bytes([number]) + (mutated(data, inputs, random) if random.random() < _CHANGED else data)


def campaign(count: int, seed: int) -> int:
    """Send `count` frames; return the number of defects."""
    folder = Path("build", "fuzz", "frames")
    folder.mkdir(parents=True, exist_ok=True)
    targets.brokers.inputs_per_broker = _FRAMES_PER_BROKER
    signal.signal(signal.SIGALRM, _hangs)
    defects, slowest, began = 0, 0.0, monotonic()
    for number, data in enumerate(frames(Random(seed)), 1):
        cpu = process_time()
        signal.alarm(_HANGS_AFTER_S)
        try:
            targets.run("frames", data)
        except Exception as error:
            defects += 1
            path = folder / f"defect-{seed}-{number}"
            path.write_bytes(data)
            print(f"{path}: {error!r}", flush=True)
            targets.brokers.drop(data[0])
        slowest = max(slowest, process_time() - cpu)
        if number % LINE_EVERY == 0 or number == count:
            print(_line(seed, number, began, slowest, defects), flush=True)
        if number == count:
            break
    signal.alarm(0)
    missed = _rss_mb() > MOST_RSS_MB or slowest * 1e3 > MOST_PROBE_MS
    return min(defects + missed, 100)


def _line(seed: int, number: int, began: float, slowest: float, defects: int) -> str:
    rate = number / (monotonic() - began)
    return (
        f"seed {seed}: {number:,} frames, {rate:,.0f}/s, {defects} defects, "
        f"at most {_rss_mb()} MB, slowest {slowest * 1e3:.0f} ms of CPU"
    )


def _rss_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _hangs(*_: object) -> None:
    sys.exit("a frame takes longer than two minutes")
