"""Labelled items and everything that is known about them before a call is paid.

Reading files through DuckDB (`files`, with `formats`, `rows` and `inputs`), the data set and its
checks (`dataset`), strata, difficulty, what predicts that an answer changed (`features`), a cheap
model trained on the labels, the baseline answers for the items, and how functions are compiled
(`compiled`). Nothing here queries an API, opens a store or estimates a change.
"""
