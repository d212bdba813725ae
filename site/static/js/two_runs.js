// Two runs side by side. `tools/machmeter/compare/runs.py` judges alike, and gives the rules.
import { isToldAsDifference, outcome, ratio, size, words } from "./two_numbers.js";
import { digits } from "./words.js";

// A side of a number: {value, state, spread, version}; what a run does not have has the state "".
const ABSENT = { value: null, state: "", spread: 0, version: 0 };
const LARGEST = 709; // logarithm of a number that can be written

// The smallest difference from `base` that counts, in the unit of the number.
function least(base, smallest) {
  return smallest.absolute ?? smallest.relative * Math.abs(base);
}

// Half the interval that such a value of its series usually has; 0 where none is known.
function noise(side) {
  return side.spread > 0 ? side.spread * Math.abs(side.value) : 0;
}

export function judge(before, after, about) {
  const counts = Math.max(least(before.value, about.smallest), noise(before) + noise(after));
  const found = outcome(before.value, after.value, about.direction, counts);
  return found === "unknown" ? "not comparable" : found;
}

// What became of a number, or null where there is nothing to tell.
export function row(before, after, comparable, rules) {
  const [old, now] = [before || ABSENT, after || ABSENT];
  const about = after || before;
  const meanings = rules.kinds[old.state] ?? rules.kinds[""];
  const kind = meanings[now.state] ?? meanings[""];
  if (!kind) return null;
  const found = { about, verdict: kind, before: old.value, after: now.value, stateBefore: old.state, stateAfter: now.state, words: "", size: null };
  if (kind !== "pair") return found;
  // Another version of a benchmark measures something else.
  if (!comparable || old.version !== now.version) return { ...found, verdict: "not comparable" };
  return { ...found, verdict: judge(old, now, about), words: words(old.value, now.value, about.unit, rules), size: size(old.value, now.value) };
}

// `before` and `after` are maps from what is compared to its sides. Failures first, then by effect.
export function compare(before, after, comparable, rules) {
  const names = [...new Set([...before.keys(), ...after.keys()])];
  const rows = names.map((name) => [name, row(before.get(name), after.get(name), comparable, rules)]).filter((pair) => pair[1]);
  const place = (verdict) => rules.order.indexOf(verdict);
  const larger = (x, y) => ((x.size || 0) === (y.size || 0) ? 0 : (y.size || 0) - (x.size || 0));
  rows.sort(([a, x], [b, y]) => place(x.verdict) - place(y.verdict) || larger(x, y) || (a < b ? -1 : 1));
  return rows.map((pair) => pair[1]);
}

export function summary(rows, rules) {
  if (!rows.length) return "These two have no number in common.";
  const counts = rules.order.map((verdict) => [verdict, rows.filter((found) => found.verdict === verdict).length]).filter((pair) => pair[1]);
  const numbers = `${String(rows.length).replace(/\B(?=(\d{3})+$)/g, "\u00a0")} ${rows.length === 1 ? "number" : "numbers"}`;
  return `${numbers}: ${counts.map(([verdict, count]) => `${count} ${verdict}`).join(", ")}.${mean(rows, rules)}`;
}

// The geometric mean of how much better a number became; of shares and decibels there is none.
function mean(rows, rules) {
  const logarithms = [];
  for (const { about, words: told, before, after } of rows) {
    const found = told && about.direction ? ratio(before, after) : null;
    if (found === null || isToldAsDifference(about.unit, rules)) continue;
    logarithms.push(about.direction === "higher" ? Math.log(found) : -Math.log(found));
  }
  if (!logarithms.length) return "";
  const found = Math.exp(Math.min(logarithms.reduce((sum, one) => sum + one, 0) / logarithms.length, LARGEST));
  return ` Geometric mean ×${digits(found)} (above 1 is better) over the ${logarithms.length} that both have.`;
}

// What asv noted of a machine and what the evidence has are named differently: each is compared with its own kind.
// A host is {facts, noted}: `noted` is what asv alone noted, null where there is no evidence.
export function differences(base, head, rules) {
  const both = base.noted && head.noted;
  const [old, now] = [base, head].map((host) => (both ? host.facts : host.noted || host.facts));
  return rules.incomparable.filter((name) => old[name] && now[name] && old[name] !== now[name])
    .map((name) => (old[name].length + now[name].length <= rules.readable ? `${name} ${old[name]} → ${now[name]}` : `${name} differ`));
}
