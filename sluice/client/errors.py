"""Exceptions with the names and the class hierarchy of org.apache.kafka.common.errors.

Classes that the client catches by name are defined below; each other one is created on first use, also as an attribute:
`errors.TopicExistsException`.
"""

from sluice.errors import SluiceError
from sluice.protocol.errors import ErrorCode


class KafkaException(SluiceError):
    """The base class of all errors of a client."""


class ApiException(KafkaException):
    """An error with a Kafka error code, `code`."""

    code: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR


class RetriableException(ApiException):
    """A transient error: a retry may succeed."""


class RefreshRetriableException(RetriableException):
    """A transient error that requires a new lookup of the leader or coordinator."""


class InvalidMetadataException(RefreshRetriableException):
    """An error caused by outdated metadata."""


class TimeoutException(RetriableException):
    """An operation that did not complete in time."""

    code = ErrorCode.REQUEST_TIMED_OUT


class DisconnectException(RetriableException):
    """A connection that closed before the response arrived."""

    code = ErrorCode.NETWORK_EXCEPTION


class ApplicationRecoverableException(ApiException):
    """An error that a new producer or consumer can recover from."""


class InvalidOffsetException(ApiException):
    """An offset that is invalid or out of range."""


class OutOfOrderSequenceException(ApiException):
    """A gap in the sequence numbers of an idempotent producer."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class InvalidConfigurationException(ApiException):
    """An error that requires a change of configuration or permissions."""

    code = ErrorCode.INVALID_CONFIG


class UnsupportedVersionException(InvalidConfigurationException):
    """An API, a version or a feature that the broker does not support."""

    code = ErrorCode.UNSUPPORTED_VERSION


class AuthenticationException(InvalidConfigurationException):
    """An authentication failure."""


class SaslAuthenticationException(AuthenticationException):
    """A failure of SASL authentication."""

    code = ErrorCode.SASL_AUTHENTICATION_FAILED


class SslAuthenticationException(AuthenticationException):
    """A failed TLS handshake, such as an untrusted certificate of either side."""


class AuthorizationException(InvalidConfigurationException):
    """An operation that the principal is not authorized to perform."""


E_ = ErrorCode  # so that a row of the tables is one line
_CLASSES: dict[ErrorCode, type[ApiException]] = {
    cls.code: cls
    for cls in (
        InvalidConfigurationException,
        OutOfOrderSequenceException,
        SaslAuthenticationException,
        TimeoutException,
        UnsupportedVersionException,
    )
}

# fmt: off
_PARENTS: dict[type[ApiException], tuple[ErrorCode, ...]] = {
    ApplicationRecoverableException: (
        E_.FENCED_INSTANCE_ID, E_.ILLEGAL_GENERATION, E_.INVALID_PRODUCER_EPOCH, E_.INVALID_PRODUCER_ID_MAPPING,
        E_.PRODUCER_FENCED, E_.UNKNOWN_MEMBER_ID,
    ),
    AuthenticationException: (E_.ILLEGAL_SASL_STATE, E_.UNSUPPORTED_SASL_MECHANISM),
    AuthorizationException: (
        E_.CLUSTER_AUTHORIZATION_FAILED, E_.DELEGATION_TOKEN_AUTHORIZATION_FAILED, E_.GROUP_AUTHORIZATION_FAILED,
        E_.TOPIC_AUTHORIZATION_FAILED, E_.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    InvalidConfigurationException: (
        E_.INVALID_REPLICATION_FACTOR, E_.INVALID_REQUIRED_ACKS, E_.INVALID_TOPIC_EXCEPTION, E_.RECORD_LIST_TOO_LARGE,
        E_.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ),
    InvalidMetadataException: (
        E_.ELECTION_NOT_NEEDED, E_.ELIGIBLE_LEADERS_NOT_AVAILABLE, E_.FENCED_LEADER_EPOCH, E_.INCONSISTENT_TOPIC_ID,
        E_.KAFKA_STORAGE_ERROR, E_.LEADER_NOT_AVAILABLE, E_.LISTENER_NOT_FOUND, E_.NETWORK_EXCEPTION,
        E_.NOT_LEADER_OR_FOLLOWER, E_.PREFERRED_LEADER_NOT_AVAILABLE, E_.REPLICA_NOT_AVAILABLE, E_.UNKNOWN_TOPIC_ID,
        E_.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    InvalidOffsetException: (E_.OFFSET_OUT_OF_RANGE,),
    OutOfOrderSequenceException: (E_.UNKNOWN_PRODUCER_ID,),
    RefreshRetriableException: (E_.COORDINATOR_NOT_AVAILABLE, E_.NOT_COORDINATOR),
}

# The other names are the code's name in camel case and "Exception".
_NAMES = {
    E_.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
    E_.CORRUPT_MESSAGE: "CorruptRecordException",
    E_.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "DelegationTokenAuthorizationException",
    E_.DELEGATION_TOKEN_AUTH_DISABLED: "DelegationTokenDisabledException",
    E_.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "UnsupportedByAuthenticationException",
    E_.DUPLICATE_SEQUENCE_NUMBER: "DuplicateSequenceException",
    E_.FETCH_SESSION_TOPIC_ID_ERROR: "FetchSessionTopicIdException",
    E_.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
    E_.INVALID_CONFIG: "InvalidConfigurationException",
    E_.INVALID_PRODUCER_ID_MAPPING: "InvalidPidMappingException",
    E_.INVALID_REGULAR_EXPRESSION: "InvalidRegularExpression",
    E_.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
    E_.INVALID_TRANSACTION_TIMEOUT: "InvalidTxnTimeoutException",
    E_.KAFKA_STORAGE_ERROR: "KafkaStorageException",
    E_.MESSAGE_TOO_LARGE: "RecordTooLargeException",
    E_.NETWORK_EXCEPTION: "NetworkException",
    E_.NON_EMPTY_GROUP: "GroupNotEmptyException",
    E_.OFFSET_METADATA_TOO_LARGE: "OffsetMetadataTooLarge",
    E_.OUT_OF_ORDER_SEQUENCE_NUMBER: "OutOfOrderSequenceException",
    E_.PRINCIPAL_DESERIALIZATION_FAILURE: "PrincipalDeserializationException",
    E_.RECORD_LIST_TOO_LARGE: "RecordBatchTooLargeException",
    E_.REQUEST_TIMED_OUT: "TimeoutException",
    E_.SASL_AUTHENTICATION_FAILED: "SaslAuthenticationException",
    E_.STALE_CONTROLLER_EPOCH: "ControllerMovedException",
    E_.TOPIC_ALREADY_EXISTS: "TopicExistsException",
    E_.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
    E_.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "TransactionalIdAuthorizationException",
    E_.UNKNOWN_SERVER_ERROR: "UnknownServerException",
}
# fmt: on

_PARENT_OF = {code: parent for parent, codes in _PARENTS.items() for code in codes}

INVALID_METADATA: frozenset[int] = frozenset(_PARENTS[InvalidMetadataException])


def is_retriable(code: int) -> bool:
    """Return whether a retry may succeed; False for unknown codes."""
    return _known(code).retriable


def exception_of(code: int, message: str | None = None) -> ApiException:
    """Return the exception for a non-zero error code, with the broker's message or Kafka's default."""
    known = _known(code)
    return _class_of(known)(message or known.message)


def error_name(code: int) -> str:
    known = _known(code)
    return known.name if known == code else str(code)


def raise_for(code: int, message: str | None = None) -> None:
    """Raise the exception for an error code; do nothing for 0."""
    if code:
        raise exception_of(code, message)


def __getattr__(name: str) -> type[ApiException]:
    for code in ErrorCode:
        if code and _name_of(code) == name:
            return _class_of(code)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _known(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _name_of(code: ErrorCode) -> str:
    return _NAMES.get(code) or "".join(word.capitalize() for word in code.name.split("_")) + "Exception"


def _class_of(code: ErrorCode) -> type[ApiException]:
    cls = _CLASSES.get(code)
    if cls is None:
        parent = _PARENT_OF.get(code) or (RetriableException if code.retriable else ApiException)
        body = {"code": code, "__doc__": code.message, "__module__": __name__}
        cls = _CLASSES[code] = type(_name_of(code), (parent,), body)
    return cls
