// A value that is edited in place: a button that becomes a field, with the broker's error message below it.

import { messageOf } from "./api.js";
import { button, el, setText } from "./dom.js";
import { typed } from "./format.js";
import { markInvalid, problemNode, showProblem } from "./problem.js";

let number = 0;

/**
 * `shown()` returns the text of the value, `unset` is the text without one. `value()` returns the number or null.
 * `save(text)` throws an error if the broker rejects the value.
 */
export function editable({ label, shown, unset, value, save }) {
  const id = `edit-${++number}`;
  const opener = button("", open, { class: "plain editable of" });
  const input = el("input", { "aria-label": `${label}, such as 1M or 250k; leave empty for none`, autocomplete: "off",
    spellcheck: "false", "aria-describedby": id });
  const problem = problemNode("span", { id });
  const form = el("form", { class: "edit", hidden: true, submit, keydown },
    input, el("button", { class: "main" }, "Set"), button("Cancel", close), problem);
  const node = el("span", {}, opener, form);

  function open() {
    const now = value();
    input.value = now === null ? "" : typed(now);
    failed("");
    form.hidden = false;
    opener.hidden = true;
    input.focus();
    input.select();
  }

  function close() {
    form.hidden = true;
    opener.hidden = false;
    opener.focus();
  }

  function failed(message) {
    showProblem(problem, message);
    markInvalid(input, message);
  }

  async function submit(event) {
    event.preventDefault();
    try {
      await save(input.value.trim());
      close();
    } catch (error) {
      failed(messageOf(error));
      input.focus();
    }
  }

  function keydown(event) {
    if (event.key === "Escape") {
      event.stopPropagation();
      close();
    }
  }

  function update() {
    const text = value() === null ? unset : shown();
    setText(opener, text);
    opener.setAttribute("aria-label", `${label}: ${text}. Edit`);
  }

  return { node, update };
}
