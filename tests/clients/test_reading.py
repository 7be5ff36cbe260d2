"""The label in what a model said: hundreds of ways to say one, to deny one, and to say none."""

import re
import time
from itertools import product

import pytest

from conftest import SHARED
from masa.clients.language_models.reading import Reading, read, simplified
from not_meant import NOT_MEANT

SENTIMENT = {"positive": "positive", "negative": "negative", "neutral": "neutral"}
SPAM = {"spam": "spam", "not spam": "not spam"}
YES_NO = {"yes": "yes", "no": "no"}
GRADES = {str(grade): str(grade) for grade in range(1, 6)}
PASS_FAIL = {"pass": "pass", "fail": "fail"}
LETTERS = {"a": "A", "b": "B", "c": "C"}

SURE = (
    "{0}",
    "{0}.",
    '"{0}"',
    "'{0}'",
    "**{0}**",
    "`{0}`",
    "[{0}]",
    "({0})",
    "<{0}>",
    "  {0}\n\n",
    "{0}!",
    "# {0}",
    "```\n{0}\n```",
    '```json\n{{"label": "{0}"}}\n```',
    '{{"label": "{0}"}}',
    '{{"sentiment": "{0}", "confidence": 0.93}}',
    'Here is the JSON:\n{{"label": "{0}"}}',
    "Label: {0}",
    "label = {0}",
    "Answer: {0}",
    "The answer is {0}.",
    'The answer is "{0}".',
    "Classification: {0}",
    "**Classification:** {0}",
    "**Label**: **{0}**",
    "- Label: {0}",
    "1. Label: {0}",
    "Category -> {0}",
    "Final answer: {0}",
    "My final answer is {0}.",
    "Overall rating: {0}",
    "The most appropriate label is {0}.",
    "So the label is {0}.",
    "Therefore, the correct label is: {0}",
    "The label for this text is {0}.",
    "The label is '{0}', because of the words used.",
    "{0} - the wording leaves little doubt",
    "{0}, because the writer says so.",
    "{0}. The writer says so plainly.",
    "{0}\n\nThe writer says so plainly.",
    "{0}\n\nExplanation: the words at the end show it.",
    "The words at the end show it.\n\n{0}",
    "The words at the end show it.\n\nAnswer: {0}",
    "Let me think about it step by step.\n1. Read it.\n2. Decide.\nFinal answer: **{0}**",
    "Let me think. The wording is plain. [{0}]",
    "<think>hmm, could be one or the other</think>{0}",
    "\\boxed{{{0}}}",
    "$\\boxed{{\\text{{{0}}}}}$",
    "I would label this as {0}.",
    "I would classify this text as {0}.",
    "This text is {0}.",
    "This is clearly {0}!",
    "I think this is {0}.",
    "It is most likely {0}.",
    "This seems to be {0}.",
    "Label (one of those given): {0}",
    "Classification result: {0}",
    "Result: {0} (95% certain)",
    "{0} (high confidence)",
    "\u201c{0}\u201d",
    "Sure! The label is: {0}",
    "Sure, here you go:\n\n**{0}**",
    "Somewhat {0}",
    "Clearly {0}!",
    "A mostly {0} review.",
    "{0} sentiment",
    "The review is {0} overall.",
    "The text expresses a {0} sentiment.",
    "The author's tone is strongly {0}, with many such words.",
    "I'd say this is {0}.",
    "I would go with {0}.",
    "I rate it as {0}.",
    "Based on the wording, I classify the sentiment of this review as **{0}**.",
    "It can be classified as {0}.",
    "It leans towards {0}.",
    "{0}。",
    '{{"verdict": "{0}", "reason": "the words"}}',
    "Wait, let me read it again. Final answer: {0}",
)
"""Ways to say a label that leave no doubt which one is meant."""

