"""Public vectors: what Apache Kafka itself does, one JSON object a line, checked by `python -m tests.vectors PATH...`.

Each module beside this one exposes `KINDS`, a mapping from a kind (the beginning of a file's name, such as
`protocol-`, `records_invalid-`, `quotas`) to a check. A check takes one vector and returns what is wrong with it, in
words, the first differing field first; an empty list is a pass, and None says that nobody built what this vector is
about (a skip). An exception that leaves a check is a failure of its vector. The longest kind that begins the file's
name wins.
"""

from collections.abc import Callable, Mapping

Vector = dict[str, object]
Check = Callable[[Vector], list[str] | None]
Kinds = Mapping[str, Check]
