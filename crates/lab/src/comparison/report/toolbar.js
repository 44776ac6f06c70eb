"use strict";
/** Greatest number of tasks that the legend lists in full; of a larger set it lists a third of this number. */
const MOST_NAMED = 36;

/** Fills the legend: what the colors and marks mean. */
function legend() {
  const list = document.getElementById("legend");
  list.replaceChildren();
  const entry = (symbol, text) => {
    const item = make("li", list);
    const svg = makeSvg("svg", item, { width: 14, height: 14, "aria-hidden": "true" });
    symbol.forEach(([name, attributes]) => makeSvg(name, svg, attributes));
    item.append(text);
  };
  const square = (fill) => ["rect", { x: 0, y: 1, width: 14, height: 12, fill }];
  const lines = (d, stroke, width) => ["path", { d, stroke, "stroke-width": width, fill: "none" }];
  entry([lines("M3 3l8 8m0 -8l-8 8", theme.bad, 2.5)], "missed deadline");
  entry([square(theme.mark), lines("M-2 10l12 -12M2 14l12 -12", theme.ground, 1.6)], "ran, but its job missed its deadline");
  if (page.critical.some(Boolean)) entry([["rect", { x: 1, y: 2, width: 12, height: 10, fill: "none", stroke: theme.ink, "stroke-width": 1.5 }]], "critical task");
  if (page.by_task) {
    entry([lines("M7 13V1m-3 4l3 -4l3 4", theme.mark, 1)], "release");
    entry([lines("M7 1v12m-3 -4l3 4l3 -4", theme.mark, 1)], "deadline");
  }
  legend.hasParting = page.parts_ns != null;
  if (legend.hasParting) entry([lines("M7 0v14", theme.focus, 2)], "first difference of the two");
  const names = coloursAreCores() ? Array.from({ length: page.cores }, (_, core) => page.core_names[core]) : page.tasks;
  const most = names.length > MOST_NAMED ? MOST_NAMED / 3 : names.length;
  names.slice(0, most).forEach((name, index) => entry([square(colour(index))], name));
  page.resources.slice(0, 8).forEach((name, index) => entry([["rect", { x: 0, y: 5, width: 14, height: 4, fill: colour(page.tasks.length + index) }]], `holds ${name}`));
  if (page.resources.length && page.by_task) entry([["rect", { x: 1, y: 2, width: 12, height: 8, fill: "none", stroke: theme.soft, "stroke-dasharray": "1 2" }]], "waits for a resource");
  if (names.length > most) make("li", list, `and ${names.length - most} more, whose colours repeat: a bar with room has its name, and pointing at one tells its job`);
}

function redraw() {
  readTheme();
  legend();
  charts.forEach((chart) => chart.resize());
  show(shown.from, shown.to);
}

/** Number of schedules that can be seen at once. */
const PLACES = 3;
const byTask = document.getElementById("by-task");

/** Draws the data of a comparison in the empty page, from the part of the time axis that is legible. */
function start(data) {
  take(data);
  [shown.from, shown.to] = page.first_view_ns;
  readTheme();
  for (let place = 0; place < PLACES; place++) charts.push(new Chart(page.chosen[place], document.getElementById("charts"), place));
  byTask.checked = page.by_task;
  tellParting();
  redraw();
  if (page.responses.length) drawResponses();
}

byTask.addEventListener("change", () => {
  page.by_task = byTask.checked;
  redraw();
});
document.querySelectorAll(".tools button").forEach((button) =>
  button.addEventListener("click", () => charts.find((chart) => chart.schedule)?.key(button.dataset.key))
);
addEventListener("resize", () => page && redraw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page && redraw());
