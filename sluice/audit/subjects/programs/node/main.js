// The driver of kafkajs: a producer, a consumer, an admin client.
"use strict";
const { Kafka, logLevel } = require("kafkajs");
const { readFileSync } = require("fs");

const TOPIC = "audit";
const GROUP = "audit";
const RESTART_AFTER_MS = 500; // after a client that could not start
const job = JSON.parse(process.argv[2] ?? readFileSync(0, "utf8"));
const work = job.workload;

// Callbacks as JSON lines; the clock has microseconds, Date has not.
const start = BigInt(Date.now()) * 1000000n - process.hrtime.bigint();
function report(event, error, { record = -1, partition = -1, offset = -1 } = {}) {
  const [name, text] = error ? [error.name, error.message.split("\n")[0]] : ["", ""];
  const at_ns = Number(start + process.hrtime.bigint());
  console.log(JSON.stringify({ at_ns, event, record, partition, offset, error: name, text }));
}

// The library sends all requests within calls, which end with their retries.
function failed(event, error, place) {
  report(event, error, place);
  report("gave-up");
}

// Settings have paths such as kafka.retry.retries: the arguments of a function.
const settings = { kafka: {}, producer: {}, send: {}, consumer: {}, subscribe: {}, run: {} };
function set(path, value) {
  const names = path.split(".");
  const last = names.pop();
  names.reduce((found, name) => (found[name] ??= {}), settings)[last] = value;
}
const given = { ...job.settings };
if (given["security.protocol"] === "SSL") set("kafka.ssl", true);
if (given["security.protocol"] === "SASL_PLAINTEXT")
  set("kafka.sasl", { mechanism: "plain", username: given["sasl.username"], password: given["sasl.password"] });
if (given["send.acks"] === "all") given["send.acks"] = -1;
if ("subscribe.fromBeginning" in given) given["subscribe.fromBeginning"] = given["subscribe.fromBeginning"] === "earliest";
for (const [path, value] of Object.entries(given)) if (path.includes(".") && path.split(".")[0] in settings) set(path, value);

const kafka = () =>
  new Kafka({
    ...settings.kafka,
    clientId: `audit-${job.role}`,
    brokers: job.bootstrap.split(","),
    logLevel: logLevel.NOTHING,
  });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let numbers = 0;

async function produce(isOver) {
  const producer = kafka().producer(settings.producer);
  report("started");
  try {
    await producer.connect();
    report("ready");
    const senders = [];
    for (let partition = 0; partition < work.partitions; partition++)
      for (let each = 0; each < work.pending; each++) senders.push(send(producer, partition, isOver));
    await Promise.race([Promise.all(senders), isOver.promise]);
  } finally {
    await closed(producer);
  }
}

async function send(producer, partition, isOver) {
  while (!isOver.done) {
    const record = numbers++;
    const value = "0".repeat(Math.floor(Math.random() * (work.padding ?? 0))) + record;
    report("sent", null, { record, partition });
    try {
      const [written] = await producer.send({ topic: TOPIC, messages: [{ partition, value }], ...settings.send });
      report("delivered", null, { record, partition, offset: Number(written?.baseOffset ?? -1) });
    } catch (error) {
      if (!isOver.done) failed("failed", error, { record, partition });
    }
    await pause(work.pause_ms);
  }
}

// Consumers are members of a group: the library has no others.
async function consume(isOver) {
  const consumer = kafka().consumer({ groupId: GROUP, ...settings.consumer });
  report("started");
  consumer.on(consumer.events.CRASH, ({ payload }) => failed("call-failed", payload.error));
  let next = null;
  try {
    await consumer.connect();
    await consumer.subscribe({ topics: [TOPIC], ...settings.subscribe });
    report("ready");
    const eachMessage = async ({ partition, message: { value, offset } }) => {
      report("received", null, { record: Number(value), partition, offset: Number(offset) });
      next = { topic: TOPIC, partition, offset: String(Number(offset) + 1) };
    };
    await consumer.run({ eachMessage, ...settings.run });
    while (!isOver.done) {
      await Promise.race([pause(work.commit_every_ms || 1000), isOver.promise]);
      if (work.commit_every_ms && next)
        await consumer.commitOffsets([next]).catch((error) => failed("call-failed", error));
    }
  } finally {
    await closed(consumer);
  }
}

async function call(isOver) {
  const admin = kafka().admin();
  report("started");
  try {
    await admin.connect();
    report("ready");
    while (!isOver.done) {
      await admin.describeGroups([GROUP]).catch((error) => failed("call-failed", error));
      await pause(work.pause_ms);
    }
  } finally {
    await closed(admin);
  }
}

// Closing may wait for requests.
const closed = (client) => Promise.race([client.disconnect().catch(() => {}), pause(100)]);

function lifetime(ms) {
  const isOver = { done: false, promise: null };
  isOver.promise = ms ? pause(ms).then(() => (isOver.done = true)) : new Promise(() => {});
  return isOver;
}

async function run() {
  const workload = { produce, consume, call }[work.type];
  for (;;) {
    const isOver = lifetime(work.lifetime_ms);
    try {
      await workload(isOver);
    } catch (error) {
      isOver.done = true;
      console.error(error.message);
      failed("call-failed", error);
      await pause(RESTART_AFTER_MS);
    }
    report("closed");
  }
}

process.on("unhandledRejection", (error) => console.error(error.message));
run();
