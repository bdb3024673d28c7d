"""The dashboard's panels, from which Grafana's file, a test and the picture in docs are made.

`$range` is the window of rates: `$__rate_interval` in Grafana.
"""

from typing import NamedTuple


class Panel(NamedTuple):
    """One panel. `legend` is Grafana's: labels in double braces."""

    title: str
    unit: str  # by Grafana's name
    queries: tuple[tuple[str, str], ...]  # query and legend
    description: str
    width: int = 12  # of 24
    stacked: bool = False


_BY_CLIENT = "{{user}} {{client_id}}"


def _share(of: float, durations: str = "sluice_request_duration_seconds") -> str:
    return f"histogram_quantile({of}, sum by (le, api) (rate({durations}_bucket[$range])))"


# fmt: off
# A table's rows are easier to read on one line.
PANELS = (
    Panel("Produced by client", "Bps",
          (("sum by (user, client_id) (kafka_server_produce_byte_rate)", _BY_CLIENT),),
          "Bytes per second over the quota's windows, as compared with the quota."),
    Panel("Fetched by client", "Bps",
          (("sum by (user, client_id) (kafka_server_fetch_byte_rate)", _BY_CLIENT),),
          "Bytes per second over the quota's windows, as compared with the quota."),
    Panel("Throttle time by client", "percentunit",
          (("sum by (resource, client_id) (rate(sluice_throttle_seconds_total[$range]))",
            "{{client_id}} {{resource}}"),),
          "Throttle seconds per second: 100 % is one connection that is always throttled."),
    Panel("Average throttle of a request", "ms",
          (("max by (client_id) (kafka_server_produce_throttle_time)", "{{client_id}} produce"),
           ("max by (client_id) (kafka_server_fetch_throttle_time)", "{{client_id}} fetch")),
          "Same as the client metrics produce-throttle-time-avg and fetch-throttle-time-avg."),
    Panel("Connections", "short",
          (("sum(sluice_connections)", "open"), ("sum(sluice_throttled_connections)", "throttled")),
          "Throttled connections are muted, or wait for a delayed response.", width=8),
    Panel("Purgatory", "short",
          (("sum by (kind) (sluice_purgatory_operations)", "{{kind}}"),),
          "Waiting operations: long polls, acks=all, joins, throttles, delays of fault rules.", width=8),
    Panel("Faults", "ops",
          (("sum by (rule) (rate(sluice_faults_total[$range]))", "{{rule}}"),),
          "Hits of fault rules per second.", width=8),
    Panel("Requests by API", "reqps",
          (("sum by (api) (rate(sluice_requests_total[$range]))", "{{api}}"),),
          "Requests per second.", stacked=True),
    Panel("Errors by API", "reqps",
          (('sum by (api, error) (rate(sluice_requests_total{error!="NONE"}[$range]))', "{{api}} {{error}}"),),
          "Responses with an error code, by the first code."),
    Panel("Half of the requests took less than", "s", ((_share(0.5), "{{api}}"),),
          "Time from reading a request to sending its response, including waits."),
    Panel("99 % of the requests took less than", "s", ((_share(0.99), "{{api}}"),),
          "Time from reading a request to sending its response, including waits."),
)
# Only a proxy has these metrics.
PROXY_PANELS = (
    Panel("Behind a proxy: 99 % took less than", "s",
          ((_share(0.99, "sluice_upstream_request_duration_seconds"), "{{api}}"),),
          "Time from forwarding a request to the response of the upstream broker.", width=8),
    Panel("Behind a proxy: traffic", "Bps",
          (("sum by (broker) (rate(sluice_upstream_sent_bytes_total[$range]))", "to broker {{broker}}"),
           ("sum by (broker) (rate(sluice_upstream_received_bytes_total[$range]))", "from broker {{broker}}")),
          "Bytes per second between a proxy and the upstream brokers.", width=8),
    Panel("Behind a proxy: connections and errors", "short",
          (("sum by (broker) (sluice_upstream_connections)", "connections to broker {{broker}}"),
           ("sum by (broker) (sluice_upstream_requests_in_flight)", "requests in flight to broker {{broker}}"),
           ("sum by (api, error) (rate(sluice_upstream_errors_total[$range]))", "{{api}} {{error}} per second"),
           ("sum by (broker) (rate(sluice_upstream_disconnects_total[$range]))",
            "disconnects by broker {{broker}} per second"),
           ("sum by (broker) (rate(sluice_upstream_connection_failures_total[$range]))",
            "failed connections to broker {{broker}} per second")),
          "Errors and disconnects are those of the upstream brokers. Clients reconnect after a disconnect.", width=8),
)
# fmt: on
