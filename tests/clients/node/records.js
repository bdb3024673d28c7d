// Producing, reading, transactions.
"use strict";

const { CompressionTypes, Partitioners } = require("kafkajs");
const { bytes, code, kafka, text, until, using } = require("./client");
const { consume } = require("./groups");

const ACKS = { 0: 0, 1: 1, all: -1 };
// The library makes one batch of each send, in time quadratic in the batch size.
const BATCH = 1000;
const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy };

function producer(bootstrap, options = {}) {
  return kafka(bootstrap).producer({ createPartitioner: Partitioners.DefaultPartitioner, ...options });
}

// A repeated header name has a list of values.
function headersOf(row) {
  const headers = {};
  for (const [name, value] of row.headers) {
    headers[name] = name in headers ? [headers[name], bytes(value)].flat() : bytes(value);
  }
  return headers;
}

// Assign the rows to the partitions in turn.
function messages(rows, partitions) {
  return rows.map((row, number) => ({
    key: bytes(row.key),
    value: bytes(row.value),
    headers: headersOf(row),
    timestamp: String(row.timestamp),
    partition: number % partitions,
  }));
}

async function produce(bootstrap, given, report) {
  const options = given.idempotent ? { idempotent: true, maxInFlightRequests: 1 } : {};
  const all = messages(given.rows, given.partitions);
  await using(producer(bootstrap, options), async (open) => {
    for (let start = 0; start < all.length; start += BATCH) {
      await open.send({
        topic: given.topic,
        messages: all.slice(start, start + BATCH),
        acks: ACKS[given.acks],
        compression: CODECS[given.compression],
      });
    }
  });
  report({ sent: given.rows.length });
}

// The library supports only consumers in groups, so this one uses its own group.
async function read(bootstrap, given, report) {
  const options = { groupId: `${given.group}-read-${given.isolation}`, readUncommitted: given.isolation === "read_uncommitted" };
  const rows = [];
  await consume(bootstrap, given, options, given.count, ({ message }) => {
    const headers = Object.entries(message.headers).flatMap(([name, value]) => [value].flat().map((one) => [name, text(one)]));
    rows.push({ key: text(message.key), value: text(message.value), headers, timestamp: Number(message.timestamp) });
  });
  report({ rows });
}

async function oversize(bootstrap, given, report) {
  const message = { value: Buffer.alloc(given.size) };
  await using(producer(bootstrap, { retry: { retries: 0 } }), async (open) =>
    report({ error: await code(() => open.send({ topic: given.topic, messages: [message] })) }),
  );
}

function transactional(bootstrap, given) {
  return producer(bootstrap, { transactionalId: given.transactional_id, idempotent: true, maxInFlightRequests: 1 });
}

async function transactions(bootstrap, given, report) {
  await using(transactional(bootstrap, given), async (open) => {
    for (const round of given.rounds) {
      const transaction = await open.transaction();
      await transaction.send({ topic: given.topic, messages: messages(round.rows, 1) });
      await transaction[round.end]();
      report({ end: round.end });
    }
  });
}

async function fence(bootstrap, given, report) {
  await using(transactional(bootstrap, given), async (first) => {
    const transaction = await first.transaction();
    await transaction.send({ topic: given.topic, messages: [{ value: "first" }] });
    await using(transactional(bootstrap, given), async (second) => {
      const later = await second.transaction();
      const failure = await code(() => transaction.commit());
      await later.abort();
      report({ fenced: [47, 90].includes(failure) });
    });
  });
}

async function transactional_offsets(bootstrap, given, report) {
  const admin = kafka(bootstrap).admin();
  const committed = async () => {
    const [{ partitions }] = await admin.fetchOffsets({ groupId: given.group, topics: [given.topic] });
    return Number(partitions[0].offset);
  };
  await using(admin, () =>
    using(transactional(bootstrap, given), async (open) => {
      for (const end of ["commit", "abort"]) {
        const transaction = await open.transaction();
        const found = [];
        await consume(bootstrap, given, { groupId: given.group }, 3, ({ message }) => found.push(message));
        await transaction.send({ topic: given.output, messages: found.map(({ value }) => ({ value })) });
        const offset = String(Number(found.at(-1).offset) + 1);
        const topics = [{ topic: given.topic, partitions: [{ partition: 0, offset }] }];
        await transaction.sendOffsets({ consumerGroupId: given.group, topics });
        await transaction[end]();
        report({ [`after_${end}`]: await until(3, committed) });
      }
    }),
  );
}

module.exports = { produce, read, oversize, transactions, fence, transactional_offsets };
