"""What a map means, in sentences."""

from .grid import BACKLOG, LOAD, OUTAGE, Map, Region, nearest

# 100 cells of ten pairs of settings and five fleets: `tools/campaign run fleet-models maps`.
MEASURED = "99 of 100"
_IN_VAIN = 0.9
_TEXTS: dict[Region, str] = {"recovers": "recovers", "late": "recovers late", "never": "does not recover"}


def explain(found: Map) -> list[str]:
    return [own_point(found), border(found), error(found)]


def own_point(found: Map) -> str:
    """Return what becomes of the fleet itself, and why."""
    if found.point is None or found.region is None:
        return (
            "The models have different values of a setting of the map, so that it does not have a point for the fleet."
        )
    at = f"With {value_text(found.x.setting, found.point[0])} and {value_text(found.y.setting, found.point[1])}"
    if found.recovery_s is not None:
        late = " (late)" if found.region == "late" else ""
        return f"{at}, {found.fleet} completes operations as before {found.recovery_s} s after the outage{late}."
    if dict(zip((found.x.setting, found.y.setting), found.point, strict=True)).get(LOAD, 0) > 1:
        why = "its load is above the capacity of the broker, also without an outage"
    elif found.load >= 1 and found.in_vain >= _IN_VAIN:
        why = (
            f"its requests need {found.load:.1f} times the capacity of the broker, and {found.in_vain * 100:.0f} % of"
            " that is spent on requests that have timed out. The queue grows, and retries keep it full: a stable state"
        )
    elif found.load >= 1:
        why = f"its requests need {found.load:.1f} times the capacity of the broker, so that the queue grows"
    else:
        why = (
            f"its requests need {found.load * 100:.0f} % of the capacity of the broker, so that the queue becomes"
            f" shorter, but not in {found.observed_s} s"
        )
    return f"{at}, {found.fleet} does not recover: {why}."


def border(found: Map) -> str:
    """Return where the region of the fleet ends, from its point along both axes."""
    if found.point is None or found.region is None:
        return "Compare the fleets of one model."
    column, row = nearest(found.x.values, found.point[0]), nearest(found.y.values, found.point[1])
    along_x = [line[column] for line in found.regions]
    texts = [
        *_changes(found.regions[row], column, found.x.setting, found.x.values),
        *_changes(along_x, row, found.y.setting, found.y.values),
    ]
    if not texts:
        return f"In the whole row and column of this point, the fleet {_TEXTS[found.region]}."
    return f"With the other setting as it is, {'; '.join(texts)}."


def error(found: Map) -> str:
    agreeing = sum(each.agrees for each in found.checked)
    checked = f" Here it agrees in {agreeing} of {len(found.checked)}." if found.checked else ""
    return (
        f"The fluid model agrees with the simulation within one cell in {MEASURED} cells.{checked} The simulation's own"
        " error is in docs/fleets.md: for 300 real clients it predicted the recovery to the second."
    )


def value_text(setting: str, value: float) -> str:
    names = {LOAD: f"a load of {value:.3g}", OUTAGE: f"an outage of {value:g} s", BACKLOG: f"a backlog of {value:g}"}
    return names.get(setting, f"{setting}={value:g}")


def _changes(line: list[Region], start: int, setting: str, values: list[float]) -> list[str]:
    found = []
    for step in (-1, 1):
        at = start
        while 0 <= at + step < len(line) and line[at + step] == line[start]:
            at += step
        if 0 <= at + step < len(line):
            word = "more" if step > 0 else "less"
            found.append(f"it {_TEXTS[line[at + step]]} with {value_text(setting, values[at + step])} and {word}")
    return found
