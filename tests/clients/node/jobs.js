// The jobs of the lint matrix (tools/lint/job.py). Names of settings are paths: client.retry.retries, producer.idempotent,
// send.acks, consumer.sessionTimeout, run.autoCommitInterval.
"use strict";

const { CompressionTypes, Kafka, PartitionAssigners, Partitioners, logLevel } = require("kafkajs");
const { sleep } = require("./client");

const CODECS = { gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy };
const OFFSETS_APART = { record: [0], poll: [0], ahead: [10], back: [0, -10] };

// Return the settings as nested objects.
function nested(settings) {
  const found = { client: {}, producer: {}, send: {}, consumer: {}, run: {} };
  for (const [name, value] of Object.entries(settings)) {
    const path = name.split(".");
    const last = path.pop();
    let place = found;
    for (const part of path) place = place[part] ??= {};
    place[last] = value;
  }
  return found;
}

function clientOf(bootstrap, job, settings) {
  const named = job.client_id ? { clientId: job.client_id } : {};
  return new Kafka({ brokers: bootstrap.split(","), logLevel: logLevel.NOTHING, ...named, ...settings.client });
}

function keyOf(job, number) {
  if (!job.keys) return null;
  return `key-${((number * 37) % 100) < job.hot_percent ? 0 : number % job.keys}`;
}

function valueOf(job, number) {
  const text = `record ${number}, `;
  return text.repeat(Math.floor(job.size / text.length) + 1).slice(0, job.size);
}

function messagesOf(job, burst) {
  const byTopic = {};
  for (let number = burst * job.records; number < (burst + 1) * job.records; number++) {
    const message = { key: keyOf(job, number), value: valueOf(job, number) };
    if (job.skew_ms) message.timestamp = String(Date.now() + job.skew_ms);
    (byTopic[job.topics[number % job.topics.length]] ??= []).push(message);
  }
  return byTopic;
}

async function sendBurst(open, job, burst, options) {
  for (const [topic, messages] of Object.entries(messagesOf(job, burst))) {
    const parts = job.wait_each ? messages.map((message) => [message]) : [messages];
    for (const part of parts) {
      const sent = open.send({ topic, messages: part, ...options });
      if (job.wait) await sent;
      else sent.catch(() => {});
    }
  }
}

function producerOf(bootstrap, job, given) {
  const settings = nested(given);
  const transactional = job.transactional_id
    ? { transactionalId: job.transactional_id, idempotent: true, maxInFlightRequests: 1 }
    : {};
  const options = { createPartitioner: Partitioners.DefaultPartitioner, ...transactional, ...settings.producer };
  const send = { ...settings.send };
  if (send.compression) send.compression = CODECS[send.compression];
  return [clientOf(bootstrap, job, settings).producer(options), send];
}

async function produce(bootstrap, job) {
  const share = job.new_client ? 1 : job.bursts;
  for (let from = 0; from < job.bursts; from += share) {
    const [producer, options] = producerOf(bootstrap, job, job.settings);
    await producer.connect();
    for (let burst = from; burst < from + share; burst++) {
      const open = job.transactional_id ? await producer.transaction() : producer;
      await sendBurst(open, job, burst, options);
      if (job.transactional_id) {
        await sleep(job.hold_ms);
        await (job.abort ? open.abort() : open.commit());
      }
      await sleep(job.every_ms);
    }
    await producer.disconnect();
  }
}

async function once(bootstrap, job, ms) {
  const settings = nested(job.settings);
  if (settings.consumer.partitionAssigners) {
    settings.consumer.partitionAssigners = settings.consumer.partitionAssigners.map((each) => PartitionAssigners[each]);
  }
  const consumer = clientOf(bootstrap, job, settings).consumer({ groupId: job.group || "none", ...settings.consumer });
  await consumer.connect();
  await consumer.subscribe({ topics: job.topics, fromBeginning: true });
  await consumer.run({ autoCommit: job.commit === "auto", ...settings.run, ...handler(consumer, job) });
  await sleep(ms);
  if (job.leave) await consumer.disconnect();
}

// eachMessage commits by itself between messages; the others work on a batch as a poll loop does.
function handler(consumer, job) {
  const distances = OFFSETS_APART[job.commit] ?? [];
  const commit = async (topic, partition, offset) => {
    for (const apart of distances) {
      const committed = String(Math.max(0, Number(offset) + 1 + apart));
      await consumer.commitOffsets([{ topic, partition, offset: committed }]);
    }
  };
  if (job.commit === "record") {
    return {
      eachMessage: async ({ topic, partition, message }) => {
        await commit(topic, partition, message.offset);
        await sleep(job.process_ms);
      },
    };
  }
  return {
    eachBatch: async ({ batch, resolveOffset }) => {
      for (const { offset } of batch.messages) resolveOffset(offset);
      await commit(batch.topic, batch.partition, batch.lastOffset());
      await sleep(job.process_ms + job.rest_ms);
    },
  };
}

async function consume(bootstrap, job) {
  const ends = Date.now() + job.for_ms;
  while (Date.now() < ends) {
    const left = ends - Date.now();
    await once(bootstrap, job, job.new_client ? job.poll_ms : job.rejoin_ms ? Math.min(left, job.rejoin_ms) : left);
  }
}

async function copy(bootstrap, job) {
  const settings = nested(job.settings);
  const consumer = clientOf(bootstrap, job, settings).consumer({ groupId: job.group, ...settings.consumer });
  const [producer, options] = producerOf(bootstrap, job, job.output_settings);
  await producer.connect();
  await consumer.connect();
  await consumer.subscribe({ topics: job.topics, fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    ...settings.run,
    eachBatch: async ({ batch, resolveOffset }) => {
      const open = await producer.transaction();
      await open.send({ topic: job.output, messages: batch.messages.map(({ value }) => ({ value })), ...options });
      const partitions = [{ partition: batch.partition, offset: String(Number(batch.lastOffset()) + 1) }];
      await open.sendOffsets({ consumerGroupId: job.group, topics: [{ topic: batch.topic, partitions }] });
      await sleep(job.hold_ms);
      await open.commit();
      resolveOffset(batch.lastOffset());
      await sleep(job.process_ms + job.rest_ms);
    },
  });
  await sleep(job.for_ms);
  await consumer.disconnect();
  await producer.disconnect();
}

async function work(bootstrap, { job }) {
  await { produce, consume, copy }[job.role](bootstrap, job);
}

module.exports = { work };
