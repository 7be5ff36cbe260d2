"""The loops that run once per query, compiled with numba.

Each kernel has a slow, obvious twin in the tests, most of them in `tests/naive.py`.
"""


def compiled_before() -> bool:
    """Say whether an earlier run on this machine compiled them; numba keeps what it compiled."""
    from masa.data.compiled import kept_file
    from masa.sampling.kernels import drawing

    kept = kept_file(drawing.mix)
    return kept is None or kept.is_file()
