"""Where a sentence mentions labels, and whether it states, denies or leaves open each of them.

A mention is taken for the answer only where the sentence says so in one of a few usual ways: "I
would call this positive", "it seems to be spam", "a clearly positive review". There are more ways
to deny a label than anyone can list ("zero positive content", "P(positive) = 0.05", "a false
positive"), so what is not known to state a label does not state it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

EVERYDAY = {
    "a", "an", "any", "as", "at", "be", "by", "do", "for", "go", "i", "if", "in", "is", "it",
    "me", "no", "none", "not", "of", "off", "on", "one", "or", "other", "so", "the", "to", "up",
    "us", "we",
}  # fmt: skip
"""Labels that are words of almost any sentence: only a clause that ends with one can state it."""

_THINGS = (
    r"sentiment|tone|emotion|connotation|feelings?|mood|attitude|review|text|message|comment|tweet"
    r"|post|e-?mail|sentence|statement|response|answer|feedback|label|class|category|option"
    r"|choice|score|rating|grade|verdict|intent|topic|article|document|passage"
)

_FILLERS = (
    r"an?|the|it|its|this|that|to|be|being|as|of|with|into|towards?|in|under|overall|very|strongly"
    r"|clearly|quite|mostly|predominantly|primarily|mainly|generally|somewhat|slightly|rather"
    r"|highly|extremely|definitely|certainly|plainly|obviously|fairly|largely|decidedly|most"
    r"|overwhelmingly|distinctly|probably|likely|best|just|simply|described|considered|expressed"
    r"|classified|labell?ed|rated|categori[sz]ed|marked|tagged|judged|seen|number"
)

_FILLED = rf"(?:(?:{_FILLERS}|{_THINGS})\s+)*[\"'“‘(\[<]*$"

_IS = (
    r"is|are|seems?|appears?|sounds?|feels?|reads|looks|falls?|(?:can|should|has to|must) be"
    r"|(?:clearly|strongly|mostly)?\s*(?:express(?:es)?|conveys?|conveying|shows?|displays?"
    r"|indicates?|suggests?|reflects?|exhibits?|demonstrates?|leans?|portrays?|communicates?|has)"
)

_SAY = (
    r"say|call|give|choose|chose|pick|select|classify|categori[sz]e|label|rate|consider|assign|tag"
    r"|mark|grade|judge|deem|go|score"
)

_SUBJECT = (
    rf"(?:it|this|that|(?:the|this|that|its)\s+(?:overall\s+)?(?:{_THINGS})"
    r"(?:\s+(?:of|in|for|expressed in|conveyed by|conveyed in)"
    rf"\s+(?:the|this|that)\s+(?:{_THINGS}))?"
    r"|the\s+(?:author|writer|reviewer|speaker)'s\s+(?:overall\s+)?(?:tone|sentiment|mood|attitude))"
)

_OPENING = (
    r"(?:so|overall|therefore|thus|hence"
    r"|in (?:short|summary|conclusion|my (?:view|opinion)|the end)"
    r"|(?:based on|judging (?:by|from)|given|considering|after reading)\s[^,.;:!?]{1,80}),?\s+"
)

_LEADS = re.compile(
    rf"\W*(?:{_OPENING})?(?:"
    rf"(?:i(?:'d| would)?\s+(?:think|believe|say)\s+(?:that\s+)?)?"
    rf"(?:{_SUBJECT}\s+(?:{_IS})|it's|this's|that's)\s+"
    rf"|i(?:'d|'ll| would| will| have to| must)?\s+(?:{_SAY})\s+"
    rf"|){_FILLED}",
    re.IGNORECASE,
)
"""What stands between the beginning of a sentence and a label that it states, or nothing.

