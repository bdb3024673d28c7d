"""JUnit XML for a client's CI: one test suite per client, one test case per statement.

A deviation is a failure. Statements that are not observable or inconclusive are skipped with the reason. A client
without a usable run is an error.
"""

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from sluice.audit.judge.model.verdict import AuditResult, State, SubjectResult, Verdict
from sluice.text.error_text import printable

from . import words

_DECIDED = (State.PASS, State.DEVIATES)
_RUNS = "runs"


def junit(result: AuditResult) -> bytes:
    suites = [_suite(subject, result) for subject in result.subjects]
    root = Element("testsuites", name="sluice audit")
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.attrib[count]) for suite in suites)))
    root.set("time", _seconds(sum(subject.seconds for subject in result.subjects)))
    root.extend(suites)
    indent(root)
    made: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return made + b"\n"


def _suite(result: SubjectResult, audit: AuditResult) -> Element:
    styles = [words.style_of(verdict) for verdict in result.verdicts]
    failed_to_run = bool(result.problems) and not any(verdict.state in _DECIDED for verdict in result.verdicts)
    suite = Element("testsuite", name=printable(words.name_of(result.subject)))
    suite.set("tests", str(len(styles) + failed_to_run))
    suite.set("failures", str(sum(style in words.DEVIATIONS for style in styles)))
    suite.set("errors", str(int(failed_to_run)))
    suite.set("skipped", str(sum(style in (words.INCONCLUSIVE, words.UNSEEN) for style in styles)))
    suite.set("time", _seconds(result.seconds))
    suite.set("timestamp", printable(audit.began))
    properties = SubElement(suite, "properties")
    for name, value in _properties(result, audit):
        SubElement(properties, "property", name=printable(name), value=printable(value))
    for verdict in result.verdicts:
        suite.append(_case(verdict, result))
    problems = "\n".join(map(printable, result.problems))
    if failed_to_run:
        case = SubElement(suite, "testcase", name=_RUNS, classname=_class(result, _RUNS), time="0")
        message = f"no usable run: {printable(result.problems[0])}"
        SubElement(case, "error", message=message, type=_RUNS).text = problems
    elif problems:
        SubElement(suite, "system-err").text = problems
    return suite


def _properties(result: SubjectResult, audit: AuditResult) -> list[tuple[str, str]]:
    about = [
        ("sluice", audit.sluice),
        ("machine", audit.machine),
        ("time", "virtual" if result.virtual else "real"),
        ("role", result.subject.role),
    ]
    return about + words.setting_words(result.subject.settings)


def _case(verdict: Verdict, result: SubjectResult) -> Element:
    style = words.style_of(verdict)
    case = Element(
        "testcase", name=printable(verdict.statement), classname=_class(result, words.kip_of(verdict.statement))
    )
    case.set("time", "0")
    if style in words.DEVIATIONS:
        failure = SubElement(case, "failure", message=printable(f"{style.words}: {verdict.why}"), type=style.key)
        failure.text = "\n".join(_numbers(verdict))
    elif style in (words.INCONCLUSIVE, words.UNSEEN):
        SubElement(case, "skipped", message=printable(f"{style.words}: {verdict.why}"))
    return case


def _class(result: SubjectResult, what: str) -> str:
    """CI servers split class names at dots."""
    return f"audit.{printable(result.subject.name).replace('.', '_')}.{printable(what)}"


def _numbers(verdict: Verdict) -> list[str]:
    lines = [f"failure: {verdict.path}"] if verdict.path else []
    lines += [f"measured in: {words.place_words(verdict)}"] if verdict.probe else []
    for name, value in verdict.measured.items():
        expected = f", expected {verdict.expected[name]}" if name in verdict.expected else ""
        lines.append(f"{words.label(name)}: {words.measured(name, value)}{expected}")
    return [printable(line) for line in [*lines, f"runs: {verdict.runs}"]]


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}"
