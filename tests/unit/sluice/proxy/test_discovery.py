"""The options of a proxy, and what is wrong with them."""

import pytest

from sluice.config.broker_config import Config
from sluice.errors import ConfigError
from sluice.proxy.discovery import parse_ports
from sluice.proxy.properties import check_properties


def test_ports_are_listed_by_node_id() -> None:
    assert parse_ports("1=19092, 1001=29092") == {1: 19092, 1001: 29092}
    assert parse_ports("") == {}


@pytest.mark.parametrize("text", ["1", "1=", "=1", "1=0", "1=65536", "a=1", "1=2=3", "-1=5"])
def test_wrong_ports_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=f"--ports: expected ID=PORT, separated by commas, got {text}"):
        parse_ports(text)


@pytest.mark.parametrize("name", ["log.dirs=/tmp/x", "sluice.brokers=3", "num.partitions=3", "node.id=3"])
def test_properties_of_the_brokers_behind_are_refused(name: str) -> None:
    config = Config.load(None, [name, "sluice.journal.events=10", "quota.producer.default=1000"])
    with pytest.raises(ConfigError, match=f"{name.partition('=')[0]}: no effect in a proxy"):
        check_properties(config)


def test_properties_of_the_proxy_are_accepted() -> None:
    check_properties(
        Config.load(
            None, ["listeners=PLAINTEXT://127.0.0.1:0", "sluice.journal.events=10", "quota.producer.default=1000"]
        )
    )
