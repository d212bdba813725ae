// The columns of the data files as numbers. `tools/machmeter/site/data/encode.py` writes them; the schemas describe them.
const LETTERS = Array.from({ length: 92 }, (_, at) => at + 35).filter((code) => code !== 92).slice(0, 90);
const CODE = new Int16Array(128).fill(-1);
LETTERS.forEach((letter, at) => { CODE[letter] = at; });
const BASE = 90;
// Characters a value, and the highest level they can say. Of 2.5, two values share five.
const LEVELS = { 2: BASE ** 2 - 1, 2.5: 76842, 3: BASE ** 3 - 1 };
const COARSE_LEVELS = BASE ** 2 - 5;

function number(text, at, width) {
  let code = 0;
  for (let place = 0; place < width; place += 1) code = code * BASE + CODE[text.charCodeAt(at * width + place)];
  return code;
}

// [skip, take, skip, take, ...] as ascending positions.
function positions(pairs) {
  const found = [];
  let at = 0;
  for (let pair = 0; pair < pairs.length; pair += 2) {
    at += pairs[pair];
    for (let taken = 0; taken < pairs[pair + 1]; taken += 1) found.push(at++);
  }
  return found;
}

// [count, value, count, value, ...] as values.
function runs(pairs) {
  const found = [];
  for (let pair = 0; pair < pairs.length; pair += 2) for (let n = 0; n < pairs[pair]; n += 1) found.push(pairs[pair + 1]);
  return found;
}

// Codes below `count`, `width` characters each; where that is no whole number, two share it.
function codes(text, count, width) {
  const found = [];
  if (Number.isInteger(width)) {
    for (let at = 0; at < text.length / width; at += 1) found.push(number(text, at, width));
    return found;
  }
  for (let at = 0; at < text.length / (2 * width); at += 1) {
    const both = number(text, at, 2 * width);
    found.push(Math.floor(both / count), both % count);
  }
  return found;
}

function unpack({ from, to, width, text }) {
  const step = Math.log(to / from) / LEVELS[width];
  return codes(text, LEVELS[width] + 1, width).map((code) => from * Math.exp(code * step));
}

// How far an interval reaches below and above its number, as shares of it; null where it has no end.
function distances({ from, levels, width, text }) {
  const shares = Array.from({ length: levels }, (_, at) => (from + at ? 1e-6 * 10 ** (((from + at - 1) * 7) / 87) : 0));
  shares.push(null);
  return codes(text, (levels + 1) ** 2, width).map((code) => [shares[Math.floor(code / (levels + 1))], shares[code % (levels + 1)]]);
}

const STATES = ["ok", "failed", "skipped", "unreadable", "n/a", "not run"];

// Values and intervals are listed for the points that have a number; here every point gets its own, or null.
export function decode(file) {
  const position = positions(file.commit);
  const state = runs(file.state).map((code) => STATES[code]);
  const version = runs(file.version);
  const measured = Array.isArray(file.value) ? file.value : unpack(file.value);
  const reach = file.bounds && distances(file.bounds);
  const blank = () => new Array(position.length).fill(null);
  const [value, low, high] = [blank(), blank(), blank()];
  let next = 0;
  state.forEach((word, point) => {
    if (word !== "ok") return;
    const given = measured[next];
    value[point] = given;
    if (reach) {
      const [below, above] = reach[next];
      low[point] = below === null ? null : given * (1 - below);
      high[point] = above === null ? null : given * (1 + above);
    } else if (file.low) {
      low[point] = file.low[next];
      high[point] = file.high[next];
    }
    next += 1;
  });
  return { ...file, position, state, version, value, low, high, old: version.map((code) => code !== file.current) };
}

// What a level of a column stands for: `as_read` in site/data/compare_columns.py reads it alike.
function coarse(level, from, to, isEven) {
  const share = level / COARSE_LEVELS;
  if (isEven) return (1 - share) * from + share * to;
  const [end, rest] = share <= 0.5 ? [from, share] : [to, share - 1];
  const step = Math.exp((rest * (Math.log(to) - Math.log(from))) / 2);
  return end * step * step;
}

// Codes above the levels, as site/data/compare_columns.py gives them; what the run does not have is null.
const ABOVE = { 2: "failed", 3: "unreadable", 4: "skipped" };

// What a run has of each series of scale.json: {value, state, spread, version}, or null.
export function column(scale, block, place) {
  const text = block.value[place % scale.runs_per_file];
  const even = new Set(scale.even);
  const versions = Object.fromEntries(Object.entries(scale.versions).map(([at, pairs]) => [at, runs(pairs)[place]]));
  return scale.key.map((_, at) => {
    const code = 2 * at < text.length ? number(text, at, 2) : COARSE_LEVELS + 4;
    const isNumber = code <= COARSE_LEVELS;
    const state = isNumber ? "ok" : ABOVE[code - COARSE_LEVELS];
    if (!state) return null;
    const value = isNumber ? coarse(code, scale.from[at], scale.to[at], even.has(at)) : null;
    return { value, state, spread: scale.spread[at], version: versions[scale.benchmark[at]] ?? 0 };
  });
}
