// The interactive plot of one benchmark. The address's fragment holds exactly what is shown.
import { decode } from "./decode.js";
import { badge, copyLink, day, digits, element, load, NONE, scale, value } from "./words.js";

const MOST_LINES = 16;
const PAGE = 25;
const app = document.getElementById("history");
const live = app?.querySelector("[data-app]");
if (app && live && globalThis.uPlot) start().catch((error) => {
  live.hidden = true;
  console.warn(`the interactive plot is not available: ${error.message}`);
});

async function start() {
  const dimensions = [...app.querySelectorAll("[data-dimension]")];
  const values = dimensions.map((fieldset) => [...fieldset.querySelectorAll("input")].map((box) => box.value));
  // A row says which value it has in each dimension by that value's place.
  const rows = [...document.querySelectorAll("tr[data-series]")].map((row) => {
    const at = (row.dataset.at || "").split(" ");
    const has = dimensions.map((fieldset, number) => [fieldset.dataset.dimension, values[number][at[number]] ?? ""]);
    return { ...Object.fromEntries(has), series: row.dataset.series, stack: row.dataset.stack, chosen: "chosen" in row.dataset };
  });
  const data = app.dataset.data;
  const view = { x: "commit", y: "linear", norm: false, zero: false, band: true, changes: true, events: true, from: null, to: null, series: new Set() };
  let shown = [];
  let plot = null;
  let commits = null;
  let listed = PAGE;
  let focus = null;

  const chart = app.querySelector("[data-chart]");
  const readout = app.querySelector("[data-readout]");
  const legend = app.querySelector("[data-legend]");
  const livePoints = document.querySelector("[data-live-points]");
  const reproduce = document.querySelector("[data-reproduce]");

  // ---- what is chosen ------------------------------------------------------------------------------------------
  function choose(keys) {
    for (const fieldset of dimensions) {
      const dimension = fieldset.dataset.dimension;
      const values = new Set(rows.filter((row) => keys.has(row.series)).map((row) => row[dimension]));
      for (const box of fieldset.querySelectorAll("input")) box.checked = values.has(box.value);
    }
  }

  function chosenRows() {
    return rows.filter((row) => dimensions.every((fieldset) => {
      const checked = [...fieldset.querySelectorAll("input:checked")].map((box) => box.value);
      return checked.includes(row[fieldset.dataset.dimension]);
    }));
  }

  function readFragment() {
    const given = new URLSearchParams(location.hash.slice(1));
    Object.assign(view, { x: "commit", y: "linear", norm: false, zero: false, band: true, changes: true, events: true, from: null, to: null });
    if (given.get("x") === "time") view.x = "time";
    if (given.get("y") === "log") view.y = "log";
    for (const name of ["norm", "zero"]) view[name] = given.get(name) === "1";
    for (const name of ["band", "changes", "events"]) view[name] = given.get(name) !== "0";
    const one = given.get("s");
    const wanted = new Set(rows.filter((row) => row.chosen).map((row) => row.series));
    if (one && rows.some((row) => row.series === one)) {
      choose(new Set([one]));
    } else if (dimensions.some((fieldset) => given.has(fieldset.dataset.dimension))) {
      choose(wanted);
      for (const fieldset of dimensions) {
        if (!given.has(fieldset.dataset.dimension)) continue;
        const values = new Set(given.getAll(fieldset.dataset.dimension));
        for (const box of fieldset.querySelectorAll("input")) box.checked = values.has(box.value);
      }
    } else {
      choose(wanted);
    }
    // A range is between two commits, by hash: positions move when history is rewritten or grows.
    const place = (hash) => (hash ? commits.hash.findIndex((known) => known.startsWith(hash)) : -1);
    const [from, to] = [place(given.get("from")), place(given.get("to"))];
    view.from = from >= 0 ? from : null;
    view.to = to >= 0 ? to : null;
  }

  function writeFragment() {
    const made = new URLSearchParams();
    for (const fieldset of dimensions) {
      for (const box of fieldset.querySelectorAll("input:checked")) made.append(fieldset.dataset.dimension, box.value);
    }
    if (view.x !== "commit") made.set("x", view.x);
    if (view.y !== "linear") made.set("y", view.y);
    for (const name of ["norm", "zero"]) if (view[name]) made.set(name, "1");
    for (const name of ["band", "changes", "events"]) if (!view[name]) made.set(name, "0");
    if (view.from !== null && view.to !== null) {
      made.set("from", commits.hash[view.from]);
      made.set("to", commits.hash[view.to]);
    }
    history.replaceState(null, "", `#${made}`);
  }

  // ---- what is drawn -------------------------------------------------------------------------------------------
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const lineColour = (number) => colour(`--s${(number % 8) + 1}`);
  const dashes = [[], [7, 4], [2, 4], [9, 3, 2, 3]];

  // One x for all lines: every commit that any of them has, or its date.
  function table() {
    const places = [...new Set(shown.flatMap((item) => item.position))].sort((a, b) => a - b);
    const byTime = view.x === "time";
    if (byTime) places.sort((a, b) => commits.date[a] - commits.date[b] || a - b);
    const index = new Map(places.map((place, at) => [place, at]));
    const columns = [byTime ? places.map((place) => commits.date[place] / 1000) : places];
    const positive = (number) => (view.y === "log" && !(number > 0) ? null : number);
    for (const item of shown) {
      const base = view.norm ? reference(item) : 1;
      const blank = () => new Array(places.length).fill(undefined);
      const [current, old, low, high] = [blank(), blank(), blank(), blank()];
      item.position.forEach((place, point) => {
        const at = index.get(place);
        const number = item.value[point];
        const drawn = number === null || number === undefined ? null : positive(number / base);
        // undefined joins neighbours across what was never run; null is a gap where it ran without a number.
        (item.old[point] ? old : current)[at] = drawn;
        if (item.old[point] && current[at] === undefined) current[at] = null;
        if (!item.old[point]) {
          low[at] = item.low[point] === null ? drawn : positive(item.low[point] / base);
          high[at] = item.high[point] === null ? drawn : positive(item.high[point] / base);
        }
      });
      columns.push(current, old, low, high);
    }
    return { places, columns, index };
  }

  function reference(item) {
    for (let point = 0; point < item.value.length; point += 1) {
      const inside = view.from === null || item.position[point] >= view.from;
      if (inside && !item.old[point] && item.value[point]) return item.value[point];
    }
    return 1;
  }

  let drawn = null;
  function draw() {
    plot?.destroy();
    plot = null;
    drawn = table();
    if (!shown.length || !drawn.places.length) {
      chart.replaceChildren(element("p", { class: "note" }, "No series is chosen: choose a value in every group above."));
      chart.dataset.drawn = "none";
      return;
    }
    chart.replaceChildren();
    const unit = app.dataset.unit;
    let largest = 0;
    shown.forEach((_, number) => {
      for (const column of [4 * number + 1, 4 * number + 2]) {
        for (const number_ of drawn.columns[column]) if (number_ && Math.abs(number_) > largest) largest = Math.abs(number_);
      }
    });
    const [by, name] = view.norm ? [1, "relative"] : scale(unit, largest);
    const few = drawn.places.length <= 150;
    const series = [{}];
    const bands = [];
    shown.forEach((item, number) => {
      const stroke = lineColour(number);
      const dash = dashes[Math.floor(number / 8) % 4];
      const points = { show: few, size: 5, fill: stroke };
      series.push({ label: label(item), stroke, dash, width: 1.6, points, spanGaps: false });
      const banded = view.band && shown.length <= 4;
      series.push({ show: item.old.includes(true), stroke: `${stroke}66`, dash: [3, 3], width: 1.2, points: { show: few, size: 4, fill: `${stroke}66` } });
      series.push({ show: banded, stroke: "transparent", width: 0, points: { show: false } });
      series.push({ show: banded, stroke: "transparent", width: 0, points: { show: false } });
      if (banded) bands.push({ series: [4 * number + 4, 4 * number + 3], fill: `${stroke}30` });
    });
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
    const width = Math.max(chart.clientWidth - 16, 240);
    const time = view.x === "time";
    const options = {
      width,
      height: width < 500 ? 300 : 400,
      padding: [12, 12, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 7 }, focus: { prox: -1 } },
      scales: {
        x: { time, range: (_, low, high) => xRange(low, high) },
        y: { distr: view.y === "log" ? 3 : 1, range: view.y === "log" ? undefined : (_, low, high) => yRange(low, high) },
      },
      axes: [
        { ...axis, space: 84, values: time ? undefined : (_, splits) => splits.map((at) => commitTick(at, splits.at(-1) - splits[0])) },
        { ...axis, size: 62, label: name, labelSize: 18, labelFont: "12px system-ui, sans-serif", values: (_, splits) => splits.map((at) => (at === null ? "" : tick(at / by))) },
      ],
      series,
      bands,
      hooks: {
        setCursor: [(self) => { if (self.cursor.idx !== null && self.cursor.idx !== undefined && !keyboard) tell(self.cursor.idx); }],
        setSelect: [(self) => {
          if (self.select.width < 4) return;
          const low = self.posToVal(self.select.left, "x");
          const high = self.posToVal(self.select.left + self.select.width, "x");
          self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          zoom(low, high);
        }],
        drawClear: [marks],
        // How long it took since the data were there: what `tests/browser` and a curious reader can look up.
        draw: [() => { if (arrived) chart.dataset.drawMs = (performance.now() - arrived).toFixed(1); arrived = 0; }],
      },
    };
    plot = new uPlot(options, drawn.columns, chart);
    plot.over.addEventListener("dblclick", whole);
    plot.over.addEventListener("click", () => { if (plot.cursor.idx !== null) fix(plot.cursor.idx); });
    chart.dataset.drawn = String(drawn.places.length);
  }

  const tick = (number) => (Number.isInteger(number) ? String(number) : String(Number(number.toPrecision(6))));

  // A few commits are named, many are dated: those of one day would all read the same.
  function commitTick(at, span) {
    const place = Math.round(at);
    if (Math.abs(at - place) > 1e-6 || commits.date[place] === undefined) return "";
    return span < 14 ? commitName(place) : day(commits.date[place]);
  }

  const xOf = (place) => (view.x === "time" ? commits.date[place] / 1000 : place);

  function xRange(low, high) {
    if (view.from !== null && view.to !== null) {
      const ends = [xOf(view.from), xOf(view.to)].sort((a, b) => a - b);
      if (ends[1] > ends[0]) return ends;
    }
    const room = (high - low) * 0.01 || (view.x === "time" ? 86400 : 1);
    return [low - room, high + room];
  }

  function yRange(low, high) {
    if (low === null || high === null) return [0, 1];
    const room = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
    return [view.zero && low > 0 ? 0 : low - room, high + room];
  }

  // Changes and events lie under the lines.
  function marks(self) {
    const context = self.ctx;
    const { left, top, width, height } = self.bbox;
    context.save();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
    const vertical = (place, stroke, dash, thickness) => {
      const at = Math.round(self.valToPos(xOf(place), "x", true)) + 0.5;
      if (at < left || at > left + width) return;
      context.strokeStyle = stroke;
      context.lineWidth = thickness * devicePixelRatio;
      context.setLineDash(dash.map((part) => part * devicePixelRatio));
      context.beginPath();
      context.moveTo(at, top);
      context.lineTo(at, top + height);
      context.stroke();
    };
    if (view.events) for (const place of events().keys()) vertical(place, colour("--warn"), [2, 4], 1);
    if (view.changes) {
      for (const item of shown) {
        for (const change of item.changes) {
          const kind = { regression: "--bad", improvement: "--good" }[change.verdict] || "--warn";
          vertical(item.position[change.point], colour(kind), [6, 4], 1.3);
        }
      }
    }
    context.restore();
  }

  function events() {
    const found = new Map();
    const places = new Set(shown.map((item) => `${item.machine}/${item.environment}`));
    for (const event of commits.events) {
      if (places.has(`${event.machine}/${event.environment}`)) {
        const texts = found.get(event.commit) || new Set();
        found.set(event.commit, texts.add(event.text));
      }
    }
    return found;
  }

  // ---- what is said --------------------------------------------------------------------------------------------
  const varying = dimensions.map((fieldset) => fieldset.dataset.dimension);
  function label(item) {
    const parts = varying.filter((dimension) => new Set(shown.map((other) => other.row[dimension])).size > 1)
      .map((dimension) => item.row[dimension]);
    return parts.join(" · ") || varying.map((dimension) => item.row[dimension]).join(" · ") || app.dataset.benchmark.split(".").pop();
  }

  const commitName = (place) => commits.tags[place]?.at(-1) || commits.hash[place].slice(0, 8);

  function interval(item, point) {
    const [low, high, number] = [item.low[point], item.high[point], item.value[point]];
    return low === null || high === null || !number ? "" : ` ± ${digits(50 * Math.abs((high - low) / number), 2)} %`;
  }

  function tell(at) {
    const place = drawn.places[at];
    if (place === undefined) return;
    const parts = [element("strong", {}, commitName(place)), ` ${day(commits.date[place])}  `];
    shown.forEach((item, number) => {
      const point = item.position.indexOf(place);
      if (point < 0) return;
      const text = item.value[point] === null ? item.state[point] : value(item.value[point], app.dataset.unit) + interval(item, point);
      parts.push(shown.length > 1 ? element("span", { class: `k${(number % 8) + 1}` }, `${label(item)}: `) : "", text, item.old[point] ? " (older version of the benchmark)" : "", shown.length > 1 ? "; " : "");
      const change = view.changes && item.changes.find((step) => step.point === point);
      if (change) parts.push(" ", badge(change.verdict), ` ${change.words} `);
    });
    const around = view.events && events().get(place);
    if (around) parts.push(" ", element("span", { class: "badge running" }, "changed around it"), ` ${[...around].join("; ")}`);
    readout.replaceChildren(...parts);
  }

  function fix(at) {
    focus = at;
    tell(at);
    const place = drawn.places[at];
    const item = shown.find((other) => other.position.includes(place));
    if (!item || !reproduce) return;
    reproduce.textContent = command(item, commits.hash[place]);
    document.querySelector("[data-reproduce-what]").textContent = `${commitName(place)}${shown.length > 1 ? `, ${label(item)}` : ""}`;
  }

  // As pages/common.py writes it: quotes in a pattern are any character, or a shell would need them quoted again.
  function command(item, hash) {
    const called = item.params.length ? `${item.benchmark}(${item.params.join(", ")})` : item.benchmark;
    const pattern = `^${called.replace(/[\\^$.|?*+()[\]{}&#~]/g, "\\$&")}$`.replace(/['"]/g, ".");
    const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text}'`);
    const runner = item.row.stack ? `machmeter run --stack ${quoted(item.row.stack)}` : "asv run";
    return `${runner} -b ${quoted(pattern)} ${quoted(`${hash}^!`)}`;
  }

  function zoom(low, high) {
    const inside = drawn.places.filter((place) => xOf(place) >= low && xOf(place) <= high);
    if (inside.length < 2) return;
    view.from = inside[0];
    view.to = inside.at(-1);
    after();
  }

  function whole() {
    view.from = view.to = null;
    after();
  }

  function legendItems() {
    legend.replaceChildren(...shown.map((item, number) => {
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      svg.setAttribute("viewBox", "0 0 28 10");
      svg.setAttribute("aria-hidden", "true");
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("class", `line c${(number % 8) + 1}${["", " d2", " d3", " d4"][Math.floor(number / 8) % 4]}`);
      path.setAttribute("d", "M0 5H28");
      svg.append(path);
      return element("li", {}, svg, label(item));
    }));
  }

  // ---- the same numbers, as a table ----------------------------------------------------------------------------
  function inView() {
    return [...drawn.places].filter((place) => {
      if (view.from === null || view.to === null) return true;
      const [low, high] = [xOf(view.from), xOf(view.to)].sort((a, b) => a - b);
      return xOf(place) >= low && xOf(place) <= high;
    });
  }

  function numbers() {
    const places = inView().reverse();
    const points = shown.map((item) => new Map(item.position.map((place, point) => [place, point])));
    const head = element("tr", {}, element("th", { scope: "col" }, "Commit"), element("th", { scope: "col" }, "Date"),
      ...shown.map((item) => element("th", { scope: "col", class: "num" }, label(item))));
    const body = places.slice(0, listed).map((place) => element("tr", {},
      element("th", { scope: "row", class: "mono" }, commitName(place)),
      element("td", { class: "when" }, day(commits.date[place])),
      ...shown.map((item, number) => {
        const point = points[number].get(place);
        if (point === undefined) return element("td", { class: "num" }, NONE);
        if (item.value[point] === null) return element("td", { class: "num" }, badge(item.state[point]));
        const cell = element("td", { class: item.old[point] ? "num quiet" : "num", "data-value": item.value[point] }, value(item.value[point], app.dataset.unit));
        const error = interval(item, point);
        if (error) cell.append(" ", element("span", { class: "quiet" }, error.trim()));
        return cell;
      })));
    const caption = `${Math.min(listed, places.length)} of ${places.length} commits in the plot, newest first`;
    const made = element("table", { id: "points-live" }, element("caption", {}, caption), element("thead", {}, head), element("tbody", {}, ...body));
    const more = places.length > listed ? element("button", { type: "button" }, `Show ${Math.min(8 * PAGE, places.length - listed)} more`) : null;
    more?.addEventListener("click", () => { listed += 8 * PAGE; numbers(); });
    livePoints.replaceChildren(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers in the plot" }, made), ...(more ? [more] : []));
  }

  function save(name, type, text) {
    const address = URL.createObjectURL(new Blob([text], { type }));
    const link = element("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }

  const records = () => shown.flatMap((item) => item.position.map((place, point) => ({
    benchmark: app.dataset.benchmark, machine: item.machine, environment: item.environment,
    params: item.params.join(", "), commit: commits.hash[place], date: new Date(commits.date[place]).toISOString(),
    value: item.value[point], low: item.low[point], high: item.high[point], unit: app.dataset.unit, state: item.state[point], version: item.version[point],
  })).filter((record, point) => inside(item.position[point])));

  function inside(place) {
    return view.from === null || view.to === null || (place >= Math.min(view.from, view.to) && place <= Math.max(view.from, view.to));
  }

  function csv() {
    const list = records();
    const columns = Object.keys(list[0] || { benchmark: "" });
    // A spreadsheet must not run a name that begins like a formula.
    const cell = (given) => {
      const text = given === null || given === undefined ? "" : String(given);
      const safe = typeof given === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
      return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    };
    return [columns, ...list.map((record) => columns.map((name) => record[name]))].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
  }

  // ---- keyboard ------------------------------------------------------------------------------------------------
  let keyboard = false;
  chart.addEventListener("pointermove", () => { keyboard = false; });
  chart.addEventListener("keydown", (event) => {
    if (!plot) return;
    const last = drawn.places.length - 1;
    const visible = inView();
    const ends = [drawn.index.get(visible[0]), drawn.index.get(visible.at(-1))];
    const at = focus ?? last;
    const act = {
      ArrowLeft: () => move(Math.max(at - 1, ends[0])), ArrowRight: () => move(Math.min(at + 1, ends[1])),
      Home: () => move(ends[0]), End: () => move(ends[1]),
      "+": () => around(at, 0.5), "=": () => around(at, 0.5), "-": () => around(at, 2), 0: whole, Escape: whole,
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keyboard = true;
    act();
  });

  function move(at) {
    fix(at);
    const left = plot.valToPos(drawn.columns[0][at], "x");
    const top = plot.valToPos(drawn.columns[1][at] ?? 0, "y");
    plot.setCursor({ left, top: Number.isFinite(top) ? top : 10 });
  }

  function around(at, factor) {
    const [low, high] = [plot.scales.x.min, plot.scales.x.max];
    const middle = drawn.columns[0][at];
    const half = ((high - low) * factor) / 2;
    const ends = [drawn.columns[0][0], drawn.columns[0].at(-1)];
    if (middle - half <= ends[0] && middle + half >= ends[1]) return whole();
    return zoom(middle - half, middle + half);
  }

  // ---- together ------------------------------------------------------------------------------------------------
  function controls() {
    for (const button of app.querySelectorAll("[data-x]")) button.setAttribute("aria-pressed", String(button.dataset.x === view.x));
    for (const button of app.querySelectorAll("[data-y]")) button.setAttribute("aria-pressed", String(button.dataset.y === view.y));
    for (const box of app.querySelectorAll("[data-toggle]")) box.checked = view[box.dataset.toggle];
  }

  let turn = 0;
  let arrived = 0;
  async function update() {
    const mine = (turn += 1);
    const wanted = chosenRows();
    const taken = wanted.slice(0, MOST_LINES);
    const files = await Promise.all(taken.map((row) => load(`${data}series/${row.series}.json`)));
    if (mine !== turn) return;
    arrived = performance.now();
    shown = files.map((file, number) => ({ ...decode(file), row: taken[number] }));
    after();
    if (wanted.length > taken.length) readout.textContent = `${taken.length} of ${wanted.length} chosen series are drawn: choose fewer values.`;
  }

  function after() {
    listed = PAGE;
    focus = null;
    controls();
    draw();
    readout.textContent = "";
    writeFragment();
    // The plot first: it is painted before the words around it are laid out.
    setTimeout(() => { legendItems(); numbers(); });
  }

  app.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.x) { view.x = button.dataset.x; after(); }
    if (button.dataset.y) { view.y = button.dataset.y; after(); }
    if (button.dataset.act === "out") whole();
    if (button.dataset.act === "link") { writeFragment(); copyLink(button); }
  });
  app.addEventListener("change", (event) => {
    const toggle = event.target.dataset.toggle;
    if (toggle) { view[toggle] = event.target.checked; after(); return; }
    if (event.target.closest("[data-dimension]")) update();
  });
  document.querySelector('[data-act="csv"]').addEventListener("click", () => save("series.csv", "text/csv", csv()));
  document.querySelector('[data-act="json"]').addEventListener("click", () => save("series.json", "application/json", JSON.stringify(records(), null, 1)));
  addEventListener("hashchange", () => { readFragment(); update(); });
  document.addEventListener("themechange", () => { if (plot) draw(); });
  let size = 0;
  new ResizeObserver(() => { if (plot && Math.abs(chart.clientWidth - size) > 2) { size = chart.clientWidth; draw(); } }).observe(chart);

  commits = await load(`${data}timeline.json`);
  readFragment();
  live.hidden = false;
  size = chart.clientWidth;
  await update();
  app.querySelector("[data-static]").hidden = true;
  document.querySelector("[data-static-points]").hidden = true;
  livePoints.hidden = false;
  document.querySelector("[data-downloads]").hidden = false;
}
