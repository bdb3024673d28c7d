"""Errors of invalid records, with the Kafka error code for the producer.

As in Kafka, Java's own exceptions (an index out of bounds, a broken compressed stream) are UNKNOWN_SERVER_ERROR here:
clients are tested against that.
"""

from sluice.protocol.errors import ErrorCode

RecordErrors = list[tuple[int, str]]


class InvalidRecords(Exception):  # noqa: N818  named like Kafka's error
    """Rejected records: Kafka's error `code` and `message`.

    `record_errors` has (batch index, message) of each invalid record, as in the Produce response from version 8 on.
    """

    def __init__(self, code: ErrorCode, message: str, record_errors: RecordErrors | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.record_errors = record_errors or []

    def __str__(self) -> str:
        return f"{self.message} (error {self.code.value})"


class SectionTooLarge(InvalidRecords):
    """A records section that decompresses to more than the caller's limit."""

    def __init__(self, limit_bytes: int) -> None:
        message = f"Invalid record size: the records decompress to more than {limit_bytes} bytes"
        super().__init__(ErrorCode.INVALID_RECORD, message)


class TooManyRecords(InvalidRecords):
    def __init__(self, limit: int) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, f"the batch has more than {limit} records")


class BrokenStream(InvalidRecords):
    """Corrupt compressed data.

    `read_bytes` is the size of Kafka's reads; the read that fails returns none of its bytes.
    """

    def __init__(self, what: str, read_bytes: int) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, f"Failed to decompress record stream: {what}")
        self.read_bytes = read_bytes
