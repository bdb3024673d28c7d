"""Client metrics subscriptions (KIP-714, ClientMetricsConfigs)."""

from collections.abc import Mapping

from sluice.config.property_table import Property
from sluice.config.setting import DYNAMIC_CLIENT_METRICS_CONFIG
from sluice.config.value_types import integer, listing, split_list
from sluice.protocol.errors import ErrorCode
from sluice.text.regex import InvalidRegexError, Regex, compile_regex

from .resource import ApiError
from .stored_configs import StoredConfigs

METRICS, INTERVAL_MS, MATCH = "metrics", "interval.ms", "match"
DEFAULT_INTERVAL_MS = 300_000
_LEAST_MS, _MOST_MS = 100, 3_600_000
SELECTORS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
_ROWS = (
    Property(METRICS, listing(), "", "KIP-714", "Name prefixes of the metrics that clients push; * is all."),
    Property(INTERVAL_MS, integer(), str(DEFAULT_INTERVAL_MS), "KIP-714", "Push interval of clients, ms."),
    Property(MATCH, listing(), "", "KIP-714", "Clients, as SELECTOR=REGULAR EXPRESSION; all of them must match."),
)


class ClientMetricsConfigs(StoredConfigs):
    """See `ConfigStore`. Each change increments `version`, which makes clients request their subscription again."""

    rows = {row.name: row for row in _ROWS}  # noqa: RUF012  (a constant table; the base class declares a Mapping)
    source = DYNAMIC_CLIENT_METRICS_CONFIG
    no_name = "Client metrics subscription name must not be empty"
    unknown = (ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: ")

    def __init__(self) -> None:
        super().__init__()
        self.version = 0

    def configure(self, name: str, own: Mapping[str, str]) -> None:
        super().configure(name, own)
        self.version += 1

    def validate_name(self, name: str) -> ApiError | None:
        return None if name else ApiError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")

    def validate_values(self, own: Mapping[str, str]) -> ApiError | None:
        for key in (METRICS, MATCH):
            if "" in split_list(own.get(key, "")):
                return ApiError(ErrorCode.INVALID_CONFIG, f"Configuration '{key}' values must not be empty.")
        interval_ms = int(own.get(INTERVAL_MS, DEFAULT_INTERVAL_MS))
        if not _LEAST_MS <= interval_ms <= _MOST_MS:
            message = (
                f"Invalid value {interval_ms} for {INTERVAL_MS}, "
                f"interval must be between {_LEAST_MS} and {_MOST_MS} (1 hour)"
            )
            return ApiError(ErrorCode.INVALID_REQUEST, message)
        for pattern in split_list(own.get(MATCH, "")):
            if parse_pattern(pattern) is None:
                return ApiError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")
        return None


def parse_pattern(pattern: str) -> tuple[str, Regex] | None:
    """Return selector and compiled expression, or None if invalid; the syntax is RE2's, where Kafka's is Java's."""
    selector, _, expression = pattern.partition("=")
    if selector.strip() not in SELECTORS or not expression or "=" in expression:
        return None
    try:
        return selector.strip(), compile_regex(expression.strip())
    except InvalidRegexError:
        return None
