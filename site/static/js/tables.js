// Sorting and filtering of the tables that the page already has.
import { element } from "./words.js";

function sortKey(cell) {
  const given = cell.dataset.value;
  if (given !== undefined) return Number(given);
  const text = cell.textContent.trim();
  if (text === "–" || text === "") return null;
  if (cell.classList.contains("num")) {
    const number = Number.parseFloat(text.replaceAll("−", "-"));
    return Number.isNaN(number) ? text : number;
  }
  return text;
}

const collator = new Intl.Collator("en", { numeric: true });

// What has no value stays at the end, whichever way the others go.
export function compareKeys(a, b, descending) {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  const order = a === b ? 0 : typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
  return descending ? -order : order;
}

export function sortable(table) {
  const head = table.tHead?.rows[0];
  if (!head) return;
  [...head.cells].forEach((cell, column) => {
    const button = element("button", { type: "button" });
    button.append(...cell.childNodes);
    cell.append(button);
    button.addEventListener("click", () => {
      const current = cell.getAttribute("aria-sort");
      const descending = current ? current === "ascending" : cell.classList.contains("num");
      for (const other of head.cells) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const body = table.tBodies[0];
      const rows = [...body.rows].map((row) => [sortKey(row.cells[column]), row]);
      rows.sort((a, b) => compareKeys(a[0], b[0], descending));
      body.append(...rows.map((pair) => pair[1]));
    });
  });
}

export function filterable(table) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 4) return;
  const tools = element("div", { class: "tools" });
  const search = element("input", { type: "search", placeholder: "any words" });
  tools.append(element("label", {}, "Filter", search));
  const chosen = [];
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    if (!("filter" in cell.dataset)) return;
    const values = [...new Set(rows.map((row) => row.cells[column].textContent.trim()))].sort(collator.compare);
    if (values.length < 2) return;
    const select = element("select", {}, element("option", { value: "" }, "all"));
    for (const value of values) select.append(element("option", { value }, value));
    tools.append(element("label", {}, cell.textContent.trim(), select));
    chosen.push([column, select]);
  });
  const count = element("span", { class: "note", role: "status" });
  tools.append(count);
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits = words.every((word) => text.includes(word)) &&
        chosen.every(([column, select]) => !select.value || row.cells[column].textContent.trim() === select.value);
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    count.textContent = shown === rows.length ? `${rows.length} rows` : `${shown} of ${rows.length} rows`;
  };
  tools.addEventListener("input", apply);
  apply();
  table.closest(".scroll").before(tools);
}

// One search over all tables of a page, hiding what has nothing left.
export function filterSections(input) {
  const sections = [...document.querySelectorAll("[data-filter-section]")];
  const apply = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const section of sections) {
      const title = section.querySelector("h2").textContent.toLowerCase();
      let left = 0;
      for (const row of section.querySelectorAll("tbody tr")) {
        const text = `${title}.${row.cells[0].textContent.toLowerCase()}`;
        row.hidden = !words.every((word) => text.includes(word));
        left += row.hidden ? 0 : 1;
      }
      section.hidden = left === 0;
    }
  };
  input.addEventListener("input", apply);
  apply();
}
