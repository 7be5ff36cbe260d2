"""Several items in one call: who is asked with whom, and who fails with whom."""

import asyncio
from collections.abc import Sequence

import pytest

import masa
from masa.clients.together import NO_ROOM, NoRoom, Together
from masa.errors import CallError
from masa.records import Item, Reply
from masa.runs.pace import Pace


def items(count: int) -> list[Item]:
    return [Item(place, {"text": str(place)}) for place in range(count)]


def play(call: object, asked: list[Item], most: int) -> list[object]:
    async def all_at_once() -> list[object]:
        together = Together(call, most)  # type: ignore[arg-type]
        return await asyncio.gather(*map(together.ask, asked), return_exceptions=True)

    return asyncio.run(all_at_once())


def test_calls_are_full_and_every_item_gets_its_own_answer() -> None:
    sizes: list[int] = []

    async def call(batch: list[Item]) -> Sequence[Reply | CallError]:
        sizes.append(len(batch))
        return [masa.Failed("this one") if item.place == 7 else Reply(item.text) for item in batch]

    found = play(call, items(60), 25)
    assert sizes == [25, 25, 10]
    assert isinstance(found[7], masa.Failed)
    good = [reply.label for reply in found if isinstance(reply, Reply)]
    assert good == [str(place) for place in range(60) if place != 7]


def test_an_item_that_spoils_a_call_is_found_by_asking_alone() -> None:
    calls: list[list[int]] = []

    async def call(batch: list[Item]) -> Sequence[Reply | CallError]:
        calls.append([item.place for item in batch])
        if any(item.place == 3 for item in batch):
            raise masa.Rejected("invalid", billed=False)
        return [Reply("ok") for _ in batch]

    async def twice() -> list[object]:
        together = Together(call, 5)
        first = await asyncio.gather(*map(together.ask, items(5)), return_exceptions=True)
        assert all(isinstance(one, masa.Failed) and not one.billed for one in first)
        return list(await asyncio.gather(*map(together.ask, items(5)), return_exceptions=True))

    found = asyncio.run(twice())
    assert sorted(calls[1:]) == [[0], [1], [2], [3], [4]]
    assert isinstance(found[3], masa.Rejected)
    assert [isinstance(one, Reply) for one in found] == [True, True, True, False, True]


@pytest.mark.parametrize(
    "error", [masa.Refused(retry_after=3.0), masa.Fatal("no", hint="key"), masa.Failed("x")]
)
def test_what_fails_for_all_fails_for_each_with_an_error_of_its_own(error: CallError) -> None:
    async def call(_: list[Item]) -> Sequence[Reply | CallError]:
        raise error

    found = play(call, items(4), 4)
    assert {type(one) for one in found} == {type(error)}
    assert len({id(one) for one in found}) == 4
    assert all(one.__dict__ == error.__dict__ for one in found)


def test_a_rate_counts_calls_and_not_the_items_in_them() -> None:
    pace = Pace(2.0, together=25)
    turns = [pace.turn() for _ in range(100)]
    assert [round(turn, 1) for turn in turns[::25]] == [0.0, 0.5, 1.0, 1.5] or turns[0] <= 0.0
    assert round(turns[99], 1) <= 2.0
    late = sorted({round(turn, 1) for turn in turns})
    assert len(late) <= 6


def test_what_has_no_room_in_a_call_is_in_the_next_one() -> None:
    calls: list[list[int]] = []

    async def call(batch: list[Item]) -> Sequence[Reply | CallError | NoRoom]:
        calls.append([item.place for item in batch])
        return [Reply(item.text) if place < 2 else NO_ROOM for place, item in enumerate(batch)]

    found = play(call, items(5), 5)
    assert calls == [[0, 1, 2, 3, 4], [2, 3, 4], [4]]
    assert [reply.label for reply in found if isinstance(reply, Reply)] == list("01234")


def test_a_client_that_has_room_for_nothing_is_not_asked_for_ever() -> None:
    async def call(batch: list[Item]) -> Sequence[Reply | CallError | NoRoom]:
        return [NO_ROOM for _ in batch]

    assert all(isinstance(one, masa.Rejected) for one in play(call, items(3), 3))
