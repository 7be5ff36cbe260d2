"""An assessment as JUnit XML, which GitLab, Jenkins and others show: a test for each tolerance."""

from xml.sax.saxutils import escape, quoteattr

from masa.records import Assessment
from masa.report import sentences
from masa.report.judged import Judged, judged
from masa.report.words import plain


def assessment(found: Assessment) -> str:
    """Write an assessment: it fails where its exit code is 1, and has an error where it is 3."""
    name = "masa" if found.made is None else f"masa.{plain(found.made.name)}"
    tests = [_verdict(found, name), *(_of_tolerance(one, found, name) for one in judged(found))]
    failures = sum("<failure" in test for test in tests)
    errors = sum("<error" in test for test in tests)
    skipped = sum("<skipped" in test for test in tests)
    body = "\n".join(tests)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites><testsuite name={_quoted(name)} tests="{len(tests)}" '
        f'failures="{failures}" errors="{errors}" skipped="{skipped}">\n'
        f"{body}\n</testsuite></testsuites>\n"
    )


def _verdict(found: Assessment, name: str) -> str:
    if found.exit_code == 0:
        return _test(name, "verdict", f"<system-out>{_text(found)}</system-out>")
    kind, what = ("failure", "changed") if found.exit_code == 1 else ("error", "not decided")
    return _test(name, "verdict", _outcome(kind, what, found))


def _of_tolerance(one: Judged, found: Assessment, name: str) -> str:
    """Write the test of one tolerance: it fails outside of it, and is skipped if nobody knows."""
    low, high = f"{one.interval.low:+.4g}", f"{one.interval.high:+.4g}"
    message = f"{one.name} changed by {low} to {high}, and {one.limit:g} does not matter"
    inside = ""
    if one.outside > 0.0 and found.exit_code == 1:
        inside = f'<failure type="changed" message={_quoted(message)}/>'
    elif one.outside <= 0.0 < one.furthest:
        inside = f"<skipped message={_quoted('not decided: ' + message)}/>"
    return _test(name, f"{one.kind}: {one.name}", inside)


def _outcome(kind: str, what: str, found: Assessment) -> str:
    message = _quoted(sentences.headline(found))
    return f"<{kind} type={_quoted(what)} message={message}>{_text(found)}</{kind}>"


def _test(suite: str, name: str, inside: str) -> str:
    return f"<testcase classname={_quoted(suite)} name={_quoted(name)}>{inside}</testcase>"


def _text(found: Assessment) -> str:
    lines = [sentences.headline(found), sentences.any_change(found)]
    lines += [sentences.surprise(found, one) for one in found.surprises(5)]
    lines += [sentences.ending(found), *sentences.not_seen(found)]
    return escape("\n".join(plain(line) for line in lines))


def _quoted(text: str) -> str:
    return quoteattr(plain(text))
