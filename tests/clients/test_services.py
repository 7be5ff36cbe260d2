"""Named services and language models, each against its double: answers, money, faults, keys."""

import asyncio
import wave
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from math import ceil, exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import masa
from doubled import QUICK, SERVICES, Case, case
from masa.clients import Client, prices
from masa.clients.language_models import model as language_model
from masa.clients.services import google_vision
from masa.doubles.language_models import LOGPROB, LanguageModel, Spoken
from masa.doubles.sentiment import AmazonComprehend, BaiduNlp
from masa.doubles.server import KEY
from masa.records import BILLION
from server import database

STUBBORN = replace(QUICK, tries=15)

MODELS = ("openai", "anthropic", "gemini", "azure-openai", "bedrock")
SENTIMENT = ("amazon-comprehend", "google-language", "baidu-nlp")
FACES = ("google-vision", "microsoft-face", "facepp")
SPEECH = ("google-speech", "microsoft-speech", "ibm-speech")


def ask(client: Client, *inputs: str) -> list[masa.Reply]:
    async def one_by_one() -> list[masa.Reply]:
        try:
            return [
                await client.ask(masa.Item(place, {"input": text}))
                for place, text in enumerate(inputs)
            ]
        finally:
            await client.close()

    return asyncio.run(one_by_one())


def rows(store: Path) -> list[tuple[Any, ...]]:
    with database(store) as connection:
        return connection.execute(
            "SELECT item, outcome, prediction, coalesce(cost, reserved) FROM call ORDER BY number"
        ).fetchall()


@pytest.mark.parametrize("service", SERVICES)
def test_an_assessment_finds_what_a_replay_of_the_same_answers_finds(service: str) -> None:
    with case(service) as found:
        found.double.updated = True
        options: dict[str, Any] = {"baseline": "old", "budget": 200, "store": None, "seed": 3}
        live = masa.assess(found.data, found.client(), limits=QUICK, **options)
        replayed = masa.assess(found.data, "replay:new", **options)
        assert (live.queries, live.answers, live.errors) == (200, 200, 0)
        assert found.double.asked == 200
        assert live.shift is not None
        assert replayed.shift is not None
        assert np.array_equal(live.shift.values, replayed.shift.values)
        assert live.differing > 0
        if live.cost is not None:
            # Each call is rounded up to a billionth.
            assert 0 <= round(live.cost * BILLION) - found.double.money * BILLION <= 200


@pytest.mark.parametrize("service", SERVICES)
def test_a_third_of_all_calls_failing_costs_no_answer_and_no_call_uncounted(
    service: str, tmp_path: Path
) -> None:
    with case(service, count=60 if service in SPEECH else 120, faults=0.3, seed=2) as found:
        store = tmp_path / "s.db"
        budget = 3 * len(found.data)
        done = masa.baseline(
            found.data, found.client(), budget=budget, store=store, limits=STUBBORN
        )
        made = rows(store)
        assert len(made) == found.double.asked
        assert done.answers == len(found.data)
        spent = [row for row in made if row[1] not in ("free", "unsent")]
        assert done.queries == len(spent) <= budget
        answers = [row[2] for row in sorted(made, key=lambda row: row[0]) if row[1] == "answer"]
        truth = [found.truth(text, updated=False) for text, _ in found.made]
        assert sorted(answers) == sorted(truth)


@pytest.mark.parametrize("service", SERVICES)
def test_a_wrong_key_stops_at_the_first_call(service: str) -> None:
    with case(service, count=60) as found:
        wrong = {
            name: value.replace(KEY, "wrong-key-000")
            for name, value in found.entry.environment(found.double.url).items()
        }
        with pytest.MonkeyPatch.context() as patch:
            for name, value in wrong.items():
                patch.setenv(name, value)
            with pytest.raises(masa.ApiError) as caught:
                masa.assess(
                    found.data, found.client(), baseline="old", budget=50, store=None, limits=QUICK
                )
        assert found.double.asked <= 1
        assert caught.value.hint
        assert "wrong-key-000" not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize("service", SENTIMENT)
