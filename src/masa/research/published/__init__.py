"""Predictions that others published: readers of their layouts, and the layout that masa keeps.

One file per published layout (`frugalml`, `hapi`, `llmdrift`, `table`) turns a download into
`collection.Collection` records; `layouts` chooses the reader. `downloaded_files` opens files with
messages that name the file and the line. `parquet` is what masa keeps: it saves collections, finds
them again and makes baselines of them. Nothing here downloads anything or computes a statistic.
"""

from masa.research.published.collection import (
    CONFIDENCE,
    PARTIAL,
    PREDICTION,
    Collection,
    Recording,
)
from masa.research.published.layouts import collections, layout_of
from masa.research.published.parquet import Stored, baselines, how_to_use, save, stored
from masa.research.published.table import Columns

__all__ = [
    "CONFIDENCE",
    "PARTIAL",
    "PREDICTION",
    "Collection",
    "Columns",
    "Recording",
    "Stored",
    "baselines",
    "collections",
    "how_to_use",
    "layout_of",
    "save",
    "stored",
]
