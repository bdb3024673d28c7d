"""JUnit XML for CI: one test suite per client, group and topic with findings, one test case per rule.

A finding of at least the given severity is a failure, any other is in the output of a passing case. A rule without
enough evidence is skipped, with what to record.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from sluice.lint.findings import Finding, Result, Undecided
from sluice.lint.rule import Rule, Scope, Severity
from sluice.text.error_text import printable

from .remedies import remedies


def junit(result: Result, rules: Mapping[str, Rule[Any]], failing: Collection[Severity]) -> bytes:
    subjects = {(Scope.CLIENT, str(each.key)) for each in result.clients}
    both: list[Finding | Undecided] = [*result.undecided, *result.findings]
    subjects |= {(each.scope, each.subject) for each in both}
    found: dict[tuple[Scope, str], dict[str, Finding | Undecided]] = {key: {} for key in sorted(subjects)}
    for each in both:
        found[each.scope, each.subject][each.rule] = each
    suites = [
        _suite(key, [rule for rule in rules.values() if rule.scope is key[0]], of, failing) for key, of in found.items()
    ]
    root = Element("testsuites", name="sluice lint")
    for count in ("tests", "failures"):
        root.set(count, str(sum(int(suite.attrib[count]) for suite in suites)))
    root.extend(suites)
    indent(root)
    made: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return made + b"\n"


def _suite(
    key: tuple[Scope, str],
    rules: Sequence[Rule[Any]],
    found: Mapping[str, Finding | Undecided],
    failing: Collection[Severity],
) -> Element:
    scope, subject = key
    suite = Element("testsuite", name=printable(f"{scope} {subject}"))
    for rule in rules:
        # CI servers split class names at dots.
        case = SubElement(suite, "testcase", name=rule.id, classname=f"lint.{printable(subject).replace('.', '_')}")
        each = found.get(rule.id)
        if isinstance(each, Undecided):
            SubElement(case, "skipped", message=printable(each.record))
        elif isinstance(each, Finding):
            lines = [*(evidence.text for evidence in each.evidence), rule.why]
            lines += [f"{name}: {change}" for name, change in remedies(rule.remedy, each.clients)]
            text = "\n".join(map(printable, lines))
            if each.severity in failing:
                SubElement(case, "failure", message=printable(rule.title), type=each.severity).text = text
            else:
                SubElement(case, "system-out").text = f"{each.severity}: {printable(rule.title)}\n{text}"
    suite.set("tests", str(len(rules)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    return suite
