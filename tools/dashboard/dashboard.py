"""Grafana's dashboard file, generated from the panels."""

import json

from tools.dashboard.panels import PANELS, PROXY_PANELS, Panel

DATASOURCE = {"type": "prometheus", "uid": "sluice-prometheus"}
_WIDTH, _HEIGHT = 24, 8


def dashboard() -> dict[str, object]:
    """Return the dashboard in Grafana's model."""
    panels: list[dict[str, object]] = []
    x = y = 0
    for number, panel in enumerate((*PANELS, *PROXY_PANELS), 1):
        if x + panel.width > _WIDTH:
            x, y = 0, y + _HEIGHT
        panels.append(_panel(number, panel, x, y))
        x += panel.width
    return {
        "uid": "sluice",
        "title": "sluice",
        "description": "Usage, throttling and errors of clients.",
        "tags": ["kafka", "sluice"],
        "schemaVersion": 41,
        "editable": True,
        "refresh": "5s",
        "time": {"from": "now-15m", "to": "now"},
        "panels": panels,
    }


def _panel(number: int, panel: Panel, x: int, y: int) -> dict[str, object]:
    stacking = {"mode": "normal", "group": "A"} if panel.stacked else {"mode": "none"}
    drawn = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "stacking": stacking}
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": drawn}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": DATASOURCE,
                "expr": query.replace("$range", "$__rate_interval"),
                "legendFormat": legend,
            }
            for index, (query, legend) in enumerate(panel.queries)
        ],
    }


def dashboard_text() -> str:
    """Return the text of the file."""
    return json.dumps(dashboard(), indent=2) + "\n"
