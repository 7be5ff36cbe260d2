"""Services whose answers are not what they document: no answer may look like a defect of ours."""

import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import masa
from doubled import SERVICES, case
from masa.errors import CallError
from server import database

STRANGE: tuple[Any, ...] = (
    None, [], {}, [None], [[]], {"a": None}, 0, -1, 1e300, 10**400, True, "", "0", "x" * 300,
    float("nan"), float("inf"), "\x00\ud800", "\x1b[31m",
)  # fmt: skip


def places(content: Any) -> list[tuple[Any, Any]]:
    """Give each place in a JSON text, as what holds it and its key or index."""
    pairs: list[tuple[Any, Any]] = []
    if isinstance(content, dict | list):
        keys = content if isinstance(content, dict) else range(len(content))
        for key in list(keys):
            pairs += [(content, key), *places(content[key])]
    return pairs


def twisted(answer: web.StreamResponse, chance: random.Random) -> web.Response:
    """Make another answer, in which one or two places hold something else, or are missing."""
    assert isinstance(answer, web.Response)
    content = json.loads(answer.text or "null")
    for _ in range(chance.randint(1, 2)):
        found = places(content)
        if not found:
            break
        holder, key = chance.choice(found)
        if chance.random() < 0.2:
            del holder[key]
        else:
            holder[key] = chance.choice(STRANGE)
    if chance.random() < 0.05:
        content = chance.choice(STRANGE)
    text = json.dumps(content)
    return web.Response(text=text, status=answer.status, content_type="application/json")


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("service", SERVICES)
def test_an_answer_in_another_form_is_an_error_of_the_call(service: str, status: int) -> None:
    chance = random.Random(7)
    with case(service, count=60) as found:
        double = found.double
        plain = double.answered

        def lying(request: web.Request, inputs: Any, answer: Callable[[], Any], *rest: Any) -> Any:
            def other() -> web.Response:
                good = answer() if status == 200 else double.fail("throttled")
                return twisted(good, chance)

            return plain(request, inputs, other, *rest)

        double.answered = lying  # type: ignore[assignment,method-assign]
        client = found.client(timeout=5)

        async def ask_all() -> None:
            try:
                for number in range(120):
                    text, _ = found.made[number % len(found.made)]
                    item = masa.Item(number, {"input": text})
                    try:
                        reply = await client.ask(item)
                    except CallError as exc:
                        str(exc).encode()
                        continue
                    assert isinstance(reply, masa.Reply)
            finally:
                await client.close()

        asyncio.run(ask_all())


def test_what_cannot_be_stored_in_an_error_costs_no_answer(tmp_path: Path) -> None:
    data = masa.Dataset.of(["pos", "neg"] * 20, inputs={"input": [str(i) for i in range(40)]})

    def ask(text: str) -> str:
        if text == "7":
            raise masa.Rejected("code \ud800\x00\x1b[31m" + "x" * 1000)
        return "pos"

    done = masa.baseline(data, ask, budget=40, store=tmp_path / "s.db")
    assert (done.answers, done.errors) == (39, 1)
    with database(tmp_path / "s.db") as connection:
        (reason,) = connection.execute("SELECT reason FROM call WHERE outcome = 'error'").fetchone()
    assert reason.startswith(r"code \ud800\x00\x1b[31mxxx")
    assert len(reason) < 400
