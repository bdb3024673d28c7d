"""Errors of changes to a cluster."""

from sluice.errors import SluiceError


class ClusterError(SluiceError):
    """A change that the cluster's current state does not allow."""


class UnknownResourceError(ClusterError):
    """A broker, topic or partition that does not exist."""
