"""Types that many signatures share: arrays, and the callback that shows progress."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

Ints = npt.NDArray[np.int64]

Codes = npt.NDArray[np.int32]

Bools = npt.NDArray[np.bool_]

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of it that is done, from 0 to 1."""