def test_texts_at_the_borders_of_units_cost_what_the_provider_bills(service: str) -> None:
    lengths = (1, 99, 100, 101, 299, 300, 301, 400, 401, 999, 1000, 1001, 1999, 2000)
    signs = ("a", "é", "好")
    with case(service, count=60) as found:
        client = found.client(together=False) if service == "amazon-comprehend" else found.client()
        texts = [sign * length for sign in signs for length in lengths]
        texts = [
            text for text in texts if service == "google-language" or len(text.encode()) <= 5000
        ]
        if service == "google-language":
            texts += ["🙂" * 1000, "🙂" * 1001]
        replies = ask(client, *texts)
        for text, reply, call in zip(texts, replies, found.double.calls, strict=True):
            assert reply.cost == call.billed * BILLION, (len(text), text[0])
        worst = [client.price(masa.Item(0, {"input": text})) for text in texts]
        assert worst == [reply.cost for reply in replies]
        rules: dict[str, Callable[[str], int]] = {
            "amazon-comprehend": lambda text: max(3, ceil(len(text) / 100)) * 100_000,
            "google-language": lambda text: ceil(len(text) / 1000) * 1_000_000,
            "baidu-nlp": lambda _: 2_500_000,
        }
        assert worst == [rules[service](text) for text in texts]


@pytest.mark.parametrize("service", SPEECH)
def test_sounds_cost_by_the_step_in_which_they_are_billed(service: str, tmp_path: Path) -> None:
    lengths = {0.5: 1, 0.99: 1, 1.0: 1, 1.01: 2, 14.99: 15, 15.0: 15, 15.01: 16, 59.5: 60}
    per_second = {
        "google-speech": Fraction("0.016") / 60,
        "microsoft-speech": Fraction(1, 3600),
        "ibm-speech": Fraction("0.02") / 60,
    }[service]
    with case(service, count=60) as found:
        found.folder = tmp_path
        for length in lengths:
            write_silence(tmp_path / f"{length}.wav", length)
        client = found.client()
        names = [f"{length}.wav" for length in lengths]
        replies = ask(client, *names)
        assert {reply.label for reply in replies} == {"nothing"}
        # IBM rounds the sum of a month.
        billed = lengths if service == "ibm-speech" else lengths.values()
        expected = [ceil(Fraction(seconds) * per_second * BILLION) for seconds in billed]
        assert [reply.cost for reply in replies] == expected
        assert [ceil(call.billed * BILLION) for call in found.double.calls] == expected
        # As Google billed until 2023: every 15 seconds begun.
        in_steps = found.client(billing_seconds=15)
        for length, seconds in lengths.items():
            steps = 15 * ceil(seconds / 15)
            price = in_steps.price(masa.Item(0, {"input": f"{length}.wav"}))
            assert price == ceil(steps * per_second * BILLION)


def write_silence(path: Path, seconds: float) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(bytes(2 * int(16_000 * seconds)))


@pytest.mark.parametrize("service", MODELS)
def test_cached_tokens_and_thinking_cost_what_the_provider_bills(service: str) -> None:
    with model(service) as (found, double):
        double.thinks = 17
        client = found.client()
        replies = ask(client, "It was great.", "It was awful.", "It has a door, 好.")
        assert [reply.label for reply in replies] == ["pos", "neg", "neu"]
        for text, reply, call in zip("abc", replies, double.calls, strict=True):
            assert reply.cost == ceil(call.billed * BILLION), text
        assert replies[1].cost is not None
        assert replies[0].cost is not None
        assert replies[1].cost < replies[0].cost  # The prompt is in the cache by then.
        for reply in replies:
            assert reply.cost is not None
            assert reply.cost <= client.price(masa.Item(0, {"input": "x" * 60}))


