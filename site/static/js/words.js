// How values and dates are written. `tools/machmeter/text/numbers.py` writes them alike at build time.
export const NONE = "–";
const SCALES = {
  seconds: [[1e-9, "ns"], [1e-6, "µs"], [1e-3, "ms"], [1, "s"]],
  bytes: [[1, "B"], [1e3, "kB"], [1e6, "MB"], [1e9, "GB"], [1e12, "TB"]],
  "bytes/s": [[1, "B/s"], [1e3, "kB/s"], [1e6, "MB/s"], [1e9, "GB/s"], [1e12, "TB/s"]],
  "operations/s": [[1, "op/s"], [1e6, "Mop/s"], [1e9, "Gop/s"], [1e12, "Top/s"]],
};
const SAME = { s: "seconds", second: "seconds", sec: "seconds", byte: "bytes", b: "bytes" };

export function scale(unit, magnitude) {
  const lower = (unit || "").toLowerCase();
  const named = Object.hasOwn(SAME, lower) ? SAME[lower] : unit || "";
  const steps = Object.hasOwn(SCALES, named) ? SCALES[named] : null;
  if (!steps) return [1, named];
  let chosen = steps[0];
  for (const step of steps) if (magnitude >= step[0] * 0.9995) chosen = step;
  return chosen;
}

// Of two numbers that are as near, Python writes the even one, and toFixed and toExponential the larger one.
function even(write, decimals) {
  const [text, exact] = [write(decimals), write(decimals + 40)];
  const [mantissa, exponent] = exact.split("e");
  const end = mantissa.indexOf(".") + 1 + decimals;
  const isTie = mantissa[end] === "5" && !/[1-9]/.test(mantissa.slice(end + 1));
  if (!isTie || !/[13579]$/.test(text.split("e")[0])) return text;
  return mantissa.slice(0, decimals ? end : end - 1) + (exponent ? `e${exponent}` : "");
}

function fixed(number, decimals) {
  return even((places) => number.toFixed(places), decimals);
}

export function digits(value, significant = 4) {
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  if (magnitude < -6 || magnitude > 9) return even((places) => value.toExponential(places), significant - 1);
  return fixed(value, Math.max(0, significant - 1 - magnitude));
}

export function value(number, unit) {
  if (number === null || number === undefined || !Number.isFinite(number)) return NONE;
  const [by, name] = scale(unit, Math.abs(number));
  if (name === "fraction" && Math.abs(number) < 1e6) return fixed(number, 3);
  return `${digits(number / by)} ${name}`.trimEnd();
}

// A difference with its sign and one decimal; "0.0" has none.
export function signed(number) {
  const text = Math.abs(number) >= 1000 ? digits(number, 3) : fixed(number, 1);
  if (!/[1-9]/.test(text)) return text.replace("-", "");
  return `${number > 0 ? "+" : ""}${text}`.replaceAll("-", "−");
}

export const day = (milliseconds) => new Date(milliseconds).toISOString().slice(0, 10);

// Build an element; text is always text, so a name can hold anything.
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, given] of Object.entries(attributes)) {
    if (given === null || given === undefined || given === false) continue;
    if (key === "class") made.className = given;
    else if (given === true) made.setAttribute(key, "");
    else made.setAttribute(key, given);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function badge(word) {
  return element("span", { class: `badge ${word.replaceAll("/", "").replaceAll(" ", "-")}` }, word);
}

const cached = new Map();
export function load(address) {
  if (!cached.has(address)) {
    cached.set(address, fetch(address).then((answer) => {
      if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
      return answer.json();
    }));
  }
  return cached.get(address);
}

export async function copyLink(button) {
  let done = "Copied";
  try { await navigator.clipboard.writeText(location.href); } catch { done = "It is in the address bar"; }
  const before = button.textContent;
  button.textContent = done;
  setTimeout(() => { button.textContent = before; }, 1500);
}
