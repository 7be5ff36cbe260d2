"""What runs against the sentiment server share: the data, the client, the calls in the store."""

from pathlib import Path
from typing import Any

import masa
from masa.clients import Context
from masa.clients.http import Http, make
from masa.doubles.made_up import reviews
from masa.settings import Limits
from server import KEY, Server, database

QUICK = Limits(concurrency=8, first_wait=0.01, longest_wait=0.05)
ONE = Limits(concurrency=1, first_wait=0.01, longest_wait=0.05)


def data(count: int = 300) -> masa.Dataset:
    texts = reviews(count)
    return masa.Dataset.of(
        [label for _, label in texts], inputs={"text": [text for text, _ in texts]}
    )


def client(server: Server, **options: Any) -> Http:
    given = {
        "url": f"{server.url}/classify",
        "headers": {"Authorization": "Bearer ${SENTIMENT_KEY}"},
        "body": {"text": "{text}"},
        "label": "result.label",
        "confidence": "result.score",
        "version": "header:X-Model-Version",
        "price": 0.001,
        "timeout": 60,
    }
    return make(
        "", given | options, Context(("neg", "neu", "pos"), ("text",), {"SENTIMENT_KEY": KEY})
    )


def calls(store: Path, run: int = 1) -> list[tuple[Any, ...]]:
    with database(store) as connection:
        return connection.execute(
            "SELECT item, outcome, prediction, cost FROM call WHERE run = ? ORDER BY number", [run]
        ).fetchall()
