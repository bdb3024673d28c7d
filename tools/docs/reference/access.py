"""The table of docs/acls.md: the permissions that each API requires."""

from pathlib import Path

from sluice.broker.security.acl.acl import Acl
from tests.support.access import TABLE, Need
from tools.docs.tables import put, table

PAGE = Path(__file__).parents[3] / "docs" / "acls.md"
_MARKS = ("<!-- permissions, generated from tests/support/access.py: begin -->", "<!-- permissions: end -->")


def page_with_table(text: str) -> str:
    """Return the page with the current table."""
    return put(_MARKS, _table(), text)


def _table() -> str:
    rows = []
    for access in TABLE:
        request = f"{access.api} {access.use}".strip()
        for need in access.needs:
            rows.append([request, " or ".join(map(_words, need.anyone)), _outcome(need)])
            request = ""
        if not access.needs:
            rows.append([request, "nothing", ""])
    return table(["request", "required permission", "error without it"], rows)


def _words(entry: Acl) -> str:
    operation, resource = (name.title().replace("_", "") for name in (entry.operation.name, entry.resource_type.name))
    return f"{operation} on any {resource}" if entry.resource_name == "some" else f"{operation} on {resource}"


def _outcome(need: Need) -> str:
    if need.code:
        return f"{need.code.name} ({need.code.value}) for {need.where}"
    return f"{need.where} is left out"
