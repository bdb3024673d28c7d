"""The /metrics of the demo's broker."""

from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from sluice.errors import SluiceError

# The first scrape loads the HTTP stack: a quarter of a second, or ten on an overloaded machine.
_TIMEOUT_S = 60.0


class Scrape:
    def __init__(self, exposition: str) -> None:
        self._values: dict[tuple[str, str, str], float] = {}
        for family in text_string_to_metric_families(exposition):
            for sample in family.samples:
                if sample.name in ("kafka_server_quota_byte_rate", "sluice_throttle_seconds_total"):
                    labels = sample.labels
                    client_id = labels.get("client_id") or labels.get("clientId", "")
                    self._values[sample.name, labels["resource"], client_id] = sample.value

    def byte_rate(self, kind: str, client_id: str) -> float:
        return self._values.get(("kafka_server_quota_byte_rate", kind, client_id), 0.0)

    def throttle_s(self, kind: str, client_id: str) -> float:
        return self._values.get(("sluice_throttle_seconds_total", kind, client_id), 0.0)


def read_metrics(admin: str) -> Scrape:
    """Read the metrics at an admin URL. Raises SluiceError."""
    try:
        with urlopen(f"{admin}/metrics", timeout=_TIMEOUT_S) as answer:  # noqa: S310  (http, by the broker)
            return Scrape(answer.read().decode())
    except OSError as error:
        raise SluiceError(f"cannot read the broker's metrics: {error}") from None
