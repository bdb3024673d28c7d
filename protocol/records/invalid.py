"""Why records were refused: the Kafka error a producer gets for it.

Kafka's broker answers what its classes throw. Exceptions that are Kafka's own have a code; Java's (an index out of
bounds, a broken compressed stream) come out as UNKNOWN_SERVER_ERROR, and so they do here: clients are tested with that.
"""

from sluice.protocol.errors import ErrorCode

RecordErrors = list[tuple[int, str]]


class InvalidRecords(Exception):  # noqa: N818  the name of Kafka's answer, which a handler turns it into
    """Records that cannot be taken: Kafka's error `code`, its `message`, and what is wrong with which record.

    `record_errors` has the index of each bad record in its batch and why, as in the Produce response from version 8 on.
    """

    def __init__(self, code: ErrorCode, message: str, record_errors: RecordErrors | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.record_errors = record_errors or []

    def __str__(self) -> str:
        return f"{self.message} (error {self.code.value})"


class SectionTooLarge(InvalidRecords):
    """A records section that decompresses to more than the caller allowed."""

    def __init__(self, limit_bytes: int) -> None:
        message = f"Invalid record size: the records decompress to more than {limit_bytes} bytes"
        super().__init__(ErrorCode.INVALID_RECORD, message)


class BrokenStream(InvalidRecords):
    """Compressed data that cannot be read on.

    `read_bytes` is how much Kafka reads at a time: the read that comes upon the error gives nothing of what is before.
    """

    def __init__(self, what: str, read_bytes: int) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, f"Failed to decompress record stream: {what}")
        self.read_bytes = read_bytes