UNSURE = (
    "This is not {0}.",
    "This isn't {0}.",
    "It is not {0} at all.",
    "This is hardly {0}.",
    "The text is far from {0}.",
    "It doesn't sound {0}.",
    "I would not call this {0}.",
    "This cannot be {0}.",
    "Never {0}.",
    "It is anything but {0}.",
    "It lacks anything {0}.",
    "{0} is not the right label.",
    "{0} would be wrong.",
    "{0}? No.",
    "{0}?",
    "Is it {0}?",
    "It might be {0}.",
    "It could be {0}.",
    "Perhaps {0}.",
    "Maybe {0}.",
    "Possibly {0}, possibly not.",
    "{0} or {1}",
    "{0} or {1}.",
    "Either {0} or {1}.",
    "{0}/{1}",
    "Both {0} and {1}.",
    "Somewhere between {0} and {1}.",
    "{0}, but also {1}.",
    "{0} at first, then {1}.",
    "The labels are {0} and {1}.",
    "Neither {0} nor {1}.",
    "Mostly {0} with a {1} end.",
    "It depends: {0} if meant seriously.",
    "If it is meant seriously, it is {0}.",
    "I'm not sure whether this is {0}.",
    "I can't tell if this is {0}.",
    "Answer: {0}\nAnswer: {1}",
    "Answer: not {0}",
    "Answer: {0} or {1}",
    "Answer: {0}?",
    "Non-{0}.",
    "{0}-ish",
    "Not {0}, not {1}.",
    "It is ambiguous; {0} is one way to read it.",
    "I'm sorry, but I can't say whether this is {0}.",
    "As an AI, I cannot decide whether this is {0}.",
    "Zero {0} content.",
    "There is nothing {0} here.",
    "A false {0}.",
    "0% {0}",
    "P({0}) = 0.05",
    "{0}: 0.1",
    "{0}: no",
    "{0} = false",
    "{0}: 0.1\n{1}: 0.9",
    "| {0} | 0.1 |\n| {1} | 0.9 |",
    "{0} (10%)\n{1} (90%)",
    '{{"{0}": 0.1, "{1}": 0.9}}',
    '{{"{0}": false, "{1}": true}}',
    "It would be wrong to call it {0}.",
    "I doubt that it is {0}.",
    "I refuse to label it {0}.",
    "Far less than {0}.",
    "{0} sentiment is absent.",
    "Contrary to what a {0} review would say, it complains.",
    "Initially {0}.",
    "Sarcastically {0}.",
    "The words look {0} on the surface.",
    "{0} words are rare in it.",
    "You asked me for {0}.",
    "The text begins with a {0} remark about the weather.",
    "{0}\n\nWait, actually it is {1}.",
    "The sentiment is {0}. Actually, on reflection it is {1}.",
    "Answer: {0}. Hmm, no. Let me reconsider: {1}.",
    "nicht {0}",
    "Das ist nicht {0}.",
    "ce n'est pas {0}",
    "これは {0} ではない",
)
"""Ways to say a label that leave doubt: these are not read."""

NOTHING = (
    "",
    "   ",
    "\n\n",
    "...",
    "I cannot help with that.",
    "I'm sorry, I can't assist with this request.",
    "The text describes a visit to a restaurant.",
    "Please provide the text to classify.",
    "N/A",
    "None of the above",
    "unknown",
    "{}",
    "[]",
    '{"label": null}',
    "<html><body>error</body></html>",
    "x" * 5000,
    "🙂",
    "Text:",
    "42",
)


def _cased(label: str) -> tuple[str, ...]:
    return label, label.capitalize(), label.upper()


@pytest.mark.parametrize("said", SURE)
def test_a_label_is_heard_however_it_is_said(said: str) -> None:
    for label in SENTIMENT:
        for written in _cased(label):
            text = said.format(written)
            assert read(text, SENTIMENT) == Reading(label), text


@pytest.mark.parametrize("said", UNSURE)
def test_what_may_mean_something_else_is_not_read(said: str) -> None:
    for label, other in (("positive", "negative"), ("negative", "neutral")):
        for written in _cased(label):
            text = said.format(written, other)
            assert read(text, SENTIMENT).label is None, text


@pytest.mark.parametrize("said", NOTHING)
def test_what_names_no_label_is_not_read(said: str) -> None:
    found = read(said, SENTIMENT)
    assert found.label is None
    assert found.unread in ("empty", "no label", "refused")


