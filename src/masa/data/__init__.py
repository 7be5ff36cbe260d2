"""Labelled items and everything that is known about them before a call is paid.

Reading files (`files`, through DuckDB), the data set and its checks (`dataset`), strata, difficulty, what predicts that an
answer changed (`features`), a cheap model trained on the labels, and the baseline answers laid over the data. Nothing here
asks an API, opens a store or estimates a change.
"""
