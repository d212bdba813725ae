// Compare any two runs, or swept versions, of one machine: which columns, and their rows. `two_runs.js` judges.
import { column } from "./decode.js";
import { filterable, sortable } from "./tables.js";
import { compare, differences, summary } from "./two_runs.js";
import { badge, copyLink, day, element, load, NONE, value } from "./words.js";

const app = document.getElementById("compare");
if (app) start().catch((error) => {
  app.hidden = false;
  app.querySelector("[data-status]").textContent = `The data cannot be loaded (${error.message}): the table below is what there is.`;
});

async function start() {
  const { data } = app.dataset;
  const rules = JSON.parse(app.dataset.rules);
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
          group: environment.label, environment, place, commit, host: { facts: runs.hosts[group.host[place]], noted: runs.noted[group.host[place]] },
          packages: runs.packages[group.packages[place]],
          label: `${tag ? `${tag} ` : ""}${commits.hash[commit].slice(0, 8)} · ${day(commits.date[commit])}`,
        });
      });
    }
    for (const [key, column] of Object.entries(swept.machines[slug] || {})) {
      found.set(key, { group: `Versions of ${column.library}`, version: column, label: `${column.library} ${column.version}${column.released ? ` · ${column.released}` : ""}`, host: { facts: {}, noted: null }, packages: {} });
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
          found.set(name, { name, params: "", unit: metric.unit, direction: metric.direction, smallest: metric.smallest, href: "versions.html", value: given, spread: 0, version: 0, state: given === null ? numbers.status : "ok" });
        }
      }
      return found;
    }
    const folder = `${data}columns/${slug}/${side.environment.slug}`;
    const scale = await load(`${folder}/scale.json`);
    const block = await load(`${folder}/${String(Math.floor(side.place / scale.runs_per_file)).padStart(3, "0")}.json`);
    for (const [at, point] of column(scale, block, side.place).entries()) {
      const benchmark = index.benchmarks[scale.benchmark[at]];
      const params = benchmark.params[scale.params[at]];
      if (point) found.set(`${benchmark.name}(${params.join(", ")})`, {
        ...point, name: benchmark.name, params: label(benchmark, params), unit: benchmark.unit, direction: benchmark.direction,
        smallest: benchmark.smallest, href: `history/${benchmark.slug}.html#s=${scale.key[at]}`,
      });
    }
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
    const differs = differences(base.host, head.host, rules);
    render(compare(before, after, differs.length === 0, rules), base, head, differs);
  }

  function render(rows, base, head, differs) {
    status.textContent = summary(rows, rules);
    const parts = [];
    if (differs.length) parts.push(element("p", { class: "banner bad" }, `Not comparable: ${differs.join(", ")}. Values are shown without percentages.`));
    const libraries = [...new Set([...Object.keys(base.packages), ...Object.keys(head.packages)])].sort()
      .filter((name) => Object.keys(base.packages).length && Object.keys(head.packages).length && base.packages[name] !== head.packages[name])
      .map((name) => `${name} ${base.packages[name] || "absent"} → ${head.packages[name] || "absent"}`);
    if (libraries.length) parts.push(element("details", {}, element("summary", {}, `${libraries.length} installed packages differ`), libraries.join(", ")));
    const cells = ["Verdict", "Effect", "Benchmark", "Base", "Head"];
    const head_ = element("tr", {}, ...cells.map((title, at) => element("th", { scope: "col", class: [1, 3, 4].includes(at) ? "num" : null, "data-filter": at === 0 }, title)));
    const body = element("tbody", {}, ...rows.map((row) => element("tr", {},
      element("td", {}, badge(row.verdict)),
      element("td", { class: "num effect", "data-value": row.size }, row.words || NONE),
      element("th", { scope: "row" }, element("a", { href: row.about.href }, row.about.name), row.about.params ? element("span", { class: "quiet" }, ` ${row.about.params}`) : null),
      element("td", { class: "num", "data-value": row.before }, row.before === null ? row.stateBefore || NONE : value(row.before, row.about.unit)),
      element("td", { class: "num", "data-value": row.after }, row.after === null ? row.stateAfter || NONE : value(row.after, row.about.unit)))));
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