@pytest.mark.parametrize(
    ("said", "names", "label", "unread"),
    [
        ("This is not positive.", SENTIMENT, None, "denied"),
        ("positive, not negative", SENTIMENT, "positive", None),
        ("It is negative rather than positive.", SENTIMENT, "negative", None),
        ("It is not positive but negative.", SENTIMENT, "negative", None),
        ("This isn't positive. It is negative.", SENTIMENT, "negative", None),
        ("Not spam", SPAM, "not spam", None),
        ("This is not spam.", SPAM, "not spam", None),
        ("This is spam.", SPAM, "spam", None),
        ("This is not not spam.", SPAM, None, "denied"),
        ("Spam or not spam?", SPAM, None, None),
        ("No.", YES_NO, "no", None),
        ("No, it is not.", YES_NO, "no", None),
        ("Yes, it is.", YES_NO, "yes", None),
        ("There is no reason to think so.", YES_NO, None, "no label"),
        ("There is no doubt.\n\nYes", YES_NO, "yes", None),
        ("4", GRADES, "4", None),
        ("Score: 4/5", GRADES, "4", None),
        ("4 out of 5", GRADES, "4", None),
        ("I'd give it a 4.", GRADES, "4", None),
        ("Rating: 3 - it has 2 flaws", GRADES, None, None),
        ("between 3 and 4", GRADES, None, "several labels"),
        ("10", GRADES, None, "no label"),
        ("4.5", GRADES, None, None),
        ("4.0", GRADES, "4", None),
        ("4.9", GRADES, None, None),
        ("Score: 4.9", GRADES, None, None),
        ("Score: 4/10", GRADES, None, None),
        ("4%", GRADES, None, None),
        ("-1", GRADES, None, None),
        ("1. It is well written.\n2. It is short.", GRADES, None, None),
        ("4. It is well written.", GRADES, "4", None),
        ("3 stars", GRADES, "3", None),
        ("I'd give it 3 stars.", GRADES, "3", None),
        ("It names 2 reasons.", GRADES, None, "unsure"),
        ("spam: no", SPAM, None, None),
        ("Is spam: false", SPAM, None, None),
        ("Yes and no.", YES_NO, None, None),
        ("Yes - but no", YES_NO, None, None),
        ("Yes, but no.", YES_NO, None, None),
        ("I'd say no.", YES_NO, "no", None),
        ("There is no good reason to say yes.", YES_NO, None, None),
        ("It would fail to pass.", PASS_FAIL, None, None),
        ("Option C", LETTERS, "C", None),
        ("I would choose B.", LETTERS, "B", None),
        ("A or B", LETTERS, None, None),
        ("It lacks vitamin C entirely.", LETTERS, None, None),
        ("正面。", {"正面": "正面", "负面": "负面"}, "正面", None),
        ("不是正面。", {"正面": "正面", "负面": "负面"}, None, None),
        ("答案不确定", {"正面": "正面", "负面": "负面"}, None, None),
        ("PASS", PASS_FAIL, "pass", None),
        ("Verdict: FAIL", PASS_FAIL, "fail", None),
        ("It does not pass.", PASS_FAIL, None, "denied"),
        ("It fails to pass.", PASS_FAIL, None, None),
        ("(B)", LETTERS, "B", None),
        ("Answer: C", LETTERS, "C", None),
        ("A word about it.", LETTERS, None, "no label"),
        ("I can't help with that.", SENTIMENT, None, "refused"),
    ],
)
def test_cases_that_are_easily_misread(
    said: str, names: dict[str, str], label: str | None, unread: str | None
) -> None:
    found = read(said, names)
    assert found.label == label
    if unread is not None:
        assert found.unread == unread


TAKEN_BACK = (
    "My answer is {0}. However, given the sarcasm I would say {1}.",
    "Final answer: {0}\n\nCorrection: {1}",
    "Final answer: {0}\nFinal answer (revised): {1}",
    "The overall score is {0}. The sentiment is {1}.",
    "{0}: tasty food.\n{1}: rude staff, dirty, never again.",
    "Answer: {0}; {1}",
    "[ ] {0}\n[x] {1}\n",
    "( ) {0}\n( ) {1}",
    "\u274c {0}",
    "~~{0}~~",
    "The review sounds {0}, yet the writer is sarcastic.",
    "The review seems {0} but is sarcastic.",
    "The answer is {0}. That is wrong.",
    "The label is {0}, which is false.",
    "Answer: {0} (incorrect)",
    "{0}. But the sarcasm makes it the other label.",
    "At first glance it is {0}.",
    "It is difficult to call this {0}.",
    "I hesitate to call this {0}.",
    "The first half is {0}, the second is bitter.",
    "The writer is {0} that the product broke.",
    "{0}: low",
    "{0}: unlikely",
    "{0} - hardly",
    "{0} (doubtful)",
    '{{"label": "mixed", "reason": "The tone is {0} at first"}}',
    '{{"label": null, "reason": "the first sentence is {0}"}}',
    '{{"label": "{0}", "final_label": "{1}"}}',
    "Label: mixed. The tone is {0} overall.",
    "Mixed\n\nThe ending is {0}.",
    "{0}! Please provide the text.",
)


