// A field of a form, and what the broker says of what was typed there, told where it stands.

import { words } from "./api.js";
import { el, tell } from "./dom.js";

let number = 0;

/** A field with its label and a hint beneath. `failed(message)` tells of a mistake in it, or with "" of none. */
export function field(label, input, hint = "") {
  const id = `field-${++number}`;
  const problem = el("span", { class: "problem", role: "alert", hidden: true });
  input.setAttribute("aria-describedby", id);
  const node = el("div", { class: "field" }, el("label", { class: "field" }, label, input),
    el("small", { class: "sub", id }, problem, hint));
  return {
    node,
    input,
    failed(message) {
      tell(problem, message);
      if (message) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    },
  };
}

/**
 * Tells of an error, or with null that there is none: at the field that it is about, or in `rest` where it is about none
 * that can be seen. `fields` are by their places in what was sent, such as `action.code`; the most exact one is taken.
 */
export function tellAt(fields, rest, error) {
  for (const each of Object.values(fields)) each.failed("");
  const path = error?.path ?? "";
  const places = Object.keys(fields).filter((place) => isWithin(path, place) && !fields[place].node.hidden);
  const found = fields[places.sort((one, other) => other.length - one.length)[0]];
  tell(rest, error === null || found ? "" : words(error));
  if (!found) return;
  found.failed(withoutPlace(words(error), path));
  const folded = found.node.closest("details");
  if (folded) folded.open = true;
  // The answer took a while: who has gone on to type elsewhere is not called back.
  const focused = document.activeElement; // the body where a browser does not focus the button that is clicked
  if (focused === document.body || found.input.form.contains(focused)) found.input.focus();
}

function isWithin(path, place) {
  return path === place || path.startsWith(`${place}.`) || path.startsWith(`${place}[`);
}

/** Where it stands is seen: the words need not say it. */
function withoutPlace(message, path) {
  const [place, rest] = message.split(/: (.*)/s, 2);
  return rest && place.endsWith(path) ? rest : message;
}