A sentence about the text itself or by the model itself: "the ending is positive", "the author says
it is positive" and "had it been short, it would be a pass" state nothing.
"""

_REASON = re.compile(
    rf"(?:\s*\b(?:{_THINGS}|stars?|points?|overall|here|in (?:tone|nature)))*"
    r"(?:[^\w,:?(\u2013\u2014-]*$"
    r"|\s*,?\s*\b(?:because|since|as|given (?:that|the|how)|due to|rather than|instead of)\b"
    r"|(?:\s*,|\s+[-\u2013\u2014])\s+(?:for|with|not|the|this|it|its|these|there)\b)",
    re.IGNORECASE,
)
"""What may stand behind it: the end of the sentence, or a reason."""

_DENIAL = re.compile(
    r"\b(?:not|no|never|neither|nor|none|nothing|nobody|zero|without|hardly|barely|scarcely|cannot"
    r"|cant|wont|isnt|doesnt|lacks?|lacking|unlikely|instead of|rather than|far from|anything but"
    r"|opposite of|other than|except|excludes?|rules? out|ruled out|fails? to|wrong(?:ly)?"
    r"|incorrect(?:ly)?|mistaken(?:ly)?|mistake|false(?:ly)?|doubt(?:s|ed|ful)?|refus\w+|declin\w+"
    r"|absen\w+|devoid|less|least|contrary|reject\w*|disagree\w*|avoid\w*|den(?:y|ies|ied)"
    r"|short of|mislabel\w*|opposed to|too \w+ to)\b|n't\b|\b(?:non|un|anti|not)-$",
    re.IGNORECASE,
)
"""Words before a label that deny it."""

_DENIED_AFTER = re.compile(
    rf"^\W*(?:(?:{_THINGS}|one)\s+)?(?:is|would be|was|seems|does|can)\s*"
    r"(?:not\b|n't|wrong|incorrect|inappropriate|unlikely|ruled out|never|absent|missing|lacking"
    r"|false|doubtful|inaccurate)"
    r"|^\W*(?:isn't|doesn't|wouldn't|can't|cannot)\b|^-?(?:ish|less|free)\b",
    re.IGNORECASE,
)
"""Words behind a label that deny it."""

OPEN = re.compile(
    r"\b(?:maybe|perhaps|possib(?:ly|le)|might|could|may|either|whether|if|unless|unclear|unsure"
    r"|uncertain|ambiguous|depends?|depending|hard to|difficult to|hesitat\w+"
    r"|at first|initially|on the surface|superficially|(?:first|second) (?:half|part)|partly"
    r"|not sure|not certain|can(?:no|')t (?:tell|say|determine|decide)|between|borderline|options"
    r"|or)\b",
    re.IGNORECASE,
)
"""Words that leave a label open."""

_DEGREE = re.compile(
    r"\b(?:extremely|highly|strongly|overwhelmingly|quite|somewhat|slightly|mildly|rather|fairly"
    r"|very|clearly|mostly|largely|decidedly)\s+$",
    re.IGNORECASE,
)
"""How much so: where labels say that as well ("very positive"), it may be another label."""

_INSTEAD = re.compile(
    r"(?:\bbut|\bit is|\bit's|\bthis is|\bthat's|\brather|\binstead|\bactually)"
    r"\W*(?:an?\s+|the\s+)?$",
    re.IGNORECASE,
)
"""Words that put a label in the place of one that was denied before."""

TURNS = re.compile(r"\b(?:but|yet|although|though|whereas)\b|^\s*that\b", re.IGNORECASE)
"""Words behind a label after which the rest of its sentence may take it back."""

VALUE = re.compile(
    r"[\"'”’)\]>}]*\s*[:=]\s*[\"']?(?:[-+.]?\d|(?:true|false|yes|no)\b)", re.IGNORECASE
)
"""A value behind a label: "spam: no" is not spam, and of what 0.3 is the value nobody knows."""

_AROUND = 400
"""The characters before and behind a label that are looked at: a sentence is rarely longer."""

_WHOLE = re.compile(r"(?<=[.!?;。！？；])\s+|(?<=[。！？；])|\n+")
_FOR_EXAMPLE = re.compile(r"\b(?:e\.g|i\.e|for example)\W*$", re.IGNORECASE)
_NEGATED = re.compile(r"(?:^|[^\w!])[!¬~-]$")
_BUT = re.compile(r"(?<!\banything )(?<!\ball )(?<!\beverything )\bbut\b", re.IGNORECASE)
_CLAUSE = re.compile(r"[.!?;:\n。！？；：，]|,\s|\s[-\u2013\u2014]\s")


_AS_HEADING = re.compile(r"\s*(?:score|level|probability)?\s*[:(\u2013\u2014-]\s*", re.IGNORECASE)
"""What stands between a label and what is said of it, as in "spam: unlikely"."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A label in a text, and how its sentence puts it."""

    label: str
    begin: int
    end: int
    stated: bool
    denied: bool
    open: bool


def mentions(text: str, names: Mapping[str, str]) -> list[Mention]:
    """Find all mentions of labels; the longest name first, as "not spam" contains "spam"."""
    found: list[Mention] = []
    low = text.casefold()
    if len(low) != len(text):
        text = low
    strict = any(name in EVERYDAY for name in names)
    pairs = [name.partition(" ") for name in names]
    graded = {label for degree, _, label in pairs if _DEGREE.fullmatch(f"{degree} ")}
    taken = bytearray(len(low))
    for name in sorted(names, key=len, reverse=True):
        for match in _found(name, low):
            begin, end = match.span()
            if any(taken[begin:end]):
                continue
            taken[begin:end] = b"\1" * (end - begin)
            mention = _mention(text, names[name], begin, end, strict=strict)
            if name in graded and _DEGREE.search(text[max(0, begin - 20) : begin]):
                mention = replace(mention, open=True)
            if name not in EVERYDAY or mention.stated:
                found.append(mention)
    return sorted(found, key=lambda mention: mention.begin)


