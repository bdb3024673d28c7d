"""The options of the login module in a client's `sasl.jaas.config` (KIP-85)."""

import re

_OPTION = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;"']+))""")


def jaas_options(text: str) -> dict[str, str]:
    """Return the options of the login module; raise a ValueError that does not contain them."""
    module, _, rest = text.strip().partition(" ")
    if not rest or not text.rstrip().endswith(";") or "=" in module:
        raise ValueError('expected MODULE required username="..." password="...";')
    return {
        name: re.sub(r"\\(.)", r"\1", next(value for value in values if value is not None))
        for name, *values in (match.groups() for match in _OPTION.finditer(rest))
    }
