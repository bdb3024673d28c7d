// Where the rows of the timeline are: the heads of groups, and below each, unless it is collapsed, its lanes.

const HEAD = 26;
const BAR = 16;
const GAP = 3;
const LABEL = 15; // above the bars, on a narrow screen
const NAMES = {
  test: "Test", rule: "Fault rules", client: "Clients", group: "Groups", transaction: "Transactions",
  partition: "Partitions", broker: "Brokers",
};

export class Rows {
  constructor(trace) {
    this.trace = trace;
    this.collapsed = new Set();
    this.isNarrow = false;
    this.arrange(null);
  }

  /** Arranges the lanes, or only these of a search. */
  arrange(only) {
    this.all = [];
    this.ofLane = new Map();
    let y = 0;
    const add = (row) => {
      this.all.push({ ...row, y });
      y += row.height;
    };
    for (const group of this.trace.groups) {
      const lanes = only ? group.lanes.filter((lane) => only.has(lane.number)) : group.lanes;
      if (!lanes.length) continue;
      add({ group, lanes, lane: null, name: NAMES[group.id] ?? group.id, height: HEAD, top: 0 });
      for (const lane of lanes) this.ofLane.set(lane.number, this.all.length - 1); // unless it has a row
      if (this.collapsed.has(group.id)) continue;
      for (const lane of lanes) {
        this.ofLane.set(lane.number, this.all.length);
        const top = this.isNarrow ? LABEL : GAP;
        add({ group, lanes: null, lane, name: nameOf(lane), height: top + lane.rows * (BAR + 1) + GAP, top });
      }
    }
    this.height = y;
  }

  /** Returns the row of a lane, or the head of its group if that is collapsed; undefined if a search hides it. */
  row(lane) {
    return this.all[this.ofLane.get(lane)];
  }

  between(top, bottom) {
    return this.all.filter((row) => row.y + row.height > top && row.y < bottom);
  }

  at(y) {
    return this.all.find((row) => y >= row.y && y < row.y + row.height);
  }

  toggle(group) {
    if (!this.collapsed.delete(group)) this.collapsed.add(group);
  }

  /** Returns the number of the next lane below (or above) this one. */
  neighbour(lane, step) {
    const lanes = this.all.filter((row) => row.lane).map((row) => row.lane.number);
    const place = lanes.indexOf(lane);
    return lanes[Math.min(Math.max(place + step, 0), lanes.length - 1)] ?? lane;
  }
}

/** A connection's label lacks its client, a partition's has its topic. */
export function nameOf({ owner, label }) {
  return label.includes(owner) ? label : `${owner} ${label}`;
}

/** The place of a bar in its row, from the row's top. */
export function barTop(row, index) {
  return row.top + index * (BAR + 1);
}

export const BAR_HEIGHT = BAR;
