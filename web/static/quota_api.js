// Sets a quota, or removes it if the input is empty.

import { send } from "./api.js";
import { rateOf } from "./format.js";

const BYTE_RATES = new Set(["producer_byte_rate", "consumer_byte_rate"]);

/** Throws the broker's error if it rejects the value. */
export async function setQuota(key, entity, text) {
  await send("PUT", "/api/v1/quotas", { entity, quotas: { [key]: text === "" ? null : valueOf(key, text) } });
}

function valueOf(key, text) {
  if (BYTE_RATES.has(key)) return rateOf(text);
  return Number.isNaN(Number(text)) ? text : Number(text);
}
