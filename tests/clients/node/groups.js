// Members of groups.
"use strict";

const { TIMEOUT_MS, kafka, sleep } = require("./client");

// Members notice a rebalance early. The library completes each fetch before it leaves, so fetches are short.
const MEMBER = { heartbeatInterval: 100, maxWaitTimeInMs: 100 };

// Read `count` records as a member of a group, then run `rest` before leaving.
async function consume(bootstrap, given, options, count, each, rest = async () => {}) {
  const consumer = kafka(bootstrap).consumer({ ...MEMBER, ...options });
  await consumer.connect();
  try {
    await consumer.subscribe({ topics: [given.topic], fromBeginning: true });
    let seen = 0;
    await new Promise((resolve, reject) => {
      setTimeout(() => reject(new Error(`${seen} of ${count} records`)), TIMEOUT_MS).unref();
      consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
      const eachMessage = async (one) => {
        if (seen < count) {
          seen += 1;
          each(one);
        }
        if (seen === count) resolve();
      };
      consumer.run({ autoCommit: false, eachMessage }).catch(reject);
    });
    await rest(consumer);
  } finally {
    await consumer.disconnect();
  }
}

class Member {
  constructor(bootstrap, given) {
    this.assigned = [];
    this.topic = given.topic;
    this.consumer = kafka(bootstrap).consumer({ groupId: given.group, ...MEMBER });
    this.consumer.on(this.consumer.events.GROUP_JOIN, ({ payload }) => {
      this.assigned = payload.memberAssignment[given.topic] ?? [];
    });
    this.consumer.on(this.consumer.events.REBALANCING, () => {
      this.assigned = [];
    });
  }

  async start() {
    await this.consumer.connect();
    await this.consumer.subscribe({ topics: [this.topic], fromBeginning: true });
    await this.consumer.run({ autoCommit: false, eachMessage: async () => {} });
    return this;
  }

  async close() {
    await this.consumer.disconnect();
  }
}

// Wait until every partition is assigned once and every member has some, for 300 ms; return the count of each member.
async function settle(partitions, ...members) {
  const deadline = Date.now() + TIMEOUT_MS;
  let heldSince = null;
  while (heldSince === null || Date.now() < heldSince + 300) {
    if (Date.now() > deadline) throw new Error("partitions are not all assigned");
    await sleep(20);
    const all = members.flatMap((member) => member.assigned);
    const sharedOut = all.length === partitions && new Set(all).size === partitions;
    const allAssigned = members.every((member) => member.assigned.length > 0);
    heldSince = sharedOut && allAssigned ? (heldSince ?? Date.now()) : null;
  }
  return members.map((member) => member.assigned.length).sort();
}

async function rebalance(bootstrap, given, report) {
  const first = await new Member(bootstrap, given).start();
  try {
    report({ members: 1, partitions: await settle(given.partitions, first) });
    const second = await new Member(bootstrap, given).start();
    report({ members: 2, partitions: await settle(given.partitions, first, second) });
    await second.close();
    report({ members: 1, partitions: await settle(given.partitions, first) });
  } finally {
    await first.close();
  }
}

async function resume(bootstrap, given, report) {
  for (const name of ["first", "resumed"]) {
    const found = [];
    const commit = (consumer) => {
      const offset = String(Number(found.at(-1).offset) + 1);
      return consumer.commitOffsets([{ topic: given.topic, partition: 0, offset }]);
    };
    await consume(bootstrap, given, { groupId: given.group }, 5, ({ message }) => found.push(message), commit);
    report({ [name]: found.map(({ value }) => value.toString()) });
  }
}

module.exports = { consume, rebalance, resume };
