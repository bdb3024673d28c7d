"""How brokers find each other, and whether they reach each other: calls in one process stand for requests here."""

from .broker import Broker
from .topic import Partition


def leader_known_to(broker: Broker, partition: Partition) -> Broker | None:
    """The broker that leads a partition, as far as this one has heard; None: nobody that is alive."""
    known = broker.known(partition)
    return None if known is None else broker.known_leader(known)


def reaches(broker: Broker, other: Broker) -> bool:
    """Whether an answer would come from the other one: neither is stopped or cut off."""
    controller = broker.cluster.controller_in_use
    if other is broker or controller is None:
        return True
    return controller.is_running(broker.node_id) and controller.is_running(other.node_id)
