// Elements, and lists of them that change. What comes from the broker only ever becomes text (textContent): a client may
// call itself anything.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes (functions are listeners, false and null are left out) and children: nodes or text. */
export function el(tag, attributes = {}, ...children) {
  return furnished(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return furnished(document.createElementNS(SVG, tag), attributes, children);
}

export function byId(id) {
  return document.getElementById(id);
}

/** Sets a text only where it is another: what did not change is neither laid out anew nor read out again. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (value === null || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** Shows a problem, or none. */
export function tell(node, problem) {
  setText(node, problem || "");
  node.hidden = !problem;
}

/** The children of a parent, one for each key: those that stay are changed where they stand. */
export class Children {
  /** `make(item)` gives an object with `node` and `update(item)`. */
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
    // Who is moved loses the focus, which is to stay where someone has put it.
    if (focused !== document.activeElement && this.parent.contains(focused)) focused.focus({ preventScroll: true });
  }
}

function furnished(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
