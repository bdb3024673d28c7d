// Sets a quota, or removes it if the input is empty.

import { send } from "./api.js";

/** Throws the broker's error if it rejects the value. */
export async function setQuota(key, entity, text) {
  await send("PUT", "/api/v1/quotas", { entity, quotas: { [key]: text || null } });
}
