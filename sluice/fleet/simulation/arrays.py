"""Types of arrays, and arrays of random numbers. Times are microseconds since the start; rows are indices of clients.

The numbers depend only on the seed, the client and the number of its draw, whatever the order of events. SplitMix64
(Steele, Lea, Flood 2014): a counter times an odd constant, then a mixing function of three steps.
"""

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

US_PER_MS = 1000
US_PER_S = 1_000_000
NEVER: int = 2**62

_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_PER_CLIENT = np.uint64(0xD1342543DE82EF95)  # another odd constant, so that clients have different sequences
_TO_UNIT = 2.0**-53


def uniform(seed: int, clients: npt.NDArray[np.int64], draws: npt.NDArray[np.uint32]) -> npt.NDArray[np.float64]:
    start = np.uint64((seed * _GOLDEN + _GOLDEN) % 2**64)
    mixed = clients.astype(np.uint64) * _PER_CLIENT + start
    mixed = _mix(mixed) + draws * np.uint64(_GOLDEN)
    return (_mix(mixed) >> np.uint64(11)).astype(np.float64) * _TO_UNIT


def _mix(value: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    value = (value ^ (value >> np.uint64(30))) * _FIRST
    value = (value ^ (value >> np.uint64(27))) * _SECOND
    return value ^ (value >> np.uint64(31))