@pytest.mark.parametrize("said", TAKEN_BACK)
def test_what_is_taken_back_later_is_not_read(said: str) -> None:
    text = said.format("positive", "negative")
    if text != "[ ] positive\n[x] negative\n":
        assert read(text, SENTIMENT).label is None, text
    else:
        assert read(text, SENTIMENT).label in (None, "negative")


@pytest.mark.parametrize("labels", NOT_MEANT, ids=" ".join)
def test_a_label_that_is_mentioned_and_not_meant_is_not_read(labels: tuple[str, ...]) -> None:
    names = {simplified(label): label for label in labels}
    read_all = {said: read(said, names).label for said in NOT_MEANT[labels]}
    assert {said: label for said, label in read_all.items() if label is not None} == {}


def test_thoughts_are_no_answers_wherever_their_tags_are() -> None:
    thoughts = "My answer would be negative. Hmm. " * 900
    for said in (
        f"{thoughts}</think>\n\npositive",
        f"<think>{thoughts}</think>positive",
        f"<thinking>a</thinking><think>{thoughts}</think>positive",
    ):
        assert read(said, SENTIMENT).label == "positive"
    assert read("<think>The answer is positive.", SENTIMENT).unread == "empty"


@pytest.mark.parametrize("said", ["\u22122", "Score: \u22122", "\u20132", "Score: - 2"])
def test_a_minus_is_a_minus_however_it_is_written(said: str) -> None:
    names = {str(grade): str(grade) for grade in range(-2, 3)}
    assert read(said, names).label == "-2"
    assert read(said, GRADES).label is None


@pytest.mark.parametrize("said", ["\u22654", "4+", ">3", "<3", "~3", "-3/5"])
def test_a_number_that_is_compared_is_no_grade(said: str) -> None:
    assert read(said, GRADES).label is None


def test_there_are_a_few_hundred_ways() -> None:
    assert 3 * 3 * len(SURE) + 2 * 3 * len(UNSURE) + len(NOTHING) > 600
    assert len(SURE) + len(UNSURE) + len(NOTHING) > 120


def test_no_text_is_read_as_a_label_that_it_does_not_name() -> None:
    pieces = ("positive", "not", "negative", "or", "is", "Answer:", "?", "\n", "but", "the")
    for parts in product(pieces, repeat=4):
        text = " ".join(parts)
        found = read(text, SENTIMENT)
        assert found.label is None or found.label in text


def test_strange_answers_are_read_quickly() -> None:
    begun = time.process_time()
    for text in (
        "(" * 20_000,
        "answer: " * 10_000,
        "[" * 9_999 + "x",
        "**" * 30_000,
        "no " * 9_000,
        "positive " * 2_000,
    ):
        assert read(text, {**SENTIMENT, **YES_NO}).label is None
    assert time.process_time() - begun < 10  # 2 s; 40 s if every mention looks at the whole text
    assert read("It is not that " + "it and " * 100 + "it is positive", SENTIMENT).label is None
    assert read("İ" * 50 + ". This is positive.", SENTIMENT).label == "positive"


def test_answers_of_gpt4_are_read_as_their_authors_meant_them() -> None:
    """2,000 real answers: the last [Yes] or [No] in each is what GPT-4 was told to end with."""
    import duckdb

    file = SHARED / "llmdrift" / "prime-gpt4.parquet"
    if not file.is_file():
        pytest.skip(f"needs the recorded answers in {file}")
    answers = duckdb.connect().execute(f"SELECT answer FROM '{file}'").fetchall()
    wrong, unread = 0, 0
    for (answer,) in answers:
        meant = re.findall(r"\[(Yes|No)\]", answer)
        found = read(answer, YES_NO)
        if meant:
            unread += found.label is None
            wrong += found.label not in (None, meant[-1].lower())
    assert (len(answers), wrong) == (2000, 0)
    assert unread <= 20


def test_names_are_compared_without_what_does_not_matter() -> None:
    assert simplified(" [“Not  Spam”]. ") == "not spam"
