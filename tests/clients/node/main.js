// The kafkajs driver. It prints its version first; then each line of standard input is a call,
// answered with a line for each step and one for the end.
"use strict";

const readline = require("node:readline");
const { CompressionCodecs, CompressionTypes } = require("kafkajs");
const SnappyCodec = require("kafkajs-snappy");

CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec;

const verbs = { ...require("./records"), ...require("./groups"), ...require("./admin"), ...require("./jobs") };

function write(line) {
  process.stdout.write(JSON.stringify(line) + "\n");
}

async function answer({ bootstrap, verb, given }) {
  try {
    await verbs[verb](bootstrap, given, (step) => write({ step }));
    write({ end: true });
  } catch (failure) {
    write({ failure: failure.stack });
  }
}

async function main() {
  write({ version: require("kafkajs/package.json").version });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    await answer(JSON.parse(line));
  }
  process.exit(0);
}

main();