@pytest.mark.parametrize(
    ("service", "extra", "times"),
    [
        ("openai", {"n": 3}, 3.0),
        ("openai", {"max_tokens": 640.0}, 10.0),
        ("gemini", {"generationConfig": {"topP": 0.5}}, 1.0),
        ("gemini", {"generationConfig": {"candidateCount": 8}}, 8.0),
        ("bedrock", {"inferenceConfig": {"topP": 0.5}}, 1.0),
        ("bedrock", {"additionalModelRequestFields": {"max_new_tokens": 640}}, 10.0),
        ("anthropic", {"thinking": {"type": "enabled", "budget_tokens": 1024}}, 17.0),
    ],
)
def test_what_is_added_to_a_request_keeps_a_limit_of_what_it_costs(
    service: str, extra: dict[str, Any], times: float
) -> None:
    with model(service) as (found, _):
        item = masa.Item(0, {"input": "x"})
        output = {"input_price": 0.0, "output_price": 1000.0, "cached_price": 0.0}
        output["cache_write_price"] = 0.0
        plain, more = found.client(**output), found.client(**output, extra=extra)
        assert more.price(item) == times * plain.price(item)


@pytest.mark.parametrize(
    ("service", "extra"),
    [
        ("openai", {"max_completion_tokens": None}),
        ("anthropic", {"max_tokens": [1]}),
        ("gemini", {"generationConfig": "x"}),
        ("bedrock", {"inferenceConfig": {"maxTokens": 0}}),
    ],
)
def test_a_request_without_a_limit_is_refused(service: str, extra: dict[str, Any]) -> None:
    with (
        model(service) as (found, _),
        pytest.raises(masa.ConfigError, match="takes away the limit"),
    ):
        masa.baseline(found.data, found.client(extra=extra), budget=50, store=None, limits=QUICK)


def test_prices_are_replaced_one_by_one() -> None:
    with model("openai") as (found, _), model("anthropic") as (other, _):
        unpriced = {"input_price": None, "output_price": None, "model": "gpt-4o-mini"}
        client = found.client(**unpriced, cached_price=0.5)
        assert client._prices.cached == Fraction("0.5")  # type: ignore[attr-defined]
        assert client._prices.output == Fraction("0.6")  # type: ignore[attr-defined]
        extra = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
        with pytest.raises(masa.ConfigError, match="price of a cache with ttl '1h'"):
            other.client(extra=extra)


@contextmanager
def model(service: str) -> Iterator[tuple[Case, LanguageModel]]:
    with case(service, count=60) as found:
        assert isinstance(found.double, LanguageModel)
        yield found, found.double


@pytest.mark.parametrize("service", MODELS)
def test_what_a_model_does_not_answer_is_told_apart(service: str) -> None:
    says = {
        "cut": Spoken("It is rather", "length"),
        "refuse": Spoken("I cannot say that.", "refusal"),
        "filter": Spoken("", "filter"),
        "deny": Spoken("This is not pos."),
        "two": Spoken("pos or neg"),
        "chat": Spoken("What a lovely day."),
        "empty": Spoken(""),
        "say": Spoken("The label is: **Neg**."),
    }
    unread = {
        "cut": "cut off",
        "refuse": "refused",
        "filter": "filtered",
        "deny": "denied",
        "two": "several labels",
        "chat": "no label",
        "empty": "empty",
        "say": None,
    }
    if service == "anthropic":
        unread["filter"] = "refused"  # It has one reason for both.
    if service == "gemini":
        unread["refuse"] = "filtered"
    with model(service) as (found, double):
        double.says = lambda text, _label: says[text]
        replies = ask(found.client(), *says)
        assert {text: reply.unread for text, reply in zip(says, replies, strict=True)} == unread
        assert [reply.label for reply in replies] == [None] * 7 + ["neg"]
        assert replies[3].said == "This is not pos."


