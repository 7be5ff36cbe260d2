"""Find the label in what a model said, or the reason why there is none that is certain.

A wrong reading would look like a change of the model, so an answer that could mean two things is
not read. What is certain, in this order: the answer is a label alone; it states one ("Answer:
spam", or a line or first sentence that is a label); it mentions one label only, in a sentence that
says so ("I would call this spam") and neither denies it nor leaves it open (`mentions.py`).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from masa.clients.language_models.mentions import (
    OPEN,
    VALUE,
    ends_number,
    is_heading,
    leads,
    mentions,
    reasons,
    replaces,
)
from masa.clients.templates import Path
from masa.data.dataset import as_text

LONGEST = 20_000
"""The most characters that are read: the end of an answer that is longer."""

KEYS = (
    "label", "answer", "classification", "class", "category", "sentiment", "result", "output",
    "score", "rating", "grade", "verdict", "prediction", "emotion",
)  # fmt: skip
"""Names under which models put a label when they answer in JSON."""

OWN = (
    "predicted", "final", "overall", "assigned", "chosen", "selected", "best", "main", "primary",
    "text", "review", "message", "sentiment", "emotion", "class", "topic", "my", "the",
)  # fmt: skip
"""What may stand before such a name: "final_label"; "wrong_label" is something else."""

OTHER_SCALE = re.compile(
    r"\b(?:max(?:imum)?|highest|best possible|out of|scale|from \w+ to)\b[^\n]{0,30}?"
    r"(?P<most>\b\d+\b(?!\s*(?:to|-|\u2013)\s*\d)|\b(?:ten|hundred)\b)",
    re.IGNORECASE,
)
"""Where an answer says what the highest grade is."""

COUNTERED = re.compile(
    r"\b(?:probability|likelihood|confidence|certainty|chance)\b\W*(?:(?:is|of)\W+)?"
    r"(?:very low\b|low\b|0?\.[0-4]\d*|[0-4]?\d(?:\.\d+)?\s*%)"
    r"|\n\W*(?:false|untrue|0?\.[0-4]\d*|[0-4]?\d(?:\.\d+)?\s*%)\W*(?:\n|$)",
    re.IGNORECASE,
)
"""A probability behind a label that speaks against it."""

QUOTED = re.compile(r"\"[^\"\n]*\"|\u201c[^\u201d\n]*\u201d|\u00ab[^\u00bb\n]*\u00bb")
"""What an answer quotes: it is not the model's own."""

FINAL = re.compile(
    r"\b(?:final|overall|correct|my)\s+(?:answer|label|classification|verdict|category|rating|score)"
    r"(?:\s*\([^()\n]{1,40}\)|,[^,.;:!?\n]{1,40},)?(?:\s+is\b|\s+would\s+be\b)?[\s:=]*(?P<said>.*)",
    re.IGNORECASE,
)

STATED = re.compile(
    r"^(?:[-*#>•\d.)\s]*)(?:so|therefore|thus|hence)?,?\s*(?:the\s+|my\s+)?"
    r"(?:(?:most\s+)?(?:appropriate|suitable|fitting|likely|best)\s+)?"
    r"(?:predicted\s+|sentiment\s+|text\s+)?"
    r"(?:answer|label|classification|class|category|sentiment|verdict|prediction|rating|score|grade"
    r"|judge?ment|result|output|response|tone|emotion|topic|intent|conclusion)"
    r"(?:\s+(?:of|for|in)\s+(?:the|this)\s+\w+|\s+result|\s*\([^()]{1,80}\))?"
    r"\s*(?::|=|->|→|\bis\b|\bwould be\b|\bshould be\b)\s*(?P<said>.*)",
    re.IGNORECASE,
)

OUT_OF = re.compile(
    r"(?<![\w.-])(?P<said>\d+)\s*\(?(?:/|out of)\s*(?P<most>\d+)\)?(?![\w.]\w)"
    r"(?:\s+(?:stars?|points?))?"
)
"""A grade out of the highest one."""

ENDS = re.compile(
    r"[\"'”’)\]>}」】]*\s*(?:$|[.,;:!(\u2013\u2014。！；：，]|-\s|because\b|since\b|as\b)",
    re.IGNORECASE,
)
"""What may stand behind a label that is stated."""

