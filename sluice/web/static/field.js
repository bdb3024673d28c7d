// Form fields with the broker's error messages.

import { messageOf } from "./api.js";
import { el } from "./dom.js";
import { markInvalid, problemNode, showProblem } from "./problem.js";

let number = 0;

/** Creates a field with a label and a hint. `failed(message)` shows an error, or clears it with "". */
export function field(label, input, hint = "") {
  const id = `field-${++number}`;
  const problem = problemNode("span");
  input.setAttribute("aria-describedby", id);
  const node = el("div", { class: "field" }, el("label", { class: "field" }, label, input),
    el("small", { class: "sub", id }, problem, hint));
  return {
    node,
    input,
    failed(message) {
      showProblem(problem, message);
      markInvalid(input, message);
    },
  };
}

/**
 * Shows an error at the field that it names, or in `rest` if no visible field matches; null clears all errors.
 * The keys of `fields` are paths in the request, such as `action.code`; the longest match is used.
 */
export function showProblemAt(fields, rest, error) {
  for (const each of Object.values(fields)) each.failed("");
  const path = error?.path ?? "";
  const places = Object.keys(fields).filter((place) => isWithin(path, place) && !fields[place].node.hidden);
  const found = fields[places.sort((one, other) => other.length - one.length)[0]];
  showProblem(rest, error === null || found ? "" : messageOf(error));
  if (!found) return;
  found.failed(withoutPlace(messageOf(error), path));
  const folded = found.node.closest("details");
  if (folded) folded.open = true;
  // Do not move the focus if it has left the form while the request was pending.
  const focused = document.activeElement; // the body, in browsers that do not focus a clicked button
  if (focused === document.body || found.input.form.contains(focused)) found.input.focus();
}

function isWithin(path, place) {
  return path === place || path.startsWith(`${place}.`) || path.startsWith(`${place}[`);
}

/** Removes the path of the field from its message. */
function withoutPlace(message, path) {
  const [place, rest] = message.split(/: (.*)/s, 2);
  return rest && place.endsWith(path) ? rest : message;
}
