"""The loops that run once per query, compiled with numba.

Each kernel has a slow, obvious twin in the tests, most of them in `tests/naive.py`.
"""

from pathlib import Path


def compiled_before() -> bool:
    """Say whether an earlier run on this machine compiled them; numba keeps what it compiled."""
    from masa.sampling.kernels import drawing

    kept = getattr(drawing.mix, "_cache", None)
    return kept is None or any(Path(kept.cache_path).glob("drawing.*.nbi"))
