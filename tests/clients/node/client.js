// What all verbs share: clients that say nothing on standard output, waiting, bytes in base64.
"use strict";

const { Kafka, logLevel } = require("kafkajs");

const TIMEOUT_MS = 30_000;

function kafka(bootstrap) {
  return new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING });
}

// Connects something, works with it, and disconnects it.
async function using(connected, work) {
  await connected.connect();
  try {
    return await work(connected);
  } finally {
    await connected.disconnect();
  }
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

// Asks until the answer is the wanted one, and returns the last: brokers take in changes of topics one by one.
async function until(wanted, ask, timeoutMs = TIMEOUT_MS / 3) {
  const deadline = Date.now() + timeoutMs;
  let answer = await ask();
  while (answer !== wanted && Date.now() < deadline) {
    await sleep(50);
    answer = await ask();
  }
  return answer;
}

function bytes(text) {
  return text === null ? null : Buffer.from(text, "base64");
}

function text(data) {
  return data === null || data === undefined ? null : Buffer.from(data).toString("base64");
}

// The error code of the broker, however the library wraps it; 0 if it went well.
async function code(call) {
  try {
    await call();
    return 0;
  } catch (error) {
    const inner = error.errors?.[0] ?? error.groups?.[0]?.error ?? error;
    return (inner.cause ?? inner).code ?? inner.code;
  }
}

module.exports = { TIMEOUT_MS, bytes, code, kafka, sleep, text, until, using };
