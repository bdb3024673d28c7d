// What a tone looks like: colours from the styles, patterns, and a sign, as colour is never the only one.

import { TONES } from "./model.js";

export const SIGNS = { ok: "", neutral: "", state: "", throttled: "‖", fault: "✗", lost: "?", error: "!" };
export const TONE_NAMES = {
  ok: "no error", neutral: "other", state: "state", throttled: "throttled", fault: "fault rule", lost: "no response", error: "error",
};
const PLAIN = ["panel", "sunk", "line", "line-strong", "ink", "ink-2", "accent", "accent-soft", "accent-fill", "bad", "bad-soft", "wait-fill"];
const PATTERN = 6;

/** Reads the colours of the current scheme. */
export function palette(scale) {
  const probe = document.createElement("i");
  document.body.append(probe);
  const read = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const colours = Object.fromEntries(PLAIN.map((name) => [name, read(name)]));
  const tones = TONES.map((name) => ({
    name, sign: SIGNS[name], fill: read(`bar-${name}`), edge: read(`edge-${name}`), pattern: null,
  }));
  probe.remove();
  for (const tone of tones) tone.pattern = pattern(tone.name, tone.edge, scale);
  return { ...colours, tones, throttle: pattern("throttled", colours["wait-fill"], scale) };
}

function pattern(name, colour, scale) {
  const draw = { error: slanted, throttled: upright, fault: dotted }[name];
  if (!draw) return null;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = PATTERN * scale;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.strokeStyle = context.fillStyle = colour;
  context.globalAlpha = 0.55;
  draw(context);
  const made = context.createPattern(canvas, "repeat");
  made.setTransform(new DOMMatrix().scale(1 / scale));
  return made;
}

function slanted(context) {
  context.lineWidth = 1.2;
  context.beginPath();
  for (const shift of [-PATTERN, 0, PATTERN]) {
    context.moveTo(shift, PATTERN);
    context.lineTo(shift + PATTERN, 0);
  }
  context.stroke();
}

function upright(context) {
  context.fillRect(0, 0, 2, PATTERN);
}

function dotted(context) {
  context.fillRect(1, 1, 2, 2);
  context.fillRect(4, 4, 2, 2);
}
