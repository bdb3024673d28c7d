"""The output of `sluice quota explain`: the admin port's explanation as text or JSON."""

from datetime import UTC, datetime

from sluice.cli.admin_client import AdminClient
from sluice.quotas import explain


def ask(admin: str, token: str | None, client_id: str, user: str) -> explain.Explanation:
    query = {"client_id": client_id, "user": user}
    return AdminClient(admin, token).get("/api/v1/quotas/explain", explain.Explanation, query)


def is_known(answer: explain.Explanation) -> bool:
    return any(
        broker.connections or any(quota.rate is not None for quota in broker.quotas) for broker in answer.brokers
    )


def in_words(answer: explain.Explanation) -> str:
    lines = [f"client {answer.client_id or '(no id)'} of user {answer.user}, quota.profile={answer.profile}"]
    if answer.mode == "shadow":
        lines.append("sluice.quota.mode=shadow: throttle times are recorded, but no client is throttled")
    for broker in answer.brokers:
        if len(answer.brokers) > 1:
            lines += ["", f"broker {broker.node_id}"]
        for quota in broker.quotas:
            lines += ["", *_quota(quota)]
        if broker.connections:
            lines += ["", "connections, with the throttle times of all requests in the last minute, throttled or not:"]
            lines += [f"  {_connection(connection)}" for connection in broker.connections]
    return "\n".join(lines)


def _quota(quota: explain.QuotaExplanation) -> list[str]:
    lines = [f"{quota.kind} quota ({quota.unit})", f"  why: {quota.why}"]
    lines += [
        f"  {_candidate(candidate)}: {explain.format_rate(candidate.bound, quota.kind)}"
        for candidate in quota.candidates
        if candidate.bound is not None
    ]
    limit = "none" if quota.bound is None else explain.format_rate(quota.bound, quota.kind)
    lines.append(f"  counted together: {_entity(quota) or 'all clients'}; limit: {limit}")
    if quota.rate is None:
        return [*lines, "  recorded: nothing yet"]
    lines.append(f"  now: {quota.arithmetic}")
    lines += [
        f"    {_sample(sample, quota.kind)}" for sample in quota.samples if sample.events
    ]  # an empty sample is unused
    delay = quota.last_delay
    if delay is None:
        return [*lines, "  last delay: none"]
    request = explain.format_amount(delay.value, quota.kind)
    lines.append(f"  last delay: at {_time(delay.at_ms)}, after a request of {request}: {delay.arithmetic}")
    if quota.throttle_time_avg_ms is not None:
        lines.append(f"  throttled requests of the last minute: {quota.throttle_time_avg_ms:,.0f} ms on average")
    return lines


def _candidate(candidate: explain.Candidate) -> str:
    return f"{'->' if candidate.holds else '  '} {_entity(candidate)}"


def _entity(seen: explain.Candidate | explain.QuotaExplanation) -> str:
    parts = (("user", seen.user), ("client-id", seen.client_id))
    return ", ".join(f"{type_} {name or '(empty)'}" for type_, name in parts if name is not None)


def _sample(sample: explain.SampleSeen, kind: str) -> str:
    stale = "" if sample.counts else ", stale"
    requests = "1 request" if sample.events == 1 else f"{sample.events:,} requests"
    return f"from {_time(sample.start_ms)}: {explain.format_amount(sample.value, kind)} in {requests}{stale}"


def _connection(connection: explain.ConnectionSeen) -> str:
    throttle_times = (
        ("produce", connection.produce_throttle_time_avg_ms, connection.produce_throttle_time_max_ms),
        ("fetch", connection.fetch_throttle_time_avg_ms, connection.fetch_throttle_time_max_ms),
    )
    kinds = [
        f"{kind} {average:,.0f} ms on average, {most:,.0f} ms at most"
        for kind, average, most in throttle_times
        if average is not None and most is not None
    ]
    return f"{connection.peer}: {'; '.join(kinds) or 'none'}{', throttled now' if connection.waits else ''}"


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
