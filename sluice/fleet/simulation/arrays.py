"""Types of arrays. Times are microseconds since the start; rows are indices of clients."""

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
