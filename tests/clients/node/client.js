// Helpers of all verbs: clients without log output, polling, bytes in base64.
"use strict";

const { readFileSync } = require("node:fs");
const { Kafka, logLevel } = require("kafkajs");

const TIMEOUT_MS = 30_000;

// Return the settings of the login that the environment states; none for plain text.
function login() {
  if (!process.env.SLUICE_TEST_LOGIN) return {};
  const { ca, mechanism, user, password } = JSON.parse(process.env.SLUICE_TEST_LOGIN);
  return { ssl: { ca: readFileSync(ca) }, sasl: { mechanism: mechanism.toLowerCase(), username: user, password } };
}

function kafka(bootstrap) {
  return new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING, ...login() });
}

// Connect a client, use it, and disconnect it.
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

// Fetch until the result is the expected one; return the last result. Brokers apply topic changes at different times.
async function until(expected, fetch, timeoutMs = TIMEOUT_MS / 3) {
  const deadline = Date.now() + timeoutMs;
  let result = await fetch();
  while (result !== expected && Date.now() < deadline) {
    await sleep(50);
    result = await fetch();
  }
  return result;
}

function bytes(text) {
  return text === null ? null : Buffer.from(text, "base64");
}

function text(data) {
  return data === null || data === undefined ? null : Buffer.from(data).toString("base64");
}

// Return the broker's error code, however the library wraps it; 0 if the call succeeded.
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
