// The dialog that prompts for the token.

import { keepToken, onTokenRequired } from "./api.js";
import { byId } from "./dom.js";
import { showProblem } from "./problem.js";

/** One dialog for all requests that wait for the token. */
export function enableTokenDialog() {
  const dialog = byId("token");
  const form = byId("token-form");
  let pending = null;
  dialog.addEventListener("cancel", (event) => event.preventDefault()); // the page has no data without a token
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    keepToken(form.elements.token.value);
    form.reset();
    dialog.close();
    pending.resolve();
    pending = null;
  });
  onTokenRequired((wasWrong) => {
    showProblem(byId("token-problem"), wasWrong ? "Invalid token." : "");
    if (pending === null) {
      pending = Promise.withResolvers?.() ?? resolvers();
      dialog.showModal();
    }
    return pending.promise;
  });
}

function resolvers() {
  const made = {};
  made.promise = new Promise((resolve) => { made.resolve = resolve; });
  return made;
}
