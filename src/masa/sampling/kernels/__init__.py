"""The loops that run once per query, compiled with numba.

Each kernel has a slow, obvious twin in the tests, most of them in `tests/naive.py`.
"""
