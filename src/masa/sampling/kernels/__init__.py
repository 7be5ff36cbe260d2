"""The loops that run once a query, compiled with numba. Each has a slow, obvious twin in `tests/naive.py`."""