CONTRAST = re.compile(
    r"\b(?:but|although|though|however|yet|except|or|and|to|with|than|mixed|leaning|rather)\b",
    re.IGNORECASE,
)
"""Words after which a statement may be taken back."""

REFUSAL = re.compile(
    r"\b(?:i(?:'m| am) (?:sorry|unable|not able)"
    r"|i (?:can(?:no|')t|can not|won't|will not|must decline|prefer not|do(?:n't| not) feel)"
    r"|i(?:'d| would) (?:rather|prefer) not"
    r"|as an ai|i apologi[sz]e|against my|(?:not able|unable) to (?:assist|help|classify|comply"
    r"|provide|answer|judge|rate|grade))\b",
    re.IGNORECASE,
)

REVISION = re.compile(
    r"(?:^|[.!?\n])\W*(?:wait|hmm|hm|oh|actually|correction|(?:scratch|strike) that|hold on|no,"
    r"|sorry|rather|(?:just )?kidding|never ?mind|nope"
    r"|on (?:second|further|closer) \w+|on reflection|let me re\w+|i take (?:it|that) back"
    r"|i (?:was|am) wrong|i change my|i (?:must |need to )?(?:revise|reconsider|correct))\b",
    re.IGNORECASE,
)
"""The beginning of a sentence that may take back what was stated before."""

TAKEN_BACK = re.compile(
    r"\b(?:that|this|which|it) (?:is|was|would be|seems) (?:wrong|incorrect|false|mistaken|untrue"
    r"|not (?:right|correct|true))\b|\((?:wrong|incorrect|false|not (?:right|correct))\)"
    r"|\b(?:please )?(?:provide|share|send|paste|give|show) (?:me|us|the (?:text|input))\b"
    r"|\bplease (?:provide|share|send|paste)\b|\bwould you like\b|\bi understand (?:the|your)\b"
    r"|\bno (?:text|input|review|message) (?:is |was |has been )?(?:provided|given|included)\b"
    r"|\b(?:no|any) text to (?:classify|rate|label)\b"
    r"|\b(?:text|input) (?:is|seems|appears)(?: to be)? (?:empty|missing)\b"
    r"|\b(?:i|others?) disagree\b|\bi (?:could|may|might) be (?:wrong|mistaken)\b"
    r"|[.!?\n]\s*(?:but|however|yet|although|that said|on the other hand|still|nevertheless)\b"
    r"|[.!?\n]\s*(?:not|wrong|nope|(?:scratch|strike) that|(?:just )?kidding|never ?mind|or not)"
    r"\s*(?:[.!?\n]|$)",
    re.IGNORECASE,
)
"""Words that may take back what was stated before, wherever they stand behind it."""

DOUBT = re.compile(
    r"[\"'”’)\]>}」】]*\s*(?:"
    r",\s*(?:assuming|provided|i guess|i suppose|in theory|wrong|incorrect|not really|sort of"
    r"|kind of|once|until|when|right$|no\b|not\W*$)"
    r"|\((?!\s*(?:[5-9]\d|100)(?:\.\d+)?\s*%|[^()]*\b(?:high|strong|full|certain|sure|confident)\b"
    r"|[^()]*[:=]\s*(?:0?\.[5-9]\d*|1(?:\.0*)?|(?:[5-9]\d|100)(?:\.\d+)?\s*%)\s*\))"
    r"|[:\u2013\u2014-]?\s*[✗✘❌✖☐]"
    r"|\.{2,}|…)",
    re.IGNORECASE,
)
"""What stands behind a label that is not meant, or only under a condition.

In brackets, only how certain it is does not.
"""

UNTICKED = re.compile(r"^\W*(?:\[ \]|\( \)|☐|❌|✗|✘|✖).*$|~~.+?~~", re.MULTILINE)
"""A box that is not ticked, or what was struck out."""

MINUS = re.compile(r"[\u2212\u2013-]\s?(?=\d)")

GREETINGS = {
    "sure",
    "okay",
    "ok",
    "certainly",
    "of course",
    "yes",
    "well",
    "here",
    "hello",
    "thanks",
}

