"""The journal: what was written stays, and the result can be made from it again."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

import masa
from live_runs import ONE, client, data
from masa.data.strata import Strata
from masa.inference.counts import estimated_matrix
from masa.records import Answer, Column
from masa.sampling.stratified import Sampler
from masa.settings import Limits
from masa.storage import journal
from masa.storage.journal import Journal
from masa.storage.store import opened
from server import Server, database


def test_folding_the_journal_afresh_gives_the_result_that_was_given(
    server: Server, tmp_path: Path
) -> None:
    store, old = tmp_path / "s.db", Column("old", ("pos",), np.zeros(300, np.int32))
    server.delay = 0.005
    limits = Limits(concurrency=32)
    found = masa.assess(
        data(), client(server), baseline=old, budget=200, store=store, limits=limits, method="masa"
    )
    with opened(store) as kept:
        past = journal.past(kept, 1)
    sampler = Sampler(Strata.build(data().label))
    place = {key: item for item, key in enumerate(data().keys.tolist())}  # type: ignore[union-attr]
    for key, recorded in past.answers.items():
        sampler.tell(Answer(place[key], recorded.prediction))
    assert found.shift is not None
    assert estimated_matrix(sampler.tally()).on(
        found.shift.new.predictions
    ).values == pytest.approx(found.shift.new.values, abs=1e-12)


def test_a_full_disk_is_a_clear_error_and_what_was_written_stays(
    server: Server, tmp_path: Path
) -> None:
    store, old = tmp_path / "s.db", Column("old", ("pos",), np.zeros(300, np.int32))
    masa.assess(data(), client(server), baseline=old, budget=5, store=store, limits=ONE)
    with database(store) as connection:
        connection.execute("UPDATE run SET finished = NULL")

    async def play() -> None:
        with opened(store) as kept:
            past = journal.past(kept, 1)
            writer = Journal(kept, 1, next_number=past.next_number)
            writer._connection.cursor().execute("PRAGMA max_page_count=1")
            try:
                for item in range(100_000):
                    await writer.sent(item, reserved=0)
            finally:
                await writer.close()

    with pytest.raises(masa.StoreError, match="full") as caught:
        asyncio.run(play())
    assert "run the same command again" in caught.value.hint
    with opened(store) as kept:
        assert len(journal.past(kept, 1).answers) == 5
