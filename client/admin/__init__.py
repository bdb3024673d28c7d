"""The admin client: `AdminClient` and the types of its calls."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .admin import EARLIEST as EARLIEST
    from .admin import EARLIEST_LOCAL as EARLIEST_LOCAL
    from .admin import LATEST as LATEST
    from .admin import LATEST_TIERED as LATEST_TIERED
    from .admin import MAX_TIMESTAMP as MAX_TIMESTAMP
    from .admin import Acl as Acl
    from .admin import AclFilter as AclFilter
    from .admin import AdminClient as AdminClient
    from .admin import Alteration as Alteration
    from .admin import AlterOperation as AlterOperation
    from .admin import ConfigResource as ConfigResource
    from .admin import NewTopic as NewTopic
    from .admin import OffsetAndMetadata as OffsetAndMetadata
    from .admin import Outcomes as Outcomes
    from .admin import ResourceType as ResourceType
    from .admin import ScramMechanism as ScramMechanism
    from .admin import TopicPartition as TopicPartition
    from .admin import quota_entity as quota_entity

__all__ = [
    "EARLIEST",
    "EARLIEST_LOCAL",
    "LATEST",
    "LATEST_TIERED",
    "MAX_TIMESTAMP",
    "Acl",
    "AclFilter",
    "AdminClient",
    "AlterOperation",
    "Alteration",
    "ConfigResource",
    "NewTopic",
    "OffsetAndMetadata",
    "Outcomes",
    "ResourceType",
    "ScramMechanism",
    "TopicPartition",
    "quota_entity",
]


def __getattr__(name: str) -> object:
    """Import a public name on first use: the other modules of this package are often used without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import admin

    return getattr(admin, name)
