"""The demo reads the metrics of its broker."""

import pytest

from sluice import SyncBroker
from sluice.cli.demo.metrics import read_metrics
from sluice.errors import SluiceError


def test_metrics_of_a_running_and_of_a_stopped_broker() -> None:
    with SyncBroker(config={"quota.producer.default": "1M"}, admin_port=0) as broker:
        admin = str(broker.admin)
        assert read_metrics(admin).throttle_s("Produce", "bronze") == 0.0
    with pytest.raises(SluiceError, match="cannot read the broker's metrics"):
        read_metrics(admin)
