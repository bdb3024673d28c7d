"""Exceptions shared by all packages. Expected failures are Kafka error codes in responses, not exceptions."""


class SluiceError(Exception):
    """An error for the user: one line with the problem and, where possible, the accepted values."""


class ConfigError(SluiceError):
    """An invalid option, property or environment variable. Exit code 2."""


class ArgumentError(ConfigError, TypeError):
    """An argument of a wrong type or out of range."""


class RemoteProtocolError(SluiceError):
    """A frame or message from the peer that cannot be decoded. Its connection is closed."""


class NotDurableError(Exception):
    """A change that could not be made, mostly because it could not be stored; its text describes the change."""