@pytest.mark.parametrize("service", ["openai", "azure-openai", "gemini", "bedrock"])
def test_a_prompt_that_is_filtered_is_an_answer(service: str) -> None:
    with model(service) as (found, double):
        client = found.client(input_price=1.0, output_price=1000.0)
        known = ask(client, "It was great.")[0]
        double.says = lambda _text, _label: Spoken("", "prompt filter")
        reply = ask(client, "It was great.")[0]
        assert reply.unread == "filtered"
        assert known.cost is not None
        assert reply.cost is not None
        # Nothing was written: what was sent is paid for, and none of max_tokens.
        assert 0 < reply.cost < known.cost < client.price(found.data.item(0))


def test_given_prices_keep_the_tables_prices_of_the_cache_and_none_are_too_low() -> None:
    tokens = prices.Tokens(1000, 10, cached=500, written=400)
    with case("anthropic", count=60) as found:
        model = {"model": "claude-haiku-4-5", "cached_price": None, "cache_write_price": None}

        def cost(**given: object) -> int:
            client = found.client(**model, **given)
            assert isinstance(client, language_model.LanguageModel)
            assert client._prices is not None
            return client._prices.cost(tokens)

        by_table = cost(input_price=None, output_price=None)
        known = prices.model_prices("claude-haiku-4-5")
        assert known is not None
        assert by_table == known.cost(tokens)
        assert cost(input_price=1.0, output_price=5.0) == by_table
        # The user's own price of input: the cache is read at that price, and written at 1.25 of it.
        assert cost(input_price=2.0, output_price=0.0) == round((600 + 400 * 1.25) * 2e-6 * BILLION)


@pytest.mark.parametrize("service", MODELS)
def test_structured_answers_are_read_and_endpoints_that_ignore_it_are_named(service: str) -> None:
    with model(service) as (found, double):
        assert ask(found.client(structured=True), "It was great.")[0].label == "pos"
        double.enforces_schemas = False
        reply = ask(found.client(structured=True), "It was great.")[0]
        assert (reply.label, reply.unread) == (None, "not the JSON")
        with pytest.raises(masa.DataError) as caught:
            masa.baseline(
                found.data, found.client(structured=True), budget=50, store=None, limits=QUICK
            )
        assert "ignores structured = true" in caught.value.hint


@pytest.mark.parametrize("service", ["openai", "azure-openai", "gemini"])
def test_the_confidence_is_that_of_the_words_that_name_the_label(service: str) -> None:
    with model(service) as (found, double):
        says = {
            "a": "Neg",
            "b": "The label is: **Neg**.",
            "c": "My answer, after some thought, is neg",
            "d": "What a day",
        }
        double.says = lambda text, _label: Spoken(says[text])
        client = found.client(logprobs=True)
        assert [reply.confidence for reply in ask(client, "a", "b", "c")] == [exp(LOGPROB)] * 3
        reply = ask(client, "d")[0]
        assert (reply.label, reply.unread) == (None, "no label")
        assert reply.confidence is not None
        assert reply.confidence < exp(LOGPROB)
        assert client.describe() != found.client().describe()


def test_the_table_has_prices_of_the_regions_that_it_knows() -> None:
    priced = prices.model_prices("amazon.nova-lite-v1:0")
    assert priced is not None
    assert prices.model_prices("us.amazon.nova-lite-v1:0") == priced
    assert prices.model_prices("eu.amazon.nova-lite-v1:0") is None
    assert prices.model_prices("amazon.nova-lite-v9:0") is None
    unpriced = {"model": "amazon.nova-lite-v1:0", "input_price": None, "output_price": None}
    with case("bedrock", count=60) as found:
        unpriced["cache_write_price"] = None
        item = masa.Item(0, {"input": "x"})
        assert found.client(region="us-west-2", **unpriced).price(item) > 0
        with pytest.raises(masa.ConfigError, match="tokens cost in eu-central-1"):
            found.client(region="eu-central-1", **unpriced)
        assert found.client(region="eu-central-1").price(item) > 0


