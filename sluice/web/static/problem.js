// Error messages, shown below the control that caused them.

import { messageOf } from "./api.js";
import { el, setText } from "./dom.js";

export function problemNode(tag = "p", attributes = {}) {
  return el(tag, { class: "problem", role: "alert", hidden: true, ...attributes });
}

/** Shows a message in a node of `problemNode`, or hides the node if the message is empty. */
export function showProblem(node, message) {
  setText(node, message || "");
  node.hidden = !message;
}

export function markInvalid(input, isInvalid) {
  if (isInvalid) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

/** Awaits a change and shows its error, if any, in `node`. */
export async function attempt(node, change) {
  try {
    await change();
    showProblem(node, "");
  } catch (error) {
    showProblem(node, messageOf(error));
  }
}
