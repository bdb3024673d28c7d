// kafkajs without a driver of the audit: produces or consumes until it is ended.
"use strict";
const { Kafka, logLevel } = require("kafkajs");

const flags = new Set(process.argv.slice(2).filter((word) => word.startsWith("--")));
const [bootstrap, topic] = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const kafka = new Kafka({ clientId: "kafkajs", brokers: bootstrap.split(","), logLevel: logLevel.ERROR });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const payload = (number) =>
  String(number).padStart(8, "0") + (flags.has("--varied") ? "x".repeat(Math.floor(Math.random() * 200)) : "");

async function produce() {
  const producer = kafka.producer();
  await producer.connect();
  for (let number = 0; ; number++) {
    const sending = producer
      .send({ topic, messages: [{ value: payload(number) }] })
      .catch((error) => console.error(error.message));
    if (!flags.has("--pipelined")) await sending;
    await pause(20);
  }
}

async function consume() {
  const consumer = kafka.consumer({ groupId: "audit" });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({ eachMessage: async () => {} });
}

(flags.has("--consume") ? consume() : produce()).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