AND_MORE = re.compile(
    r"\s*(?!(?:clearly|overall|definitely|certainly|obviously|strongly|mostly|plainly|really|indeed"
    r"|undoubtedly|absolutely|very|quite)\b)[^\W\d]+(?:\s+[^\W\d]+)?\W*$",
    re.IGNORECASE,
)
"""One or two words behind a comma, such as a second label that the data does not have."""

AGAINST = re.compile(r"\b(?:not|no|never|false|wrong)\W*$", re.IGNORECASE)
"""The end of a sentence that denies what it began with."""

CHATTY = {*GREETINGS, "good", "great", "right", "no"}
CHATTER = re.compile(
    r"\W*(?:i(?:'d|'ll| will| can| would| understand)|here|let me|this is an?"
    r"|the (?:answer|label) is)\b",
    re.IGNORECASE,
)
"""What stands behind a greeting, which may be a label elsewhere."""

SENTENCE = re.compile(r"(?<=[.!?;。！？；])\s*(?=\s|[^\x00-\x7f])|\n+")

NUMBERED = re.compile(r"^\s*\d+[.)]\s+(?=\S)", re.MULTILINE)
"""The number of a line."""

COMPARED = re.compile(r"\W*(?:[-+>\u2264\u2265~]|<(?!\s*\d+\s*>))\s*\d|\W*\d+\s*[-+]\W*$")
"""A number that is not the grade itself: "-2", ">3", "4+"."""

NEGATED = re.compile(r"[!¬~](?=\w)")
"""A sign before a word that denies it, as in programs."""

STRIPPED = " \"'`*_.:,!()[]<>{}“”‘’#。！：，「」『』【】《》"


@dataclass(frozen=True, slots=True)
class Reading:
    """The label that was found, or why none was."""

    label: str | None
    unread: str | None = None
    """a key of `UNREAD`"""


def simplified(text: str) -> str:
    """Remove what does not matter in an answer: case, spaces, quotes and punctuation around it.

    >>> simplified('  "Positive." ')
    'positive'
    """
    return re.sub(r"\s+", " ", text).strip(STRIPPED).casefold()


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
    text = _bare(said)
    if not text:
        return Reading(None, "denied" if UNTICKED.search(said) else "empty")
    whole = re.sub(r"^(\d+)[.,]0+$", r"\1", simplified(text))
    if NEGATED.match(text) and not text.casefold().startswith(
        tuple(name for name in names if name)
    ):
        return Reading(None, "denied")
    if whole in names and not COMPARED.match(text):
        return Reading(names[whole])
    in_json = _in_json(text, names)
    if in_json is not None:
        return in_json
    text = _without_numbers(text)
    found = _final(text, names)
    if not found and _is_table(text, names):
        return Reading(None, "several labels")
    if not found:
        found = _stated(text, names)
    found |= _revised(text, names)
    if not found:
        return _mentioned(text, names)
    return _unless_taken_back(found, text, names)


def _unless_taken_back(found: set[str], text: str, names: Mapping[str, str]) -> Reading:
    """Read the label that was stated, unless other sentences state another, or that it is wrong."""
    others = {
        mention.label for mention in mentions(text, names) if mention.stated and not mention.denied
    }
    if len(found | others | _named(text, names)) > 1 or _stated_twice(text, names):
        return Reading(None, "several labels")
    ended = simplified(text.rsplit("\n", 1)[-1]) in names
    own = QUOTED.sub("", text)
    if not ended and REFUSAL.search(own):
        return Reading(None, "refused")
    if not ended and (TAKEN_BACK.search(text) or own.rstrip(STRIPPED).endswith("?")):
        return Reading(None, "unsure")
    if COUNTERED.search(text) or _of_another_scale(text, names):
        return Reading(None, "unsure")
    return Reading(found.pop())


def _named(text: str, names: Mapping[str, str]) -> set[str]:
    """Give the labels that are all of what stands behind a name in its line: "Update: positive"."""
    behind = (line.partition(":")[2] for line in text.split("\n"))
    return {names[simplified(one)] for one in behind if simplified(one) in names}


def _stated_twice(text: str, names: Mapping[str, str]) -> bool:
    """Say whether one name has a label and, in another line, something else that is short."""
    said: dict[str, set[str]] = {}
    for line in text.split("\n"):
        name, colon, value = line.partition(":")
        value = simplified(value)
        if colon and value and len(value.split()) <= 2:
            said.setdefault(simplified(name), set()).add(names.get(value, value))
    return any(len(values) > 1 and values & {*names.values()} for values in said.values())


