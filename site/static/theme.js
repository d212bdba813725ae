// Runs before the first paint: a chosen theme must not flash the other one.
(function () {
  try {
    var chosen = localStorage.getItem("theme");
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  } catch { /* storage is refused: the system's scheme holds */ }
})();
