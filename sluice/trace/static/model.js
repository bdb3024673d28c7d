// The trace of the page, or two to compare, with what the page looks up often.
//
// Bars and marks are both events, numbered from 0: the bars, then the marks, each of this trace and then of the other
// one. A mark starts and ends at its time. Times are microseconds since the start of their trace.

export const TONES = ["ok", "neutral", "state", "throttled", "fault", "lost", "error"]; // the last are drawn on top
const MOST_ROWS = 6; // of bars in a lane that overlap in time

export async function decode(base64) {
  const text = atob(base64.trim());
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

export class Trace {
  constructor(data) {
    this.data = data;
    this.sides = data.compare ? [data, data.compare.other] : [data];
    this.end = Math.max(...this.sides.map((side) => side.end), 1);
    const bars = this.sides.map((side) => side.bars.start.length);
    const marks = this.sides.map((side) => side.marks.at.length);
    this.firstMark = sum(bars);
    this.firstBars = [0, bars[0]];
    this.firstMarks = [this.firstMark, this.firstMark + marks[0]];
    this.firstLanes = [0, data.lanes.length];
    this.count = this.firstMark + sum(marks);
    this.lane = new Int32Array(this.count);
    this.start = new Float64Array(this.count);
    this.until = new Float64Array(this.count);
    this.tone = new Uint8Array(this.count);
    this.row = new Uint8Array(this.count);
    this.parked = new Float64Array(this.count);
    this.throttle = new Float64Array(this.count); // after the end of a bar
    this.lanes = this.sides.flatMap((side, number) => side.lanes.map((lane) => ({
      ...lane, side: number, relates: lane.relates.map((each) => each + this.firstLanes[number]), events: [], rows: 1,
    })));
    this.lanes.forEach((lane, number) => { lane.number = number; });
    this.sides.forEach((side, number) => this.read(side, number));
    for (const lane of this.lanes) this.arrange(lane);
    this.links();
    this.findings = data.findings.map((finding) => ({ ...finding, events: [...finding.bars, ...finding.marks.map((mark) => mark + this.firstMark)] }));
    if (data.compare) this.findings.unshift(...this.firstDifference(data.compare.differences));
    this.groups = groupsOf(this.lanes, this.matches());
    this.errors = this.byTime((event) => TONES[this.tone[event]] === "error" || TONES[this.tone[event]] === "lost");
  }

  read(side, number) {
    const { bars, marks, outcomes } = side;
    const firstLane = this.firstLanes[number];
    const tones = outcomes.map((outcome) => TONES.indexOf(outcome.tone));
    for (let at = 0, event = this.firstBars[number]; at < bars.start.length; at++, event++) {
      this.lane[event] = firstLane + bars.lane[at];
      this.start[event] = bars.start[at];
      this.until[event] = bars.end[at];
      this.tone[event] = tones[bars.outcome[at]];
      this.parked[event] = bars.parked[at];
      this.throttle[event] = bars.throttle[at];
      this.lanes[this.lane[event]].events.push(event);
    }
    for (let at = 0, event = this.firstMarks[number]; at < marks.at.length; at++, event++) {
      this.lane[event] = firstLane + marks.lane[at];
      this.start[event] = this.until[event] = marks.at[at];
      this.tone[event] = TONES.indexOf(marks.tone[at]);
      this.lanes[this.lane[event]].events.push(event);
    }
  }

  /** Sorts the events of a lane by time, and gives bars that overlap rows of their own. */
  arrange(lane) {
    lane.events.sort((one, other) => this.start[one] - this.start[other] || one - other);
    const free = []; // when each row is free
    for (const event of lane.events) {
      if (this.isMark(event)) continue;
      let row = free.findIndex((until) => until <= this.start[event]);
      if (row < 0) row = Math.min(free.length, MOST_ROWS - 1);
      free[row] = Math.max(free[row] ?? 0, this.until[event]);
      this.row[event] = row;
    }
    const hasMarks = lane.events.some((event) => this.isMark(event));
    lane.rows = Math.max(free.length, 1);
    // A mark of a connection lies on the request that it concerns. Others would hide the text of a state.
    if (lane.group !== "client" && free.length && hasMarks) {
      for (const event of lane.events) if (this.isMark(event)) this.row[event] = lane.rows;
      lane.rows += 1;
    }
  }

  links() {
    this.next = new Map();
    this.before = new Map();
    this.pair = new Map();
    this.sides.forEach((side, number) => {
      for (const [one, other] of side.links) {
        this.next.set(one + this.firstBars[number], other + this.firstBars[number]);
        this.before.set(other + this.firstBars[number], one + this.firstBars[number]);
      }
    });
    for (const [here, there] of this.data.compare?.pairs ?? []) {
      this.pair.set(here, there + this.firstBars[1]);
      this.pair.set(there + this.firstBars[1], here);
    }
    this.differences = new Map();
    for (const difference of this.data.compare?.differences ?? []) {
      if (difference.bar >= 0) this.differences.set(difference.bar, difference.text);
      if (difference.other_bar >= 0) this.differences.set(difference.other_bar + this.firstBars[1], difference.text);
    }
  }

  firstDifference([first]) {
    if (!first) return [{ severity: "info", title: "No difference", text: "Both traces have the same requests and outcomes.", at: 0, events: [] }];
    const events = [first.bar, first.other_bar < 0 ? -1 : first.other_bar + this.firstBars[1]].filter((event) => event >= 0);
    return [{ severity: "error", title: "First difference", text: first.text, at: first.at, events }];
  }

  /** Returns the lane of the other trace for a lane: with most of the same requests, or else of the same id and owner. */
  matches() {
    const matches = new Map();
    if (this.sides.length < 2) return matches;
    const shared = new Map(); // lane -> lane of the other -> number of requests
    for (const [here, there] of this.data.compare.pairs) {
      const counts = shared.get(this.lane[here]) ?? new Map();
      const other = this.lane[there + this.firstBars[1]];
      shared.set(this.lane[here], counts.set(other, (counts.get(other) ?? 0) + 1));
    }
    const taken = new Set();
    const take = (lane, other) => {
      if (other === undefined || taken.has(other) || matches.has(lane)) return;
      taken.add(other);
      matches.set(lane, other);
    };
    const most = [...shared].flatMap(([lane, counts]) => [...counts].map(([other, count]) => [count, lane, other]));
    for (const [, lane, other] of most.sort((one, other) => other[0] - one[0])) take(lane, other);
    const others = this.lanes.slice(this.firstLanes[1]);
    for (const lane of this.lanes.slice(0, this.firstLanes[1])) {
      take(lane.number, others.find((other) => other.id === lane.id && other.owner === lane.owner)?.number);
    }
    return matches;
  }

  isMark(event) {
    return event >= this.firstMark;
  }

  sideOf(event) {
    return this.lanes[this.lane[event]].side;
  }

  /** Returns the events of a lane by time. */
  eventsOf(lane) {
    return this.lanes[lane]?.events ?? []; // a trace may have no lanes
  }

  /** Returns the columns of an event, and its place in them. */
  columns(event) {
    const number = this.sideOf(event);
    const side = this.sides[number];
    return this.isMark(event)
      ? { side, columns: side.marks, at: event - this.firstMarks[number] }
      : { side, columns: side.bars, at: event - this.firstBars[number] };
  }

  text(event) {
    const { side, columns, at } = this.columns(event);
    return side.texts[columns.text[at]];
  }

  seq(event) {
    const { columns, at } = this.columns(event);
    return columns.seq[at];
  }

  glyph(event) {
    const { columns, at } = this.columns(event);
    return columns.glyph[at];
  }

  outcome(event) {
    if (this.isMark(event)) return "";
    const { side, columns, at } = this.columns(event);
    return side.outcomes[columns.outcome[at]].name;
  }

  details(event) {
    if (this.isMark(event)) return [];
    const { side, columns, at } = this.columns(event);
    return columns.detail[at] < 0 ? [] : side.details[columns.detail[at]];
  }

  /** Returns all attempts of the request of a bar, in order. */
  attempts(event) {
    let first = event;
    while (this.before.has(first)) first = this.before.get(first);
    const all = [first];
    while (this.next.has(all.at(-1))) all.push(this.next.get(all.at(-1)));
    return all;
  }

  /** Returns the event of a lane that is nearest to a time; -1 without events. */
  nearest(lane, at, isShown) {
    let best = -1;
    let distance = Infinity;
    for (const event of this.eventsOf(lane)) {
      if (!isShown(event)) continue;
      const away = Math.max(this.start[event] - at, at - this.until[event], 0);
      if (away < distance) [best, distance] = [event, away];
    }
    return best;
  }

  /** Returns the event of a finding that is nearest to its time, or -1: the one that begins there, of several. */
  eventOf({ at, events }) {
    const away = (event) => Math.max(this.start[event] - at, at - this.until[event], 0);
    return events.reduce((best, event) => {
      if (best < 0) return event;
      const nearer = away(event) - away(best) || Math.abs(this.start[event] - at) - Math.abs(this.start[best] - at);
      return nearer < 0 ? event : best;
    }, -1);
  }

  /** Returns the time from the first request to the failure, or to the last request. */
  active() {
    const failed = this.data.failure?.at ?? -1;
    const last = failed < 0 ? Infinity : failed;
    let [from, until] = [Infinity, failed];
    for (let bar = 0; bar < this.firstMark; bar++) {
      if (this.lanes[this.lane[bar]].group !== "client" || this.start[bar] > last) continue;
      from = Math.min(from, this.start[bar]);
      until = Math.max(until, this.start[bar]);
    }
    return from < until ? [from, until] : [0, this.end];
  }

  /** Returns a lane and those that concern the same thing, in either direction. */
  relatedTo(number) {
    const lanes = this.lanes.filter((lane) => lane.relates.includes(number)).map((lane) => lane.number);
    return new Set([number, ...this.lanes[number].relates, ...lanes]);
  }

  byTime(isWanted) {
    const found = [];
    for (let event = 0; event < this.count; event++) if (isWanted(event)) found.push(event);
    return found.sort((one, other) => this.start[one] - this.start[other] || one - other);
  }
}

/** Groups lanes by kind; a lane of the other trace follows the lane that it matches. */
function groupsOf(lanes, matches) {
  const groups = new Map();
  const matched = new Set(matches.values());
  const add = (lane) => {
    if (!groups.has(lane.group)) groups.set(lane.group, { id: lane.group, lanes: [] });
    groups.get(lane.group).lanes.push(lane);
  };
  for (const lane of lanes) {
    if (matched.has(lane.number)) continue;
    add(lane);
    if (matches.has(lane.number)) add(lanes[matches.get(lane.number)]);
  }
  return [...groups.values()];
}

function sum(numbers) {
  return numbers.reduce((one, other) => one + other, 0);
}