def _of_another_scale(text: str, names: Mapping[str, str]) -> bool:
    """Say whether labels are grades and the answer says that another one is the highest."""
    grades = [int(name) for name in names if name.isdecimal()]
    if not grades:
        return False
    return any(match["most"] != str(max(grades)) for match in OTHER_SCALE.finditer(text))


def read_at(said: str, path: Path, names: Mapping[str, str]) -> Reading:
    """Find the label at a path in an answer that is JSON, alone, in a fence, or behind words.

    >>> names = {"true": "pass", "false": "fail"}
    >>> read_at('Well: {"reason": "too slow", "pass": false}', Path("pass"), names).label
    'fail'
    """
    if not said.strip():
        return Reading(None, "empty")
    text = _without_thoughts(said)[-LONGEST:]
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
    """Keep what stands behind the last end of thoughts, and before thoughts without an end.

    Some templates of chats leave out where thoughts begin.
    """
    behind = re.split(r"</think(?:ing)?>", said, flags=re.IGNORECASE)[-1]
    return re.split(r"<think(?:ing)?>", behind, flags=re.IGNORECASE)[0]


def _bare(said: str) -> str:
    """Remove thoughts and marks of formatting."""
    text = _without_thoughts(said)[-LONGEST:].replace("\u2019", "'")
    text = UNTICKED.sub("", MINUS.sub("-", text))
    text = re.sub(r"\\boxed\{(?:\\text\{)?([^{}]*)\}+", r"\nfinal answer: \1\n", text)
    text = re.sub(r"^\s*```\w*\s*$", "", text, flags=re.MULTILINE)
    return re.sub(r"\*+|`+|(?<!\w)__?|__?(?!\w)", "", text).strip()


def _without_numbers(text: str) -> str:
    """Remove the numbers of lines, which are no answers: a list begins with 1."""
    numbered = NUMBERED.findall(text)
    if len(numbered) > 1 or (numbered and numbered[0].strip(" \n.)") == "1"):
        return NUMBERED.sub("", text)
    return text


def _in_json(text: str, names: Mapping[str, str]) -> Reading | None:
    """Read an answer that is an object of JSON with a label under a usual name."""
    begin, end = text.find("{"), text.rfind("}")
    if not 0 <= begin < end or len(text) - (end - begin) > 200:
        return None
    try:
        content = json.loads(text[begin : end + 1])
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    told = {str(key).lower(): value for key, value in content.items()}
    graded = any(name.isdecimal() for name in names)
    said = [
        "" if value is None else simplified(str(value))
        for key, value in told.items()
        if _is_key(key) and not (_is_amount(value) and not (graded and isinstance(value, int)))
    ]
    found = {names[one] for one in said if one in names}
    denied = any(names.get(simplified(key)) in found and not value for key, value in told.items())
    if len(found) > 1 or denied:
        return Reading(None, "several labels")
    if found and all(one in names for one in said) and not _has_another_scale(told, names):
        return Reading(found.pop())
    if said in ([""], ["none"]):
        return Reading(None, "no label")
    return Reading(None, "unknown label") if said else None


def _is_key(key: str) -> bool:
    """Say whether a label may stand under this name.

    >>> _is_key("final_label"), _is_key("answer1"), _is_key("expected_label")
    (True, True, False)
    """
    *before, last = re.split(r"[_\s-]+", key)
    return last.rstrip("0123456789") in KEYS and all(word in OWN for word in before)


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _has_another_scale(told: Mapping[str, object], names: Mapping[str, str]) -> bool:
    """Say whether an object gives a highest grade that is not the labels'."""
    grades = [int(name) for name in names if name.isdecimal()]
    limits = [told[key] for key in told if re.search(r"(?:^|_)(?:max|out_?of|scale|total)", key)]
    return bool(grades) and any(one != max(grades) for one in limits)


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
        if simplified(line) in names and not COMPARED.match(line):
            found.add(names[simplified(line)])
            continue
        for sentence in SENTENCE.split(line):
            match = STATED.match(sentence)
            label = None if match is None else _beginning(match["said"], names)
            if label is not None:
                found.add(label)
        if not number:
            label = _beginning(SENTENCE.split(line)[0], names)
            if label is not None:
                found.add(label)
        in_brackets = re.fullmatch(r".*[\[(]\s*([^\[\]()]+?)\s*[\])]\W*", line)
        if in_brackets and "[" in line and simplified(in_brackets[1]) in names:
            found.add(names[simplified(in_brackets[1])])
    return found | _graded(text, names)


