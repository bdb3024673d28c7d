"""The registry: which APIs are served, in which versions, by which function. ApiVersions is made from it.

One module per API, the twin of the module of the same name in `sluice.protocol.apis`.
"""

from sluice.broker.context import Handler

from . import (
    api_versions,
    create_topics,
    delete_topics,
    describe_cluster,
    describe_configs,
    fetch,
    find_coordinator,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)

HANDLERS = {
    handler.api_key: handler
    for handler in (
        Handler(0, 0, 13, produce.handle),
        Handler(1, 0, 18, fetch.handle),
        Handler(2, 0, 11, list_offsets.handle),
        Handler(3, 0, 13, metadata.handle),
        Handler(10, 0, 6, find_coordinator.handle),
        Handler(18, 0, 5, api_versions.handle),
        Handler(19, 0, 7, create_topics.handle),
        Handler(20, 0, 6, delete_topics.handle),
        Handler(22, 0, 5, init_producer_id.handle),  # 6 is two-phase commit's, and unstable
        Handler(23, 0, 4, offset_for_leader_epoch.handle),
        Handler(32, 0, 4, describe_configs.handle),
        Handler(60, 0, 2, describe_cluster.handle),
    )
}