def _found(name: str, low: str) -> Iterator[re.Match[str]]:
    # There may be 1,000 names, most of them not in the text: looking is cheaper than compiling.
    return re.finditer(bounded(name), low) if name and name in low else iter(())


def ends_number(after: str) -> bool:
    """Say whether a number ends here: "4" in "4.5", "4/10" or "4%" is another number.

    >>> ends_number(". The rest"), ends_number(".5 points")
    (True, False)
    """
    return re.match(r"[.,]\d|\s*[/%]|-\d|\+", after) is None


def is_heading(after: str) -> bool:
    """Say whether a label may be the name of the one or two words behind it.

    >>> is_heading(": unlikely"), is_heading(": the writer says so")
    (True, False)
    """
    heading = _AS_HEADING.match(after)
    if heading is None:
        return False
    words = re.findall(r"\w+", _CLAUSE.split(after[heading.end() :])[0].casefold())
    sure = "confidence" in words and "low" not in words
    return len(words) in (1, 2) and not sure and not any(word.isdecimal() for word in words)


def bounded(name: str) -> str:
    """Give the pattern of a name that is not a part of another word or number."""
    if name.isdecimal():
        return rf"(?<![\w/])(?<!\d[.,-])(?<![-+<>≤≥~]){re.escape(name)}(?!\w|[.,]\d|\s*[/%]|-\d|\+)"
    return rf"(?<!\w){re.escape(name)}(?!\w)"


def _mention(text: str, label: str, begin: int, end: int, *, strict: bool) -> Mention:
    """Look at the clause around a mention; if `strict`, only one that ends with it states it."""
    all_before, all_after = text[max(0, begin - _AROUND) : begin], text[end : end + _AROUND]
    after = _CLAUSE.split(all_after)[0]
    lead, rest = _WHOLE.split(all_before)[-1], _WHOLE.split(all_after)[0]
    # What is denied in front of "but" is not what stands behind it.
    near = _BUT.split(_CLAUSE.split(all_before)[-1])[-1]
    sentence = lead + text[begin:end] + rest
    # Who knows what stands at the beginning of a sentence that is longer than what is looked at?
    endless = begin > _AROUND and _WHOLE.search(all_before) is None
    asked = all_after.lstrip("\"')”’ ").startswith(("?", "？"))
    return Mention(
        label,
        begin,
        end,
        stated=leads(lead)
        and _REASON.match(rest) is not None
        and not (strict and re.match(r"\W*\w", after))
        and (label.isdecimal() or not re.match(r"\s*(?:stars?|points?)\b", rest))
        and not VALUE.match(all_after)
        and not is_heading(all_after),
        denied=bool(_DENIAL.search(near) or _DENIED_AFTER.search(after)),
        open=asked
        or endless
        or OPEN.search(sentence) is not None
        or _NEGATED.search(lead) is not None
        or _FOR_EXAMPLE.search(all_before) is not None
        or TURNS.search(rest) is not None,
    )


def leads(before: str) -> bool:
    """Say whether a sentence that begins like this states the label that comes next.

    >>> leads("I would call this "), leads("So the text is clearly a "), leads("The ending is ")
    (True, True, False)
    """
    parts = _BUT.split(before)
    if len(parts) > 1 and not _DENIAL.search(parts[-2]):
        return False
    return _LEADS.fullmatch(parts[-1]) is not None


def reasons(after: str) -> bool:
    """Say whether what stands behind a label ends its sentence or gives a reason.

    >>> reasons(", because it is short."), reasons(" until it broke."), reasons(", I guess")
    (True, False, False)
    """
    return _REASON.match(_WHOLE.split(after)[0]) is not None


def replaces(text: str, asserted: list[Mention], denied: list[Mention]) -> bool:
    """Say whether what is asserted clearly stands against what is denied."""
    if {mention.label for mention in asserted} & {mention.label for mention in denied}:
        return False
    first, last = asserted[0], denied[-1]
    if first.begin < denied[0].begin:
        return True  # "positive, not negative"
    return last.end < first.begin and bool(_INSTEAD.search(text[: first.begin]))
