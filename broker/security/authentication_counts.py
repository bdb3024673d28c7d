"""Counts of the authentications of one listener, as Kafka's socket-server-metrics have them."""


class AuthenticationCounts:
    """The authentications of one listener, by outcome."""

    def __init__(self) -> None:
        self.successful = 0
        self.successful_no_reauth = 0  # of these, by clients that cannot re-authenticate (KIP-368)
        self.failed = 0
        self.successful_again = 0
        self.failed_again = 0
        self.expired_connections_killed = 0
