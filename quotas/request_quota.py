"""The quota of request time (KIP-124): how much of a thread a client's requests may take, in percent.

Follows Kafka's `ClientRequestQuotaManager`. What is counted are percent-seconds, so that their rate per second is the
percentage of one thread that the client uses; all of Kafka's threads together are (`num.io.threads` +
`num.network.threads`) * 100 %. The one thread of this broker is 100 %.
"""

from .entity import QuotaRules
from .manager import METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS, ClientQuotaManager, QuotaConfig
from .sensor import Rate

# A second of a thread is 100 percent-seconds. To the last bit as Kafka has it.
NANOS_TO_PERCENTAGE_PER_SECOND = 100.0 / 1_000_000_000


class ClientRequestQuotaManager(ClientQuotaManager):
    """The request quotas. A charge is a `percentage`; no client waits longer than one window for it.

    A client with a quota of 1 % whose first request takes 250 ms:

        250 ms of a thread in 10 s      2.5 %
        (2.5 - 1) / 1 * 10 s            15 s, cut to the one second of a window
    """

    __slots__ = ("_exempt",)

    def __init__(self, config: QuotaConfig, rules: QuotaRules) -> None:
        super().__init__("Request", config, rules)
        self._exempt = Rate(METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS)

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        return min(super().record(user, client_id, value, now_ms), self.config.window_ms)

    @staticmethod
    def percentage(nanos: int) -> float:
        """Thread time as quotas count it."""
        return nanos * NANOS_TO_PERCENTAGE_PER_SECOND

    def record_exempt(self, value: float, now_ms: int) -> None:
        """Notes what requests took that are not held to quotas: those of brokers, and produce with acks=0."""
        if self.quotas_enabled:
            self._exempt.record(value, now_ms)

    def exempt_request_time(self, now_ms: int) -> float:
        """What such requests took in the last 30 to 60 s, in percent of a thread."""
        return self._exempt.peek(now_ms)
