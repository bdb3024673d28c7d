"""Authentication counts of one listener, as in Kafka's socket-server-metrics."""


class AuthenticationCounts:
    def __init__(self) -> None:
        self.successful = 0
        self.successful_no_reauth = 0  # of these, by clients without support for re-authentication (KIP-368)
        self.failed = 0
        self.successful_again = 0
        self.failed_again = 0
        self.expired_connections_killed = 0
