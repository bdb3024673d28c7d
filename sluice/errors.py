"""The exceptions of sluice. Expected failures of a broker are Kafka error codes in responses, not exceptions.

`SluiceError` is the base class of each exception that a public function raises, except the AssertionError of
`assert_*`. The classes for users are attributes of the package `sluice`, as `sluice.FaultError`.
"""


class SluiceError(Exception):
    """An error for the user: one line with the problem and, where possible, the accepted values."""


class ConfigError(SluiceError):
    """An invalid option, property or environment variable. Exit code 2."""


class ArgumentError(ConfigError, TypeError):
    """An argument of a wrong type or out of range."""


class FaultError(ConfigError):
    """A fault rule that cannot work. The message begins with the path: `faults[0].action.code: ...`."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class ScenarioError(ConfigError):
    """An invalid scenario. The one-line message begins with the path, or "" for the whole file."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path


class ClusterError(SluiceError):
    """A change that the cluster's current state does not allow."""


class UnknownResourceError(ClusterError):
    """A broker, topic or partition that does not exist."""


class ProxyError(ClusterError):
    """An operation that a proxy does not have, because it needs a broker of sluice."""


class ProxyFaultError(FaultError, ProxyError):
    """A fault rule that a proxy does not have, because it needs a broker of sluice."""


class NotRunningError(SluiceError):
    """A call on a broker that has not started, or has stopped."""


class BlockedError(SluiceError):
    """A call on a broker whose event loop does not run, for example as a callback blocks it."""


class WaitTimeoutError(SluiceError, TimeoutError):
    """A wait that did not end in time; the message lists what was observed meanwhile."""


class DeadlockError(SluiceError):
    """A run in virtual time in which all tasks wait, and no timer is pending."""


class RunawayError(SluiceError):
    """A run in virtual time that exceeded its limit of time or of event-loop iterations."""


class ExploreError(SluiceError):
    """A failure that an exploration has found, with the fewest failures of the cluster that cause it."""


class SubjectError(SluiceError):
    """A client that cannot be audited, because it is unknown or does not run."""


class RemoteProtocolError(SluiceError):
    """A frame or message from the peer that cannot be decoded. Its connection is closed."""


class NotDurableError(Exception):
    """A change that could not be made, mostly because it could not be stored; its text describes the change."""
