// Requests to the admin API. The token, if required, stays in this tab.

const KEY = "sluice-token";
let promptForToken = async () => {};

export class Problem extends Error {
  constructor(message, status, path) {
    super(message);
    this.status = status;
    this.path = path; // of the invalid field in the request, or ""
  }
}

/** Sets the function that is called if the broker requires a token; its promise resolves when one is entered. */
export function onTokenRequired(prompt) {
  promptForToken = prompt;
}

export function keepToken(token) {
  sessionStorage.setItem(KEY, token);
}

/** Sends a request and returns the response of any status except 401: it prompts for the token until it is valid. */
export async function open(path, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem(KEY);
    const headers = { ...options.headers, ...(token ? { authorization: `Bearer ${token}` } : {}) };
    const answer = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error" });
    if (answer.status !== 401) return answer;
    await promptForToken(token !== null);
  }
}

export async function get(path) {
  return result(await open(path));
}

/** Sends a change. The header and the content type prove that this page, not another site, sends it. */
export async function send(method, path, body) {
  const headers = { "x-sluice-request": "1", "content-type": "application/json" };
  return result(await open(path, { method, headers, body: JSON.stringify(body ?? {}) }));
}

export function messageOf(error) {
  return error instanceof Problem ? error.message : "The broker cannot be reached.";
}

export async function problemOf(answer) {
  const otherwise = `the broker returned status ${answer.status}`;
  try {
    const { error, path } = await answer.json();
    return new Problem(error ?? otherwise, answer.status, path ?? "");
  } catch { // the body is not JSON
    return new Problem(otherwise, answer.status, "");
  }
}

async function result(answer) {
  if (!answer.ok) throw await problemOf(answer);
  return answer.status === 204 ? null : answer.json();
}