def test_json_of_the_prompts_own_form_is_read_at_a_path() -> None:
    said = {
        "fence": '```json\n{"why": "{good}", "verdict": {"grade": "Pos"}}\n```',
        "words": 'Here it is: {"verdict": {"grade": "neg"}} as you asked.',
        "other": '{"verdict": {"grade": "awful"}}',
        "none": "It is pos.",
        "list": '[{"verdict": 1}]',
        "empty": "",
    }
    with model("openai") as (found, double):
        double.says = lambda text, _label: Spoken(said[text])
        replies = ask(found.client(label="verdict.grade"), *said)
        assert [reply.label for reply in replies] == ["pos", "neg", None, None, None, None]
        reasons = [reply.unread for reply in replies[2:]]
        assert reasons == ["unknown label", "not the JSON", "not the JSON", "empty"]
        double.says = lambda _text, label: Spoken(label)
        with pytest.raises(masa.DataError) as caught:
            masa.baseline(
                found.data, found.client(label="grade"), budget=50, store=None, limits=QUICK
            )
        assert "label in [api] is a path into JSON" in caught.value.hint
        with pytest.raises(masa.ConfigError, match="structured and label"):
            found.client(label="grade", structured=True)


def test_the_responses_api_is_read_like_chat() -> None:
    with model("openai") as (found, double):
        client = found.client(api="responses", system="Be careful.", structured=True)
        reply = ask(client, "It was awful.")[0]
        assert (reply.label, reply.version) == ("neg", "tiny-2026-01-01")
        double.says = lambda _text, _label: Spoken("No.", "refusal")
        assert ask(found.client(api="responses"), "x")[0].unread == "refused"
        double.says = lambda _text, _label: Spoken("It is", "length")
        assert ask(found.client(api="responses"), "x")[0].unread == "cut off"


@pytest.mark.parametrize("service", ["openai", "anthropic", "azure-openai"])
def test_a_model_that_refuses_the_temperature_stops_the_run_and_says_so(service: str) -> None:
    with model(service) as (found, double):
        double.refuses_temperature = True
        with pytest.raises(masa.ApiError, match="refuses the temperature") as caught:
            masa.baseline(found.data, found.client(), budget=50, store=None, limits=QUICK)
        assert 'temperature = "default"' in caught.value.hint
        assert double.asked <= 5  # Nothing was answered, so a few others are tried: none is billed.
        reply = ask(found.client(temperature="default"), "It was great.")[0]
        assert reply.label == "pos"


def test_a_version_that_refuses_temperatures_is_sent_none() -> None:
    with model("anthropic") as (found, _):
        reply = ask(found.client(version="2026-10-21"), "It was great.")[0]
        assert (reply.label, reply.version) == ("pos", "tiny-20260101")


def test_a_part_of_a_batch_that_fails_is_asked_again_alone(tmp_path: Path) -> None:
    with case("amazon-comprehend", count=120) as found:
        assert isinstance(found.double, AmazonComprehend)
        found.double.refuses = 0.2
        done = masa.baseline(
            found.data, found.client(), budget=400, store=tmp_path / "s.db", limits=QUICK
        )
        made = rows(tmp_path / "s.db")
        assert (done.answers, done.errors) == (120, 0)
        assert len(made) == found.double.asked > done.queries == 120
        answered = [row for row in made if row[1] == "answer"]
        assert len({row[0] for row in answered}) == len(answered) == 120
        assert sum(row[3] for row in answered) == found.double.money * BILLION
        assert done.cost == pytest.approx(float(found.double.money), abs=1e-12)
        assert max(len(call.inputs) for call in found.double.calls) > 8


