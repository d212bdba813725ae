// Compare any two runs, or swept versions, of one machine. `tools/machmeter/site/pages/compare.py` judges alike.
import { COARSE_LEVELS, number, runs as repeated } from "./decode.js";
import { filterable, sortable } from "./tables.js";
import { badge, copyLink, day, element, load, NONE, percent, value } from "./words.js";

const LEAST = 0.02;
const ORDER = ["failed", "removed", "worse", "change", "better", "fixed", "new", "not comparable", "same"];
const LOST = new Set(["failed", "unreadable"]);
const INCOMPARABLE = ["CPU", "GPU", "driver", "thread budget", "CPU quota", "physical cores", "logical CPUs", "architecture"];
// Codes above the levels, as history/columns_export.py gives them.
const STATES = { 1: "", 2: "failed", 3: "unreadable", 4: "skipped" };

export function judge(base, head, direction, comparable = true) {
  if (head.value === null) return base.value === null ? ["same", null] : [LOST.has(head.state) ? "failed" : "removed", null];
  if (base.value === null) return [LOST.has(base.state) ? "fixed" : "new", null];
  if (!comparable) return ["not comparable", null];
  if (base.value === 0) return [head.value === 0 ? "same" : "change", null];
  const effect = head.value / base.value - 1;
  if (Math.abs(effect) < Math.max(LEAST, base.error + head.error)) return ["same", effect];
  if (!direction) return ["change", effect];
  return [(effect > 0) === (direction === "higher") ? "better" : "worse", effect];
}

const app = document.getElementById("compare");
if (app) start().catch((error) => {
  app.hidden = false;
  app.querySelector("[data-status]").textContent = `The data cannot be loaded (${error.message}): the table below is what there is.`;
});