def _graded(text: str, names: Mapping[str, str]) -> set[str]:
    """Give the grades that are stated out of the highest one: "4 out of 5", "Score: 4/5".

    Of "3 out of 5 criteria are met" nobody knows the grade.
    """
    numbers = [int(name) for name in names if name.isdecimal()]
    found = set()
    for sentence in SENTENCE.split(text):
        for match in OUT_OF.finditer(sentence):
            before, after = sentence[: match.start()], sentence[match.end() :]
            named = STATED.match(before)
            stated = (named is not None and not named["said"].strip(STRIPPED)) or leads(before)
            if not numbers or int(match["most"]) != max(numbers) or match["said"] not in names:
                continue
            if stated and reasons(after) and not OPEN.search(after):
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
        if is_heading(after):
            return None
        ends = ENDS.match(after)
        if ends is None or "?" in after or VALUE.match(after) or DOUBT.match(after):
            return None
        if name.isdecimal() and (COMPARED.match(said) or not ends_number(after)):
            return None
        if name in CHATTY and CHATTER.match(after):
            return None
        one_sentence = SENTENCE.split(after[ends.end() :])[0]
        others = {mention.label for mention in mentions(one_sentence, names)} - {names[name]}
        if ends[0].endswith(",") and AND_MORE.match(one_sentence):
            return None
        if AGAINST.search(one_sentence):
            return None
        if others or OPEN.search(one_sentence) or CONTRAST.match(one_sentence.strip(" ,")):
            return None
        return names[name]
    return None


def _is_table(text: str, names: Mapping[str, str]) -> bool:
    """Say whether there is a number behind each of several labels, as in "positive: 0.1"."""
    found = set()
    low = text.casefold()
    for name, label in names.items():
        if name in low and name and not name[-1].isdecimal():
            number = rf"(?<!\w){re.escape(name)}[\"'\s]{{0,2}}[:=(|-][ \t]?[-+.]?\d"
            if re.search(number, low):
                found.add(label)
    return len(found) > 1


def _revised(text: str, names: Mapping[str, str]) -> set[str]:
    """Give the labels that are mentioned where the model thinks again."""
    begin = REVISION.search(text)
    if begin is None:
        return set()
    return {mention.label for mention in mentions(text[begin.end() :], names)}


def _mentioned(text: str, names: Mapping[str, str]) -> Reading:
    """Read an answer that states nothing, by the labels that it mentions."""
    found = mentions(text, names)
    if REFUSAL.search(text):
        return Reading(None, "refused")
    if not found:
        return Reading(None, "no label")
    if _states_another(text, names):
        return Reading(None, "unknown label")
    if TAKEN_BACK.search(text, found[0].end):
        return Reading(None, "unsure")
    asserted = [mention for mention in found if not mention.denied]
    denied = [mention for mention in found if mention.denied]
    labels = {mention.label for mention in asserted}
    if not labels:
        return Reading(None, "denied")
    if len(labels) > 1:
        return Reading(None, "several labels")
    if any(mention.open for mention in asserted) or not any(one.stated for one in asserted):
        return Reading(None, "unsure")
    if denied and not replaces(text, asserted, denied):
        same = labels & {mention.label for mention in denied}
        return Reading(None, "denied" if same else "several labels")
    return Reading(labels.pop())


def _states_another(text: str, names: Mapping[str, str]) -> bool:
    """Say whether a label is stated that the data does not have: in the first line, or by name."""
    first = simplified(text.partition("\n")[0])
    alone = "\n" in text and len(first.split()) <= 2 and first not in GREETINGS
    if alone and first and not mentions(first, names):
        return True
    for line in text.split("\n"):
        stated = STATED.match(SENTENCE.split(line)[0])
        if stated and ":" in line:
            said = simplified(stated["said"])
            if said and len(said.split()) <= 2 and not mentions(said, names):
                return True
    return False
