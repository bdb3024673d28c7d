"""Requests that alter configs."""

from collections.abc import Mapping

from sluice.protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

_SET, _DELETE = 0, 1


def config_changes(resource_type: int, name: str, values: Mapping[str, str | None]) -> IncrementalAlterConfigsRequest:
    """Return a request that sets configs of a resource, and deletes those whose value is None."""
    changes = [
        AlterableConfig(name=key, config_operation=_DELETE if value is None else _SET, value=value)
        for key, value in values.items()
    ]
    resource = AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=changes)
    return IncrementalAlterConfigsRequest(resources=[resource])
