"""Campaigns of random inputs without guidance (`fuzz-frames`, `fuzz-upstream`).

They print the number of inputs, the memory, and the longest time of an input, and fail if these are above their limits.

- frames: to a broker. Half are mutated requests, half are random ones that decode.
- responses: to a proxy. Half are mutated responses, half are random ones that decode.
"""

import gc
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from time import monotonic, process_time

from tools.fuzz import targets, upstream
from tools.fuzz.messages import random_frame

LINE_EVERY = 10_000
MOST_RSS_MB = 300
MOST_PROBE_MS = 250
_HANGS_AFTER_S = 120  # of CPU: the campaign may run at idle priority
_FRAMES_PER_BROKER = 5000
_MUTATED_RESPONSES = 0.5
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


def responses(random: Random) -> Iterator[bytes]:
    """Yield inputs of the target `responses` without end."""
    inputs = targets.seeds("responses")
    while True:
        data = upstream.random_input(random)
        if random.random() < _MUTATED_RESPONSES:
            data = data[: upstream.HEADER.size] + mutated(data[upstream.HEADER.size :], inputs, random)
        yield data


CAMPAIGNS = {"frames": frames, "responses": responses}


def campaign(target: str, count: int, seed: int) -> int:
    """Run `count` inputs of a target; return the number of defects."""
    folder = Path("build", "fuzz", target)
    folder.mkdir(parents=True, exist_ok=True)
    targets.brokers.inputs_per_broker = _FRAMES_PER_BROKER
    signal.signal(signal.SIGPROF, _hangs)
    defects, slowest, began = 0, 0.0, monotonic()
    for number, data in enumerate(islice(CAMPAIGNS[target](Random(seed)), count), 1):
        cpu = process_time()
        signal.setitimer(signal.ITIMER_PROF, _HANGS_AFTER_S)
        try:
            targets.run(target, data)
        except Exception as error:
            defects += 1
            path = folder / f"defect-{seed}-{number}"
            path.write_bytes(data)
            print(f"{path}: {error!r}", flush=True)
            targets.brokers.drop(data[0])
        slowest = max(slowest, process_time() - cpu)
        if number % LINE_EVERY == 0 or number == count:
            print(_line(seed, number, began, slowest, defects), flush=True)
            gc.freeze()  # else full collections of all brokers and codecs are the slowest inputs
    signal.setitimer(signal.ITIMER_PROF, 0)
    missed = _rss_mb() > MOST_RSS_MB or slowest * 1e3 > MOST_PROBE_MS
    return min(defects + missed, 100)


def _line(seed: int, number: int, began: float, slowest: float, defects: int) -> str:
    rate = number / (monotonic() - began)
    return (
        f"seed {seed}: {number:,} inputs, {rate:,.0f}/s, {defects} defects, "
        f"at most {_rss_mb()} MB, slowest {slowest * 1e3:.0f} ms of CPU"
    )


def _rss_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _hangs(*_: object) -> None:
    sys.exit("an input takes longer than two minutes of CPU")


# Lengths and counts at the limits of their types, in the encodings of the protocol.
_INTERESTING = [
    *(value.to_bytes(4, signed=True) for value in (-1, 0, 1, 2**31 - 1, -(2**31), 1_000_001)),
    *(value.to_bytes(2, signed=True) for value in (-1, 0, 2**15 - 1, -(2**15))),
    b"\xff\xff\xff\xff\x0f",  # the largest unsigned varint
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # the largest varlong
    b"\x80\x80\x80\x80\x80\x80",  # a varint that does not end
    b"\xf4\x90\x80\x80",  # above the last code point
    b"\xed\xa0\x80",  # a surrogate
    b"\0",
]
_MOST_CHANGES = 4
_MOST_BYTES = 64


def mutated(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """Return `data` with one to four changes; parts of `others` may be inserted."""
    result = bytearray(data)
    for _ in range(random.randint(1, _MOST_CHANGES)):
        at = random.randrange(len(result) + 1)
        length = random.randint(1, _MOST_BYTES)
        match random.randrange(6):
            case 0 if at < len(result):
                result[at] ^= 1 << random.randrange(8)
            case 1:
                value = random.choice(_INTERESTING)
                result[at : at + len(value)] = value
            case 2:
                result[at:at] = random.randbytes(length)
            case 3:
                del result[at : at + length]
            case 4:
                result[at:at] = result[at : at + length]
            case _:
                other = random.choice(others)
                begin = random.randrange(len(other) + 1)
                result[at : at + length] = other[begin : begin + length]
    return bytes(result)
