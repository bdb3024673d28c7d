"""Vectors: the behaviour of Apache Kafka as JSON lines (README.md), checked by `python -m tests.vectors PATH...`.

Each module of this folder has `KINDS`, a mapping from a kind (the beginning of a file's name, such as `protocol-`,
`records_invalid-`, `quotas`) to a check. A check accepts one vector and returns a list of differences, the first
differing field first. An empty list is a pass; None skips a vector of a feature that sluice does not have. An exception
is a failure of its vector. The longest matching kind wins.
"""

from collections.abc import Callable, Mapping

Vector = dict[str, object]
Check = Callable[[Vector], list[str] | None]
Kinds = Mapping[str, Check]
