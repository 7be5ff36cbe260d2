"""Find the label in what a model said, or the reason why there is none that is certain.

A wrong reading would look like a change of the model, so an answer that could mean two things is
not read. What is certain, in this order: the answer is a label alone; it states one ("Answer:
spam", or a line or first sentence that is a label); it mentions one label only, and neither denies
it ("not spam") nor leaves it open ("perhaps spam", "spam?").
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from masa.clients.templates import Path
from masa.data.dataset import as_text

LONGEST = 20_000
"""The most characters that are read: the end of an answer that is longer."""

KEYS = ("label", "answer", "classification", "class", "category", "sentiment", "result", "output")
"""Names under which models put a label when they answer in JSON."""

FINAL = re.compile(
    r"\b(?:final|overall|correct|my)\s+(?:answer|label|classification|verdict|category|rating|score)"
    r"(?:\s+is\b|\s+would\s+be\b)?[\s:=]*(?P<said>.*)",
    re.IGNORECASE,
)

STATED = re.compile(
    r"^(?:[-*#>•\d.)\s]*)(?:so|therefore|thus|hence)?,?\s*(?:the\s+|my\s+)?"
    r"(?:(?:most\s+)?(?:appropriate|suitable|fitting|likely|best)\s+)?"
    r"(?:predicted\s+|sentiment\s+|text\s+)?"
    r"(?:answer|label|classification|class|category|sentiment|verdict|prediction|rating|score|grade"
    r"|judge?ment|result|output|response|tone|emotion|topic|intent)"
    r"(?:\s+(?:of|for|in)\s+(?:the|this)\s+\w+)?"
    r"\s*(?::|=|->|→|\bis\b|\bwould be\b|\bshould be\b)\s*(?P<said>.*)",
    re.IGNORECASE,
)

OUT_OF = re.compile(r"(?<![\w.])(?P<said>\d+)\s*(?:/|out of)\s*(?P<most>\d+)(?![\w.])")

DENIAL = re.compile(
    r"\b(?:not|no|never|neither|nor|none|without|hardly|barely|scarcely|cannot|cant|wont|isnt|doesnt"
    r"|lacks?|lacking|unlikely|instead of|rather than|far from|anything but|opposite of|other than"
    r"|except|excludes?|rules? out|ruled out|fails? to)\b|n't\b|\b(?:non|un|anti|not)-$",
    re.IGNORECASE,
)
"""Words before a label that deny it."""

DENIED_AFTER = re.compile(
    r"^\W*(?:label\s+|one\s+)?(?:is|would be|was|seems|does|can)\s*"
    r"(?:not\b|n't|wrong|incorrect|inappropriate|unlikely|ruled out|never)"
    r"|^\W*(?:isn't|doesn't|wouldn't|can't|cannot)\b|^-?(?:ish|less|free)\b",
    re.IGNORECASE,
)
"""Words behind a label that deny it."""

OPEN = re.compile(
    r"\b(?:maybe|perhaps|possibly|might|could|may|either|whether|if|unclear|unsure|uncertain|ambiguous"
    r"|depends?|depending|hard to (?:say|tell)|difficult to (?:say|tell)|not sure|not certain"
    r"|can(?:no|')t (?:tell|say|determine|decide)|between|borderline|or)\b",
    re.IGNORECASE,
)
"""Words that leave a label open."""

CONTRAST = re.compile(
    r"\b(?:but|although|though|however|yet|except|or|and|to|with|than|mixed|leaning|rather)\b",
    re.IGNORECASE,
)
"""Words after which a statement may be taken back."""

REFUSAL = re.compile(
    r"\b(?:i(?:'m| am) (?:sorry|unable|not able)"
    r"|i (?:can(?:no|')t|can not|won't|will not|must decline)"
    r"|as an ai|i apologi[sz]e|against my|unable to (?:assist|help|classify|comply|provide))\b",
    re.IGNORECASE,
)

INSTEAD = re.compile(
    r"(?:\bbut|\bit is|\bit's|\bthis is|\bthat's|\brather|\binstead|\bactually)"
    r"\W*(?:an?\s+|the\s+)?$",
    re.IGNORECASE,
)
"""Words that put a label in the place of one that was denied before."""

EVERYDAY = {
    "a", "an", "any", "as", "at", "be", "by", "do", "for", "go", "i", "if", "in", "is", "it",
    "me", "no", "none", "not", "of", "off", "on", "one", "or", "other", "so", "the", "to", "up",
    "us", "we",
}  # fmt: skip
"""Labels that are words of almost any sentence: a mention of one says nothing."""

SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
WHOLE = re.compile(r"(?<=[.!?])\s+|\n+")
BUT = re.compile(r"(?<!\banything )(?<!\ball )\bbut\b", re.IGNORECASE)
CLAUSE = re.compile(r"[.!?;:\n]|,\s|\s[-\u2013\u2014]\s")


@dataclass(frozen=True, slots=True)
class Reading:
    """The label that was found, or why none was."""

    label: str | None
    unread: str | None = None
    """a key of `UNREAD`"""


@dataclass(frozen=True, slots=True)
class _Mention:
    label: str
    begin: int
    end: int
    denied: bool
    open: bool


def simplified(text: str) -> str:
    """Remove what does not matter in an answer: case, spaces, quotes and punctuation around it.

    >>> simplified('  "Positive." ')
    'positive'
    """
    return re.sub(r"\s+", " ", text).strip(" \"'`*_.:,!()[]<>{}“”‘’#").casefold()


def read(said: str, names: Mapping[str, str]) -> Reading:
    """Find the label, given the label for each simplified name.

    >>> names = {"positive": "pos", "negative": "neg"}
    >>> read("**Positive**, as the writer is pleased.", names).label
    'pos'
    >>> read("This is not positive.", names)
    Reading(label=None, unread='denied')
    """
    if not said.strip():
        return Reading(None, "empty")
    text = _bare(said[-LONGEST:])
    whole = simplified(text)
    if whole in names:
        return Reading(names[whole])
    in_json = _in_json(text, names)
    if in_json is not None:
        return Reading(in_json)
    for found in (_final(text, names), _stated(text, names)):
        if len(found) == 1:
            return Reading(found.pop())
        if found:
            return Reading(None, "several labels")
    return _mentioned(text, names)


def read_at(said: str, path: Path, names: Mapping[str, str]) -> Reading:
    """Find the label at a path in an answer that is JSON, alone, in a fence, or behind words.

    >>> names = {"true": "pass", "false": "fail"}
    >>> read_at('Well: {"reason": "too slow", "pass": false}', Path("pass"), names).label
    'fail'
    """
    if not said.strip():
        return Reading(None, "empty")
    text = _without_thoughts(said[-LONGEST:])
    begin, end = text.find("{"), text.rfind("}")
    try:
        label = as_text(path.of(json.loads(text[begin : end + 1])))
    except (ValueError, LookupError, RecursionError):
        return Reading(None, "not the JSON")
    found = None if label is None else names.get(simplified(label))
    return Reading(found, None if found is not None else "unknown label")


def read_json(said: str, names: Mapping[str, str]) -> Reading:
    """Find the label in the JSON that was asked for: {"label": ...}."""
    if not said.strip():
        return Reading(None, "empty")
    try:
        label = json.loads(said)["label"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return Reading(None, "not the JSON")
    if not isinstance(label, str):
        return Reading(None, "not the JSON")
    found = names.get(simplified(label))
    return Reading(found, None if found is not None else "unknown label")


def _without_thoughts(said: str) -> str:
    return re.sub(r"<think(?:ing)?>.*?</think(?:ing)?>", " ", said, flags=re.DOTALL | re.IGNORECASE)


def _bare(said: str) -> str:
    """Remove thoughts and marks of formatting."""
    text = _without_thoughts(said).replace("\u2019", "'")
    text = re.sub(r"\\boxed\{(?:\\text\{)?([^{}]*)\}+", r"\nfinal answer: \1\n", text)
    text = re.sub(r"^\s*```\w*\s*$", "", text, flags=re.MULTILINE)
    return re.sub(r"\*+|`+|(?<!\w)__?|__?(?!\w)", "", text).strip()


def _in_json(text: str, names: Mapping[str, str]) -> str | None:
    """Read an answer that is an object of JSON with one label under a usual name."""
    begin, end = text.find("{"), text.rfind("}")
    if not 0 <= begin < end or len(text) - (end - begin) > 200:
        return None
    try:
        content = json.loads(text[begin : end + 1])
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    found = {
        names[simplified(str(value))]
        for key, value in content.items()
        if str(key).lower() in KEYS and simplified(str(value)) in names
    }
    return found.pop() if len(found) == 1 else None


def _final(text: str, names: Mapping[str, str]) -> set[str]:
    """Give the labels that are stated as the final answer."""
    found = set()
    for match in FINAL.finditer(text):
        label = _beginning(match["said"], names)
        if label is not None:
            found.add(label)
    return found


def _stated(text: str, names: Mapping[str, str]) -> set[str]:
    """Give the labels that are stated: in lines or first sentences that are a label."""
    found = set()
    lines = [line for line in text.split("\n") if line.strip()]
    for number, line in enumerate(lines):
        if simplified(line) in names:
            found.add(names[simplified(line)])
            continue
        for sentence in SENTENCE.split(line):
            match = STATED.match(sentence)
            label = None if match is None else _beginning(match["said"], names)
            if label is not None:
                found.add(label)
        if not number:
            first = SENTENCE.split(line)[0]
            label = _beginning(first, names)
            if label is not None:
                found.add(label)
        in_brackets = re.fullmatch(r".*[\[(]\s*([^\[\]()]+?)\s*[\])]\W*", line)
        if in_brackets and "[" in line and simplified(in_brackets[1]) in names:
            found.add(names[simplified(in_brackets[1])])
    numbers = [int(name) for name in names if name.isdecimal()]
    for match in OUT_OF.finditer(text):
        if numbers and int(match["most"]) == max(numbers) and match["said"] in names:
            found.add(names[match["said"]])
    return found


def _beginning(said: str, names: Mapping[str, str]) -> str | None:
    """Give the label that something begins with, if what follows does not take it back."""
    rest = said.lstrip(" \"'“‘([<{:").rstrip()
    low = rest.casefold()
    for name in sorted(names, key=len, reverse=True):
        if not name or not low.startswith(name):
            continue
        after = rest[len(name) :]
        ends = re.match(
            r"[\"'”’)\]>}]*\s*(?:$|[.,;:!(\u2013\u2014]|-\s|because\b|since\b|as\b)", after
        )
        if ends is None or "?" in after:
            return None
        one_sentence = SENTENCE.split(after[ends.end() :])[0]
        others = set(_names_in(one_sentence, names)) - {names[name]}
        if others or OPEN.search(one_sentence) or CONTRAST.match(one_sentence.strip(" ,")):
            return None
        return names[name]
    return None


def _names_in(text: str, names: Mapping[str, str]) -> Iterator[str]:
    for mention in _mentions(text, names):
        yield mention.label


def _mentions(text: str, names: Mapping[str, str]) -> list[_Mention]:
    """Find all mentions of labels; the longest name first, as "not spam" contains "spam"."""
    found: list[_Mention] = []
    low = text.casefold()
    if len(low) != len(text):
        text = low
    taken = [False] * len(low)
    for name in sorted(names, key=len, reverse=True):
        if not name or name in EVERYDAY:
            continue
        for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", low):
            begin, end = match.span()
            if any(taken[begin:end]):
                continue
            taken[begin:end] = [True] * (end - begin)
            found.append(_mention(text, names[name], begin, end))
    return sorted(found, key=lambda mention: mention.begin)


def _mention(text: str, label: str, begin: int, end: int) -> _Mention:
    """Look at the clause around a mention."""
    before = CLAUSE.split(text[:begin])[-1]
    after = CLAUSE.split(text[end:])[0]
    # What is denied in front of "but" is not what stands behind it.
    near = BUT.split(before)[-1]
    denied = bool(DENIAL.search(near) or DENIED_AFTER.search(after))
    sentence = WHOLE.split(text[:begin])[-1] + text[begin:end] + WHOLE.split(text[end:])[0]
    asked = text[end:].lstrip("\"')”’ ").startswith("?")
    return _Mention(label, begin, end, denied, asked or bool(OPEN.search(sentence)))


def _mentioned(text: str, names: Mapping[str, str]) -> Reading:
    """Read an answer that states nothing, by the labels that it mentions."""
    mentions = _mentions(text, names)
    if not mentions:
        return Reading(None, "refused" if REFUSAL.search(text) else "no label")
    if REFUSAL.search(text):
        return Reading(None, "refused")
    asserted = [mention for mention in mentions if not mention.denied]
    denied = [mention for mention in mentions if mention.denied]
    labels = {mention.label for mention in asserted}
    if not labels:
        return Reading(None, "denied")
    if len(labels) > 1:
        return Reading(None, "several labels")
    if any(mention.open for mention in asserted):
        return Reading(None, "unsure")
    if denied and not _replaces(text, asserted, denied):
        same = labels & {mention.label for mention in denied}
        return Reading(None, "denied" if same else "several labels")
    return Reading(labels.pop())


def _replaces(text: str, asserted: list[_Mention], denied: list[_Mention]) -> bool:
    """Say whether what is asserted clearly stands against what is denied."""
    if {mention.label for mention in asserted} & {mention.label for mention in denied}:
        return False
    first, last = asserted[0], denied[-1]
    if first.begin < denied[0].begin:
        return True  # "positive, not negative"
    return last.end < first.begin and bool(INSTEAD.search(text[: first.begin]))
