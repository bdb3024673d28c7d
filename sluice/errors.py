"""The exceptions that cross packages. Expected failures are Kafka error codes in responses, not exceptions."""


class SluiceError(Exception):
    """Something a person should read: one line that names what was wrong and what is accepted."""


class ConfigError(SluiceError):
    """A flag, property or environment variable that cannot be taken. Exit code 2."""


class RemoteProtocolError(SluiceError):
    """The peer broke the protocol: a frame or message that cannot be read. Its connection is closed for this reason."""


class NotDurableError(Exception):
    """What was to be written down for good, named by its text, could not be: the change has not happened."""