@pytest.mark.parametrize(
    ("service", "longest"),
    [("amazon-comprehend", 5_000), ("google-language", 1_000_000), ("baidu-nlp", 2_048)],
)
def test_texts_that_are_never_taken_are_named_before_anything_is_spent(
    service: str, longest: int
) -> None:
    with case(service, count=60) as found:
        for bad, why in (("x" * (longest + 1), f"more than {longest:,}"), (" ", "an empty text")):
            texts = [f"It was good {i}" for i in range(39)] + [bad]
            data = masa.Dataset.of(["pos", "neg"] * 20, inputs={"input": texts})
            with pytest.raises(masa.DataError, match=f"row 40, .*{why}"):
                masa.baseline(data, found.client(), budget=100, store=None, limits=QUICK)
        assert not found.double.calls


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        ({"model": "gpt-4o"}, "set model"),
        ({"messages": [{"role": "user", "content": "hello"}]}, "set prompt"),
        ({"service_tier": "priority"}, "give input_price"),
    ],
)
def test_what_is_added_changes_neither_the_question_nor_its_price(
    extra: dict[str, Any], why: str
) -> None:
    own: dict[str, Any] = {"model": "gpt-4o-mini", "input_price": None, "output_price": None}
    with case("openai", count=2) as found, pytest.raises(masa.ConfigError) as told:
        found.client(**own, extra=extra)
    assert why in (told.value.hint or "")


def test_a_seed_that_is_not_sent_and_two_kinds_of_prices_are_refused() -> None:
    with case("openai", count=2) as found:
        with pytest.raises(masa.ConfigError, match="seed"):
            found.client(api="responses", seed=3)
        with pytest.raises(masa.ConfigError, match="cached tokens"):
            found.client(price=0.1, cached_price=1.0, input_price=None, output_price=None)


@pytest.mark.parametrize("service", ["openai", "amazon-comprehend"])
def test_a_label_that_is_misspelled_in_the_mapping_is_named(service: str) -> None:
    with case(service, count=2) as found:
        found.data = masa.Dataset.of(["positive", "negative"], inputs={"input": ["a", "b"]})
        with pytest.raises(masa.ConfigError) as told:
            found.client(labels={"positive": "positve"})
    assert "'positive'?" in (told.value.hint or "")


def test_the_likelier_of_the_labels_that_the_data_has_is_taken_if_wished() -> None:
    with case("amazon-comprehend", count=60) as found:
        found.data = masa.Dataset.of(["pos", "neg"], inputs={"input": ["a", "b"]})
        text = "It has a door."
        assert ask(found.client(), text)[0].label == "neutral"
        reply = ask(found.client(known_labels_only=True), text)[0]
        assert reply.label in ("pos", "neg")
        assert reply.scores is not None
        assert set(reply.scores) == {"pos", "neg", "neutral", "mixed"}


def test_a_token_that_ends_early_is_fetched_again(tmp_path: Path) -> None:
    with case("baidu-nlp", count=60) as found:
        double = found.double
        assert isinstance(double, BaiduNlp)

        class Revoked(type(found.client())):  # type: ignore[misc]
            async def ask(self, item: masa.Item) -> masa.Reply:
                if double.asked == 20:
                    setattr(double, "token", "24.another")  # noqa: B010
                reply: masa.Reply = await super().ask(item)
                return reply

        client = found.client()
        client.__class__ = Revoked
        done = masa.baseline(found.data, client, budget=200, store=tmp_path / "s.db", limits=QUICK)
        assert (done.answers, done.errors) == (60, 0)
        assert done.queries == 60


def test_baidu_is_asked_and_read_in_utf8() -> None:
    with case("baidu-nlp", count=60) as found:
        reply = ask(found.client(), "质量非常好🙂，很满意")[0]
        assert found.double.calls[0].inputs == ("质量非常好🙂，很满意",)
        assert reply.label == "pos"


def test_the_names_of_files_are_not_taken_for_texts() -> None:
    with case("facepp", count=60) as found:
        options: dict[str, Any] = {"baseline": "old", "budget": 20, "store": None, "limits": QUICK}
        done = masa.assess(found.data, found.client(), **options)
        assert not any("words of the texts" in note for note in done.notes)
    with case("openai", count=60) as found:
        done = masa.assess(found.data, found.client(), **options)
        assert any("words of the texts" in note for note in done.notes)


