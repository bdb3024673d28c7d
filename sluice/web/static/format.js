// Formats numbers and names.

const STEPS = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function count(number) {
  return whole.format(number);
}
export function counted(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** Formats how much of a list is shown: 20, or 20 of 300. */
export function countOf(shown, total) {
  return shown < total ? `${count(shown)} of ${count(total)}` : count(total);
}

/** Formats with three digits: 950, 12.3 k, 1.07 M. */
/** Formats with three digits: 950, 12.3 k, 1.07 M. */
export function scaled(number) {
  for (const [size, letter] of STEPS) {
    if (Math.abs(number) >= size * 0.9995) return `${digits(number / size)} ${letter}`;
  }
  return `${digits(number)} `;
}

export function bytesPerSecond(number) {
  return `${scaled(number)}B/s`;
}

export function measured(kind, value) {
  switch (kind) {
    case "Produce": case "Fetch": case "producer_byte_rate": case "consumer_byte_rate":
      return bytesPerSecond(value);
    case "Request": case "request_percentage":
      return `${digits(value)} %`;
    case "ControllerMutation": case "controller_mutation_rate":
      return `${digits(value)} partitions/s`;
    default:
      return `${digits(value)}/s`;
  }
}

export function milliseconds(ms) {
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  return seconds(ms / 1000);
}

/** Formats as `sluice top` (sluice/cli/top/text.py): 8.1 s, 43 s, 2 min 32 s, 3 h 5 min. */
export function seconds(s) {
  if (s < 9.95) return `${s.toFixed(1)} s`;
  const rounded = Math.round(s);
  if (rounded < 60) return `${rounded} s`;
  if (rounded < 3600) return `${Math.floor(rounded / 60)} min ${rounded % 60} s`;
  const minutes = Math.round(s / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function clock(ms) {
  const at = new Date(ms);
  const two = (number) => String(number).padStart(2, "0");
  const rest = String(at.getMilliseconds()).padStart(3, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${rest}`;
}

/** Escapes control and format characters in a name. */
export function named(text, empty) {
  if (text === "") return empty;
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);
}

export function entityInWords(entity) {
  const parts = [];
  if ("user" in entity) parts.push(entity.user === null ? "every user" : `user ${named(entity.user, "(empty)")}`);
  if ("client-id" in entity) {
    parts.push(entity["client-id"] === null ? "every client id" : `client id ${named(entity["client-id"], "(empty)")}`);
  }
  if ("ip" in entity) parts.push(entity.ip === null ? "every address" : `address ${named(entity.ip, "")}`);
  return parts.join(", ");
}

/** Formats a number as input: 1M instead of 1000000. */
export function typed(value) {
  for (const [size, letter] of STEPS) {
    const part = value / size;
    if (part >= 1 && Number(part.toFixed(3)) === part) return `${part}${letter}`;
  }
  return String(value);
}

function digits(number) {
  const size = Math.abs(number);
  if (size >= 100 || Number.isInteger(number)) return whole.format(number);
  return number.toFixed(size >= 10 ? 1 : 2);
}
