"""The quota of request time (KIP-124), in percent of one thread.

Follows Kafka's `ClientRequestQuotaManager`. A charge is in percent-seconds, so its rate per second is the percentage of
one thread that the client uses. A Kafka broker has (`num.io.threads` + `num.network.threads`) * 100 % in total; this
broker has one thread, 100 %.
"""

from .entity import QuotaRules
from .manager import METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS, ClientQuotaManager, QuotaConfig
from .sensor import Rate

# One second of a thread is 100 percent-seconds; the same double as in Kafka.
NANOS_TO_PERCENTAGE_PER_SECOND = 100.0 / 1_000_000_000


class ClientRequestQuotaManager(ClientQuotaManager):
    """The request quotas of all clients. A charge is a `percentage`; throttle times are at most one window.

    A client with a quota of 1 % whose first request takes 250 ms:

        rate: 250 ms of a thread / 10 s = 2.5 %
        throttle time: (2.5 - 1) / 1 * 10 s = 15 s, capped at one window = 1 s
    """

    def __init__(self, config: QuotaConfig, rules: QuotaRules) -> None:
        super().__init__("Request", config, rules)
        self._exempt = Rate(METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS)

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        return min(super().record(user, client_id, value, now_ms), self.config.window_ms)

    @staticmethod
    def percentage(nanos: int) -> float:
        return nanos * NANOS_TO_PERCENTAGE_PER_SECOND

    def record_exempt(self, value: float, now_ms: int) -> None:
        """Record the thread time of exempt requests: those of brokers, and Produce with acks=0."""
        if self.quotas_enabled:
            self._exempt.record(value, now_ms)

    def exempt_request_time(self, now_ms: int) -> float:
        """Return the time of exempt requests over the last 30 to 60 s, in percent of a thread."""
        return self._exempt.peek(now_ms)
