"""A real Prometheus with the deployed configuration scrapes a broker, and every panel of the dashboard has data."""

import json
import re
import subprocess
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
import yaml

from sluice.metrics import METRICS
from tests.support.broker_process import BrokerProcess, overrides, running_broker, running_proxy
from tools.dashboard.dashboard import DATASOURCE, dashboard_text
from tools.dashboard.panels import PANELS, PROXY_PANELS, Panel
from tools.dashboard.prometheus import DEPLOY, MISSING, is_there, running_prometheus
from tools.dashboard.traffic import PROPERTIES, TOKEN, traffic

GRAFANA = DEPLOY / "grafana"
RULES = [rule for group in yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
QUERIES = [query for panel in (*PANELS, *PROXY_PANELS) for query, _ in panel.queries]
_SHOWN_WITHIN_S = 60
# Suffixes of a metric family's name in queries.
_SUFFIXES = ("", "_bucket", "_sum", "_count")


def test_panels_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in json.loads(dashboard_text())["panels"]]
    covered = [(x, place["y"]) for place in places for x in range(place["x"], place["x"] + place["w"])]
    assert len(covered) == len(set(covered))
    assert max(x for x, _ in covered) < 24


@pytest.mark.parametrize("query", [*QUERIES, *(rule["expr"] for rule in RULES)])
def test_queries_use_existing_metrics_and_labels(query: str) -> None:
    families = {f"{name}{suffix}": metric for name, metric in METRICS.items() for suffix in _SUFFIXES}
    names = re.findall(r"\b(?:sluice|kafka)_\w+", query)
    assert names or "up{" in query
    assert [name for name in names if name not in families] == []
    labels = {label for name in names for label in families[name].labels} | {"le", "instance", "broker"}
    grouped = [label.strip() for group in re.findall(r"by \(([^)]*)\)", query) for label in group.split(",")]
    assert [label for label in grouped if label not in labels] == []


def test_grafana_has_the_datasource_of_the_dashboard() -> None:
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())["datasources"]
    assert (source["type"], source["uid"]) == (DATASOURCE["type"], DATASOURCE["uid"])
    assert source["url"] == "http://prometheus:9090"


PROMTOOL_COMMANDS = {
    "alert rules are valid": ["check", "rules", "alerts.yml"],
    "alert rules fire only when expected": ["test", "rules", "alerts.test.yml"],
    "configuration is valid": ["check", "config", "--syntax-only", "prometheus.yml"],
}


@pytest.mark.skipif(not is_there("promtool"), reason=MISSING)
@pytest.mark.parametrize("words", PROMTOOL_COMMANDS.values(), ids=PROMTOOL_COMMANDS)
def test_promtool_accepts_the_files(words: list[str]) -> None:
    result = subprocess.run(["promtool", *words], cwd=DEPLOY, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_alert_has_a_test() -> None:
    tried = yaml.safe_load((DEPLOY / "alerts.test.yml").read_text())["tests"]
    names = {one["alertname"] for test in tried for one in test["alert_rule_test"] if one["exp_alerts"]}
    assert names == {rule["alert"] for rule in RULES}


@pytest.mark.skipif(not is_there(), reason=MISSING)
def test_every_panel_has_data_of_a_broker_with_clients(tmp_path: Path) -> None:
    with running_broker(tmp_path / "log", *overrides(*PROPERTIES)) as broker:
        _check_panels(broker, PANELS, tmp_path)
        assert broker.stop()[0] == 0


@pytest.mark.skipif(not is_there(), reason=MISSING)
def test_every_panel_has_data_of_a_proxy_with_clients(tmp_path: Path) -> None:
    with (
        running_broker(tmp_path / "upstream") as upstream,
        running_proxy(tmp_path / "log", upstream.bootstrap, *overrides(*PROPERTIES)) as proxy,
    ):
        _check_panels(proxy, (*PANELS, *PROXY_PANELS), tmp_path)
        assert proxy.stop()[0] == 0


def _check_panels(broker: BrokerProcess, panels: Sequence[Panel], folder: Path) -> None:
    with traffic(broker), running_prometheus(folder / "prometheus", broker.admin, TOKEN) as prometheus:
        end = monotonic() + _SHOWN_WITHIN_S
        missing = [query for panel in panels for query, _ in panel.queries]
        missing += ['ALERTS{alertname="FaultRulesHit"}']
        while missing and monotonic() < end:
            sleep(0.5)
            missing = [query for query in missing if not _shows(prometheus.now(query.replace("$range", "5s")))]
        problems = _problems(prometheus.query("targets"))
    assert missing == []
    assert problems == []


def _shows(series: dict[str, float]) -> bool:
    return any(isfinite(value) for value in series.values())


def _problems(targets: Any) -> list[str]:
    return [target["lastError"] for target in targets["activeTargets"] if target["health"] != "up"]
