"""Client metrics (KIP-714): the subscriptions of clients, and the metrics that they push.

Follows Kafka's ClientMetricsManager and ClientMetricsInstance; requires `sluice.telemetry`.

Different on purpose: pushed metrics are decompressed, counted and discarded.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping

from msgspec import Struct

from sluice.broker.requests.channel import Channel
from sluice.config.value_types import Values
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records import crc
from sluice.protocol.records.compression import ZSTD, decompress
from sluice.protocol.records.invalid import InvalidRecords, SectionTooLarge
from sluice.protocol.types import ZERO_UUID
from sluice.protocol.uuids import random_uuid

from .client_metrics import DEFAULT_INTERVAL_MS, INTERVAL_MS, MATCH, METRICS, ClientMetricsConfigs, parse_pattern

ALL_METRICS = "*"
_RESERVED_IDS = (ZERO_UUID, bytes(15) + b"\1")  # Uuid.RESERVED
_MOST_INSTANCES = 16_384
_LEAST_EXPIRY_MS, _EXPIRY_INTERVALS = 60_000, 3
_NEVER_MS = 0
_MAGIC = 2
_LARGEST_UNPACKED_BYTES = 100 * 1024 * 1024
# After these errors a client may request a new subscription at once.
_NEW_SUBSCRIPTION_NEEDED = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


class Subscription:
    __slots__ = ("id", "interval_ms", "metrics")

    def __init__(self, client_instance_id: bytes, metrics: list[str], interval_ms: int) -> None:
        self.metrics = metrics
        self.interval_ms = interval_ms
        identity = f"{metrics}{interval_ms}".encode() + client_instance_id
        self.id = int.from_bytes(crc.crc32c(identity).to_bytes(4), signed=True)


class ClientInstance(Struct):
    subscription: Subscription
    version: int
    last_get_ms: int = _NEVER_MS
    last_push_ms: int = _NEVER_MS
    last_seen_ms: int = _NEVER_MS
    last_error: ErrorCode = ErrorCode.NONE
    terminating: bool = False

    def may_get(self, now_ms: int) -> bool:
        last_ms = max(self.last_get_ms, self.last_push_ms)
        if now_ms - last_ms >= self.subscription.interval_ms:
            self.last_get_ms = now_ms
            return True
        return self.last_error in _NEW_SUBSCRIPTION_NEEDED

    def may_push(self, now_ms: int) -> bool:
        """Count a push; return whether it is allowed now. The first may be early, because clients add jitter."""
        interval_is_over = now_ms - self.last_push_ms >= self.subscription.interval_ms
        if not interval_is_over and self.last_get_ms <= self.last_push_ms:
            return False
        self.last_push_ms = now_ms
        return True


class Telemetry:
    def __init__(self, configs: ClientMetricsConfigs, max_bytes: int, random_bytes: Callable[[int], bytes]) -> None:
        self.max_bytes = max_bytes
        self.pushes = 0
        self.pushed_bytes = 0
        self._configs = configs
        self._random_bytes = random_bytes
        self._instances: OrderedDict[bytes, ClientInstance] = OrderedDict()
        self._newest: dict[Channel, bytes] = {}  # the newest instance of each connection

    def new_instance_id(self) -> bytes:
        while (client_instance_id := random_uuid(self._random_bytes)) in self._instances:
            pass
        return client_instance_id

    def instance(
        self, client_instance_id: bytes, selectors: Mapping[str, str], channel: Channel, now_ms: int
    ) -> ClientInstance:
        version = self._configs.version
        instance = self._instances.get(client_instance_id)
        if instance is None or instance.version < version or _is_forgotten(instance, now_ms):
            instance = ClientInstance(self._subscription(client_instance_id, selectors), version)
            self._instances[client_instance_id] = instance
            self._newest[channel] = client_instance_id
            if len(self._instances) > _MOST_INSTANCES:
                self._instances.popitem(last=False)
        self._instances.move_to_end(client_instance_id)
        instance.last_seen_ms = now_ms
        return instance

    def disconnected(self, channel: Channel) -> None:
        client_instance_id = self._newest.pop(channel, None)
        if client_instance_id is not None and channel.ended_by_client:  # not if the broker closes it, as in Kafka
            self._instances.pop(client_instance_id, None)

    def get(self, instance: ClientInstance, now_ms: int) -> ErrorCode:
        if not instance.may_get(now_ms):
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        instance.last_error = ErrorCode.NONE
        return ErrorCode.NONE

    def check_push(
        self,
        instance: ClientInstance,
        subscription_id: int,
        metrics: bytes,
        compression: int,
        now_ms: int,
        *,
        terminating: bool,
    ) -> ErrorCode:
        if instance.terminating:
            error = ErrorCode.INVALID_REQUEST
        elif not instance.may_push(now_ms) and not terminating:
            error = ErrorCode.THROTTLING_QUOTA_EXCEEDED
        elif subscription_id != instance.subscription.id:
            error = ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        elif not 0 <= compression <= ZSTD:
            error = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        else:
            error = ErrorCode.TELEMETRY_TOO_LARGE if len(metrics) > self.max_bytes else ErrorCode.NONE
        instance.terminating, instance.last_error = terminating, error
        return error

    def pushed(self, instance: ClientInstance, size: int | None) -> ErrorCode:
        """Count metrics of `size` decompressed bytes; None if they are invalid."""
        if size is None:
            instance.last_error = ErrorCode.INVALID_RECORD
        else:
            self.pushes += 1
            self.pushed_bytes += size
        return instance.last_error

    def _subscription(self, client_instance_id: bytes, selectors: Mapping[str, str]) -> Subscription:
        all_configs = map(self._configs.in_force, self._configs.names())
        matching = [configs for configs in all_configs if _matches(configs, selectors)]
        metrics = sorted({metric for configs in matching for metric in configs.names(METRICS)})
        if ALL_METRICS in metrics:
            metrics = [ALL_METRICS]
        # As in Kafka, a longer interval than the default has no effect.
        interval_ms = min([DEFAULT_INTERVAL_MS, *(configs.integer(INTERVAL_MS) for configs in matching)])
        return Subscription(client_instance_id, metrics, interval_ms)


def unpacked_size(metrics: bytes, compression: int, limit_bytes: int = _LARGEST_UNPACKED_BYTES) -> int | None:
    """Return the size of decompressed metrics, or None if they are invalid.

    Raises SectionTooLarge above a `limit_bytes` that is lower than the default.
    """
    try:
        unpacked, failure = decompress(compression, metrics, _MAGIC, limit_bytes)
    except SectionTooLarge:
        if limit_bytes < _LARGEST_UNPACKED_BYTES:
            raise
        return None
    except InvalidRecords:
        return None
    return None if failure is not None else len(unpacked)


def is_reserved(client_instance_id: bytes) -> bool:
    return client_instance_id in _RESERVED_IDS


def _is_forgotten(instance: ClientInstance, now_ms: int) -> bool:
    expiry_ms = max(_LEAST_EXPIRY_MS, _EXPIRY_INTERVALS * instance.subscription.interval_ms)
    return now_ms - instance.last_seen_ms > expiry_ms


def _matches(configs: Values, selectors: Mapping[str, str]) -> bool:
    patterns = (parse_pattern(pattern) for pattern in configs.names(MATCH))
    return all(pattern is not None and pattern[1].fullmatch(selectors[pattern[0]]) for pattern in patterns)
