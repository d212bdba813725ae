// What every page does: the theme button, tables, and the banner of a history that nobody continues.
import { filterable, filterSections, sortable } from "./tables.js";

const root = document.documentElement;
root.classList.add("js");

const dark = matchMedia("(prefers-color-scheme: dark)");
const button = document.querySelector("[data-theme-button]");
const current = () => root.dataset.theme || (dark.matches ? "dark" : "light");
function name() {
  const other = current() === "dark" ? "light" : "dark";
  button.textContent = other === "dark" ? "Dark" : "Light";
  button.setAttribute("aria-label", `Switch to the ${other} theme`);
}
button?.addEventListener("click", () => {
  root.dataset.theme = current() === "dark" ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* storage is refused: it holds for this page */ }
  name();
  document.dispatchEvent(new Event("themechange"));
});
dark.addEventListener("change", () => { name(); document.dispatchEvent(new Event("themechange")); });
name();

for (const table of document.querySelectorAll("table[data-sortable]")) {
  if ("filterable" in table.dataset) filterable(table);
  sortable(table);
}
const everything = document.querySelector("[data-filter-all]");
if (everything) filterSections(everything);

const STALE_DAYS = 14;
const banner = document.querySelector("[data-stale]");
const newest = Number(document.body.dataset.newest);
if (banner && newest) {
  const days = Math.floor((Date.now() - newest) / 864e5);
  if (days >= STALE_DAYS) {
    banner.textContent = `The newest result is ${days} days old: nobody has measured since.`;
    banner.hidden = false;
  }
}
