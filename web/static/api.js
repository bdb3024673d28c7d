// Asks the admin API. The token, where there is one, stays in this tab.

const KEY = "sluice-token";
let askForToken = async () => {};

export class Problem extends Error {
  constructor(message, status, path) {
    super(message);
    this.status = status;
    this.path = path; // where in what was sent the mistake is, or ""
  }
}

/** What is called where the broker asks for a token: it is over when there is one. */
export function onTokenWanted(ask) {
  askForToken = ask;
}

export function keepToken(token) {
  sessionStorage.setItem(KEY, token);
}

/** An answer, whatever it is; asks for a token until it is the right one. */
export async function open(path, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem(KEY);
    const headers = { ...options.headers, ...(token ? { authorization: `Bearer ${token}` } : {}) };
    const answer = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error" });
    if (answer.status !== 401) return answer;
    await askForToken(token !== null);
  }
}

export async function get(path) {
  return result(await open(path));
}

/** Changes something. The header and the type of what is sent say that this page does, and no other. */
export async function send(method, path, body) {
  const headers = { "x-sluice-request": "1", "content-type": "application/json" };
  return result(await open(path, { method, headers, body: JSON.stringify(body ?? {}) }));
}

/** What went wrong, in the broker's own words where it has any. */
export function words(error) {
  return error instanceof Problem ? error.message : "The broker cannot be reached.";
}

export async function problemOf(answer) {
  const otherwise = `the broker answered ${answer.status}`;
  try {
    const { error, path } = await answer.json();
    return new Problem(error ?? otherwise, answer.status, path ?? "");
  } catch { // it was no JSON
    return new Problem(otherwise, answer.status, "");
  }
}

async function result(answer) {
  if (!answer.ok) throw await problemOf(answer);
  return answer.status === 204 ? null : answer.json();
}
