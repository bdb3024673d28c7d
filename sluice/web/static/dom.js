// Elements and dynamic lists. Data of the broker becomes only text (textContent), as clients choose their ids freely.

const SVG = "http://www.w3.org/2000/svg";

/** Creates an element with attributes (functions are listeners; false and null are omitted) and children (nodes or text). */
export function el(tag, attributes = {}, ...children) {
  return withContent(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return withContent(document.createElementNS(SVG, tag), attributes, children);
}

export function byId(id) {
  return document.getElementById(id);
}

/** Sets a text only if it differs: no new layout, and screen readers do not repeat it. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (value === null || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

export function button(label, click, attributes = {}) {
  return el("button", { type: "button", click, ...attributes }, label);
}

/** Creates a cell of a table. On a phone, where a row is a card, the cell shows its label. */
export function cell(label, className, ...children) {
  return el("td", { role: "cell", class: className, "data-label": label }, ...children);
}

/** The children of a parent, one per key; existing ones are updated in place. */
export class Children {
  /** `make(item)` returns an object with `node` and `update(item)`. */
  constructor(parent, make) {
    this.parent = parent;
    this.make = make;
    this.byKey = new Map();
  }

  show(items, keyOf) {
    const focused = document.activeElement;
    const before = this.byKey;
    this.byKey = new Map();
    let next = this.parent.firstChild;
    for (const item of items) {
      const key = keyOf(item);
      const child = before.get(key) ?? this.make(item);
      before.delete(key);
      this.byKey.set(key, child);
      child.update(item);
      if (child.node === next) next = next.nextSibling;
      else this.parent.insertBefore(child.node, next);
    }
    for (const gone of before.values()) gone.node.remove();
    // A node that is moved loses the focus.
    if (focused !== document.activeElement && this.parent.contains(focused)) focused.focus({ preventScroll: true });
  }
}

function withContent(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