async function start() {
  const data = app.dataset.data;
  const [index, runs, swept] = await Promise.all(["index", "runs", "versions"].map((name) => load(`${data}${name}.json`)));
  const picks = Object.fromEntries([...app.querySelectorAll("[data-pick]")].map((select) => [select.dataset.pick, select]));
  const status = app.querySelector("[data-status]");
  const result = app.querySelector("[data-result]");
  const commits = index.commits;
  let columns = new Map();

  // Everything that can be a side, by its name in the address: environment@commit, or library@version.
  function sides(slug) {
    const found = new Map();
    const machine = index.machines.findIndex((item) => item.slug === slug);
    for (const group of runs.runs.filter((item) => item.machine === machine)) {
      const environment = index.environments[group.environment];
      group.commit.forEach((commit, place) => {
        const tag = commits.tags[commit]?.at(-1);
        found.set(`${environment.slug}@${commits.hash[commit].slice(0, 12)}`, {
          group: environment.label, environment, place, commit, host: runs.hosts[group.host[place]],
          packages: runs.packages[group.packages[place]],
          label: `${tag ? `${tag} ` : ""}${commits.hash[commit].slice(0, 8)} · ${day(commits.date[commit])}`,
        });
      });
    }
    for (const [key, column] of Object.entries(swept.machines[slug] || {})) {
      found.set(key, { group: `Versions of ${column.library}`, version: column, label: `${column.library} ${column.version}${column.released ? ` · ${column.released}` : ""}`, host: {}, packages: {} });
    }
    return found;
  }

  function fill(select) {
    const groups = new Map();
    for (const [key, side] of columns) {
      if (!groups.has(side.group)) groups.set(side.group, []);
      groups.get(side.group).unshift([key, side]);
    }
    select.replaceChildren(...[...groups].map(([name, items]) => element("optgroup", { label: name || "default" },
      ...items.map(([key, side]) => element("option", { value: key }, side.label)))));
  }

  // Without a wish: the newest run, and the one before it in the same environment.
  function usual() {
    const { base, head } = picks.machine.selectedOptions[0].dataset;
    if (columns.has(base) && columns.has(head)) return [base, head];
    const listed = [...columns].filter(([, side]) => side.environment);
    const newest = listed.reduce((best, entry) => (!best || entry[1].commit >= best[1].commit ? entry : best), null);
    if (!newest) return [...columns.keys()].slice(0, 2);
    const same = listed.filter(([, side]) => side.environment === newest[1].environment);
    const before = same.length > 1 ? same.at(-2) : listed.find((entry) => entry !== newest) || newest;
    return [before[0], newest[0]];
  }

  function setMachine(slug) {
    picks.machine.value = slug;
    columns = sides(picks.machine.value);
    fill(picks.base);
    fill(picks.head);
    const [base, head] = usual();
    picks.base.value = base;
    picks.head.value = head;
  }

  async function points(side, slug) {
    const found = new Map();
    if (side.version) {
      for (const [cell, numbers] of Object.entries(side.version.numbers)) {
        for (const metric of swept.metrics) {
          const given = numbers[metric.title];
          if (given === null && !(numbers.status === "failed" && metric.title === "throughput")) continue;
          const name = `${cell}: ${metric.title}`;
          found.set(name, { name, params: "", unit: metric.unit, direction: metric.direction, href: "versions.html", value: given, error: 0, state: given === null ? numbers.status : "ok" });
        }
      }
      return found;
    }
    const folder = `${data}columns/${slug}/${side.environment.slug}`;
    const scale = await load(`${folder}/scale.json`);
    const block = await load(`${folder}/${String(Math.floor(side.place / scale.runs_per_file)).padStart(3, "0")}.json`);
    const text = block.value[side.place % scale.runs_per_file];
    const even = new Set(scale.even);
    const versions = Object.fromEntries(Object.entries(scale.versions).map(([at, pairs]) => [at, repeated(pairs)[side.place]]));
    scale.key.forEach((key, at) => {
      const code = 2 * at < text.length ? number(text, at, 2) : COARSE_LEVELS + 4;
      const benchmark = index.benchmarks[scale.benchmark[at]];
      const params = benchmark.params[scale.params[at]];
      let given = null;
      let state = "ok";
      if (code > COARSE_LEVELS) {
        state = STATES[code - COARSE_LEVELS] ?? "";
        if (!state) return;
      } else {
        const [from, to, share] = [scale.from[at], scale.to[at], code / COARSE_LEVELS];
        given = even.has(at) ? (1 - share) * from + share * to : from * Math.exp(share * (Math.log(to) - Math.log(from)));
      }
      found.set(`${benchmark.name}(${params.join(", ")})`, {
        name: benchmark.name, params: label(benchmark, params), unit: benchmark.unit, direction: benchmark.direction,
        href: `history/${benchmark.slug}.html#s=${key}`, value: given, error: scale.spread[at] || 0, state, version: versions[scale.benchmark[at]] ?? 0,
      });
    });
    return found;
  }

  function label(benchmark, params) {
    return params.map((text, at) => {
      const shown = /^(['"]).*\1$/.test(text) && text.length > 1 ? text.slice(1, -1) : text;
      const name = benchmark.param_names[at];
      return name && !/^param\d+$/.test(name) && /^[-+0-9.eE]+$|^(True|False|None)$/.test(shown) ? `${name}=${shown}` : shown;
    }).join(", ");
  }

  let turn = 0;
  async function show() {
    const mine = (turn += 1);
    const [slug, a, b] = [picks.machine.value, picks.base.value, picks.head.value];
    history.replaceState(null, "", `#${new URLSearchParams({ m: slug, a, b })}`);
    const [base, head] = [columns.get(a), columns.get(b)];
    if (!base || !head) { status.textContent = "Nothing to compare on this machine."; result.replaceChildren(); return; }
    status.textContent = "Loading …";
    const [before, after] = await Promise.all([points(base, slug), points(head, slug)]);
    if (mine !== turn) return;
    const differs = INCOMPARABLE.filter((name) => base.host[name] && head.host[name] && base.host[name] !== head.host[name]);
    const none = { value: null, state: "", error: 0 };
    const rows = [];
    for (const key of new Set([...before.keys(), ...after.keys()])) {
      const [old, now] = [before.get(key) || none, after.get(key) || none];
      if (old.value === null && now.value === null) continue;
      const about = after.get(key) || before.get(key);
      // Another version of a benchmark measures something else.
      const sameWork = old.value === null || now.value === null || old.version === now.version;
      const [verdict, effect] = judge(old, now, about.direction, differs.length === 0 && sameWork);
      rows.push({ ...about, verdict, effect, old: old.value, now: now.value, oldState: old.state, nowState: now.state });
    }
    rows.sort((x, y) => ORDER.indexOf(x.verdict) - ORDER.indexOf(y.verdict) || Math.abs(y.effect || 0) - Math.abs(x.effect || 0) || (x.name < y.name ? -1 : 1));
    render(rows, base, head, differs);
  }

  function render(rows, base, head, differs) {
    const counts = ORDER.map((verdict) => [verdict, rows.filter((row) => row.verdict === verdict).length]).filter((pair) => pair[1]);
    const common = rows.filter((row) => row.effect !== null && row.direction && row.old > 0 && row.now > 0);
    // Geometric mean of the speed-up over what both have, and no more than that.
    const mean = common.length ? Math.exp(common.reduce((sum, row) => sum + (row.direction === "higher" ? 1 : -1) * Math.log(row.now / row.old), 0) / common.length) : null;
    status.textContent = rows.length
      ? `${rows.length} numbers: ${counts.map(([verdict, count]) => `${count} ${verdict}`).join(", ")}.${mean ? ` Geometric mean ×${mean.toFixed(3)} (above 1 is better) over the ${common.length} that both have.` : ""}`
      : "These two have no number in common.";
    const parts = [];
    if (differs.length) parts.push(element("p", { class: "banner bad" }, `Not comparable: ${differs.map((name) => `${name} ${base.host[name]} → ${head.host[name]}`).join("; ")}. Values are shown without percentages.`));
    const libraries = [...new Set([...Object.keys(base.packages), ...Object.keys(head.packages)])].sort()
      .filter((name) => Object.keys(base.packages).length && Object.keys(head.packages).length && base.packages[name] !== head.packages[name])
      .map((name) => `${name} ${base.packages[name] || "absent"} → ${head.packages[name] || "absent"}`);
    if (libraries.length) parts.push(element("details", {}, element("summary", {}, `${libraries.length} installed packages differ`), libraries.join(", ")));
    const cells = ["Verdict", "Effect", "Benchmark", "Base", "Head"];
    const head_ = element("tr", {}, ...cells.map((title, at) => element("th", { scope: "col", class: [1, 3, 4].includes(at) ? "num" : null, "data-filter": at === 0 }, title)));
    const body = element("tbody", {}, ...rows.map((row) => element("tr", {},
      element("td", {}, badge(row.verdict)),
      element("td", { class: "num", "data-value": row.effect === null ? null : Math.abs(row.effect) }, row.effect === null ? NONE : percent(row.effect)),
      element("th", { scope: "row" }, element("a", { href: row.href }, row.name), row.params ? element("span", { class: "quiet" }, ` ${row.params}`) : null),
      element("td", { class: "num", "data-value": row.old }, row.old === null ? row.oldState || NONE : value(row.old, row.unit)),
      element("td", { class: "num", "data-value": row.now }, row.now === null ? row.nowState || NONE : value(row.now, row.unit)))));
    const of = base.group === head.group ? "" : `${base.group}, `;
    const caption = `${of}${base.label} against ${base.group === head.group ? "" : `${head.group}, `}${head.label}: failures first, then by effect`;
    const table = element("table", { id: "comparison" }, element("caption", {}, caption), element("thead", {}, head_), body);
    const scroll = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Comparison" }, table);
    result.replaceChildren(...parts, scroll);
    filterable(table);
    sortable(table);
  }

  function fromFragment() {
    const given = new URLSearchParams(location.hash.slice(1));
    const known = [...picks.machine.options].map((option) => option.value);
    setMachine(known.includes(given.get("m")) ? given.get("m") : known[0]);
    for (const [name, pick] of [["a", picks.base], ["b", picks.head]]) {
      const wanted = given.get(name);
      if (columns.has(wanted)) pick.value = wanted;
    }
    return show();
  }

  picks.machine.addEventListener("change", () => { setMachine(picks.machine.value); show(); });
  picks.base.addEventListener("change", show);
  picks.head.addEventListener("change", show);
  app.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  app.addEventListener("click", (event) => {
    const act = event.target.closest("button")?.dataset.act;
    if (act === "swap") { [picks.base.value, picks.head.value] = [picks.head.value, picks.base.value]; show(); }
    if (act === "link") copyLink(event.target.closest("button"));
  });
  addEventListener("hashchange", fromFragment);
  if (!picks.machine.options.length) return;
  app.hidden = false;
  await fromFragment();
  document.querySelector("section[aria-labelledby=newest]").hidden = true;
}
