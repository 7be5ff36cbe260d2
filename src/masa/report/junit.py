"""An assessment as JUnit XML, which GitLab, Jenkins and others show: a test for each tolerance."""

from xml.sax.saxutils import escape, quoteattr

from masa.records import Assessment
from masa.report import sentences
from masa.report.judged import judged
from masa.report.words import plain


def assessment(found: Assessment) -> str:
    """Write an assessment: it fails where its exit code is 1, and has an error where it is 3."""
    name = "masa" if found.made is None else f"masa.{plain(found.made.name)}"
    tests = [_verdict(found, name)]
    for one in judged(found):
        inside = "" if one.outside <= 0.0 else _outcome("failure", "changed", found)
        tests.append(_test(name, f"{one.kind}: {one.name}", inside if found.exit_code == 1 else ""))
    failures = sum("<failure" in test for test in tests)
    errors = sum("<error" in test for test in tests)
    body = "\n".join(tests)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites><testsuite name={_quoted(name)} tests="{len(tests)}" '
        f'failures="{failures}" errors="{errors}" skipped="0">\n'
        f"{body}\n</testsuite></testsuites>\n"
    )


def _verdict(found: Assessment, name: str) -> str:
    if found.exit_code == 0:
        return _test(name, "verdict", f"<system-out>{_text(found)}</system-out>")
    kind, what = ("failure", "changed") if found.exit_code == 1 else ("error", "not decided")
    return _test(name, "verdict", _outcome(kind, what, found))


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