@pytest.mark.parametrize("service", FACES)
def test_an_image_without_a_face_and_one_that_is_none(service: str, tmp_path: Path) -> None:
    from PIL import Image

    with case(service, count=60) as found:
        found.folder = tmp_path
        Image.new("L", (48, 48), 128).save(tmp_path / "blank.png")
        (tmp_path / "text.png").write_text("not an image")
        with pytest.raises(masa.DataError, match="is not an image or a sound"):
            found.client().check([masa.Item(0, {"input": "text.png"})])  # type: ignore[attr-defined]
        client = found.client(nothing="none")
        assert ask(client, "blank.png")[0].label == "none"
        with pytest.raises(masa.Rejected):
            ask(found.client(), "text.png")


def test_images_that_are_too_large_for_one_call_go_into_several(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(google_vision, "MOST_REQUEST", 6_000)
    with case("google-vision", count=60) as found:
        done = masa.baseline(
            found.data,
            found.client(together=16),
            budget=60,
            store=tmp_path / "s.db",
            limits=replace(QUICK, concurrency=32),
        )
        assert (done.answers, done.errors, done.queries) == (60, 0, 60)
        sent = [sum(map(len, call.inputs)) for call in found.double.calls]
        assert max(sent) <= 6_000
        assert max(len(call.inputs) for call in found.double.calls) > 1


def test_withdrawn_emotions_are_said_to_be_withdrawn() -> None:
    with (
        case("microsoft-face", count=60, withdrawn=True) as found,
        pytest.raises(masa.ApiError, match="UnsupportedFeature") as caught,
    ):
        masa.baseline(found.data, found.client(), budget=50, store=None, limits=QUICK)
    assert "withdrew" in caught.value.hint


@pytest.mark.parametrize("service", [*SENTIMENT, *FACES])
def test_labels_that_the_service_never_says_are_refused_before_anything_is_spent(
    service: str,
) -> None:
    with case(service, count=60) as found:
        found.data = masa.Dataset.of(["1", "0"], inputs={"input": ["a", "b"]})
        with pytest.raises(masa.ConfigError, match="the labels of the data are '0', '1'") as caught:
            found.client()
        assert "labels = {" in caught.value.hint
        said = "positive" if service in SENTIMENT else "happiness"
        assert found.client(labels={said: "1"})
        with pytest.raises(masa.ConfigError, match="says no 'hapiness'") as caught:
            found.client(labels={"hapiness": "1"})
        assert not found.double.calls


@pytest.mark.parametrize("service", SPEECH)
def test_words_that_are_no_label_are_counted_as_that(service: str) -> None:
    with case(service, count=60) as found:
        name, word = next(
            pair for pair in found.made if found.truth(pair[0], updated=False) == "go"
        )
        found.data = masa.Dataset.of(["yes", "no"], inputs={"input": ["a", "b"]})
        reply = ask(found.client(), name)[0]
        assert (reply.label, reply.unread, reply.said) == (None, "unknown label", "go"), word
        assert ask(found.client(labels={"Go": "yes"}), name)[0].label == "yes"


def test_other_addresses_are_not_sent_keys_that_were_not_declared(tmp_path: Path) -> None:
    for service in ("openai", "anthropic", "gemini", "baidu-nlp", "facepp", "microsoft-speech"):
        with case(service, count=60) as found:
            context = masa.clients.Context(found.data.labels, ("input",), {}, folder=tmp_path)
            options = found.entry.options(found.double.url)
            with pytest.raises(masa.ConfigError, match="is not declared"):
                masa.clients.make(service, options, context)


@pytest.mark.parametrize(
    ("service", "module", "extra"),
    [
        ("amazon-comprehend", "boto3", "amazon"),
        ("google-language", "google.cloud", "google"),
        ("google-vision", "google.cloud", "google"),
        ("google-speech", "google.cloud", "google"),
        ("ibm-speech", "ibm_watson", "ibm"),
    ],
)
def test_a_missing_package_says_how_it_is_installed(
    service: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with case(service, count=60) as found:
        monkeypatch.setitem(__import__("sys").modules, module, None)
        with pytest.raises(masa.MasaError) as caught:
            found.client()
        assert f"masa-shift[{extra}]" in caught.value.hint
