"""Packed charges of clients, as rows to compare."""

from sluice.spark.charges.charges import ROW_BYTES, Client, Gathered

Row = tuple[int, int, int, int]  # nanoseconds, bytes, lane, throttle time


def rows_in(packed: bytes) -> list[Row]:
    count = len(packed) // ROW_BYTES
    at_ns, value, lane = (memoryview(packed[8 * count * n : 8 * count * (n + 1)]).cast("q") for n in range(3))
    throttle_ms = memoryview(packed[24 * count :]).cast("i")
    return list(zip(at_ns, value, lane, throttle_ms, strict=True))


def rows_of(gathered: Gathered) -> dict[Client, list[Row]]:
    """Return and remove all gathered charges."""
    charges, _ = gathered.take()
    return {client: rows_in(packed) for client, packed in charges.items()}
