"""Without the extra `spark` what needs its libraries is left out."""

from importlib.util import find_spec

_NEED_NUMPY = (
    "charges",
    "journal_input",
    "kafka_configs",
    "plan",
    "planning",
    "recommendation",
    "request_log",
    "sources",
)
collect_ignore = [] if find_spec("numpy") else [f"test_{name}.py" for name in _NEED_NUMPY]
