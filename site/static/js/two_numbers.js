// Two numbers side by side. `tools/machmeter/text/two_numbers.py` says it alike, and gives the rules.
import { digits, signed, value } from "./words.js";

export function outcome(before, after, direction, least) {
  if (!Number.isFinite(before) || !Number.isFinite(after)) return "unknown";
  if (before === after || Math.abs(after - before) < least) return "same";
  if (!direction) return "change";
  return (after < before) === (direction === "lower") ? "better" : "worse";
}

export function ratio(before, after) {
  if (before <= 0 || after <= 0) return null;
  const found = after / before;
  return found > 0 && found < Infinity ? found : null;
}

export function size(before, after) {
  if (before === after) return 0;
  const found = ratio(before, after);
  return found === null ? Infinity : Math.abs(Math.log(found));
}

export function isToldAsDifference(unit, rules) {
  return Object.hasOwn(rules.differences, unit);
}

export function words(before, after, unit, rules) {
  if (before === after) return "unchanged";
  const told = isToldAsDifference(unit, rules);
  if (told) {
    const [times, name] = rules.differences[unit];
    const by = times * (after - before);
    if (Number.isFinite(by)) return `${signed(by)} ${name}`;
  }
  const found = told ? null : ratio(before, after);
  if (found === null) return `from ${value(before, unit)} to ${value(after, unit)}`;
  return found < rules.times ? `${signed(100 * (found - 1))} %` : `× ${digits(found, 3)}`;
}
