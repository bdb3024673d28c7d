// Asks a person for the token.

import { keepToken, onTokenWanted } from "./api.js";
import { byId, tell } from "./dom.js";

/** One dialog for all requests that wait for the token. */
export function askWhenWanted() {
  const dialog = byId("token");
  const form = byId("token-form");
  let asked = null;
  dialog.addEventListener("cancel", (event) => event.preventDefault()); // there is nothing to see without one
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    keepToken(form.elements.token.value);
    form.reset();
    dialog.close();
    asked.resolve();
    asked = null;
  });
  onTokenWanted((wasWrong) => {
    tell(byId("token-problem"), wasWrong ? "That was not it." : "");
    if (asked === null) {
      asked = Promise.withResolvers?.() ?? resolvers();
      dialog.showModal();
    }
    return asked.promise;
  });
}

function resolvers() {
  const made = {};
  made.promise = new Promise((resolve) => { made.resolve = resolve; });
  return made;
}
