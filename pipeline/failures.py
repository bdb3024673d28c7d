"""Errors of Spark as one line: Spark reports them in pages, the cause at their end."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from sluice.errors import SluiceError

# A line that begins with an exception, with or without its package, as in a stack trace; a line that ends with one.
_BEGINS = re.compile(r"^(?:Caused by: |: )?(?:[\w$]+\.)*([A-Z][\w$]*(?:Exception|Error)): (.+)$")
_ENDS = re.compile(r"^.* (?:[a-z][\w$]*\.)+([A-Z][\w$]*(?:Exception|Error)): (.+)$")


@contextmanager
def spark_errors_in_one_line() -> Iterator[None]:
    """Raise errors of Spark as SluiceError with the innermost cause."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise SluiceError(cause(str(error))) from None


def cause(text: str) -> str:
    """The last exception in Spark's words; their first line, where they name none."""
    if "Some data may have been lost" in text:  # the words of Spark's Kafka source; what follows them is long
        return "records are gone from the topic that were not read yet; --skip-lost goes on without them"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for pattern in (_BEGINS, _ENDS):
        found = [match for match in map(pattern.match, lines) if match]
        if found:
            return f"{found[-1][1]}: {found[-1][2]}"
    return lines[0]
