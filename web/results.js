"use strict";
/** The figures: schedules at once, and then the whole comparison. The first worker draws what changes, the second one does what takes longer. */
const quick = new Helper();
const long = new Helper((share, words) => {
  const bar = document.getElementById("progress");
  if (share < 0) bar.removeAttribute("value");
  else bar.value = share;
  document.getElementById("work-words").textContent = words;
});
/** Durations in milliseconds, from a change to the picture of it, for the measurement in `web/test`. */
const measured = { pictures: [], comparisons: [] };
/** Most that the clairvoyant optimum takes, in seconds of one core of a reference machine; that of the command line. */
const OPTIMUM = 5;
/** What the lab knows: sets and schedulers. */
let about = { sets: [], schedulers: [] };
/** The comparison that is shown; null while there is none. */
let comparison = null;

const nameOf = (spec) => spec.split(":")[0];
const isRule = (spec) => about.schedulers.some((entry) => entry.name === nameOf(spec) && entry.rule);
/** Greatest number of schedulers that are run while something is dragged: as many as are seen at once. */
const MOST_DRAGGED = 3;
/** The schedulers that are run while something is dragged: those that decide by a rule, the visible ones and EDF first. */
const rules = () => {
  const found = state.schedulers.filter(isRule);
  const seen = charts.map(({ schedule }) => schedule && plainName(schedule.name));
  const first = [...seen, "edf"].filter((name) => found.includes(name));
  return found.length ? [...new Set([...first, ...found])].slice(0, MOST_DRAGGED) : ["edf"];
};
const plainName = (shownName) => shownName.replace(/ \(.*\)$/, "");

/** Draws other data in place of what is shown, with where its schedules part, in words. Lists, window and rows stay as the reader chose them. */
function renew(data, words) {
  const view = state.view ?? [shown.from, shown.to];
  if (!charts.length) start(data);
  else {
    const names = charts.map((chart) => (chart.schedule ? plainName(chart.schedule.name) : null));
    const shapeOf = ({ tasks, cores, by_task, until_ns }) => JSON.stringify([tasks, cores, by_task, until_ns]);
    const before = shapeOf(page);
    if (byTask.checked !== page.by_task) data.by_task = byTask.checked;
    take(data);
    const isSameShape = before === shapeOf(page);
    charts.forEach((chart, place) => {
      const at = page.schedules.findIndex(({ name }) => plainName(name) === names[place]);
      const isKept = state.ownCharts && (at >= 0 || names[place] === null);
      chart.offer(isKept ? (at >= 0 ? at : undefined) : page.chosen[place]);
      const wasHidden = chart.canvas.hidden;
      chart.schedule = chart.select.value === "" ? null : schedule(+chart.select.value);
      chart.cursor = -1;
      chart.canvas.hidden = chart.list.hidden = !chart.schedule;
      if (!isSameShape || wasHidden !== chart.canvas.hidden) chart.resize();
    });
    if (!isSameShape) legend();
  }
  page.moment_ns = state.moment;
  Object.assign(parting, { words, ns: page.parts_ns });
  if (state.charts.length) chooseCharts(state.charts);
  tellParting();
  // Before the first schedule nothing was seen.
  show(...(view[1] > view[0] ? view : page.first_view_ns));
  state.view = null;
}

/** Chooses the schedules that are seen, by name; null is none. A name is waited for until its scheduler has run. They are not drawn yet. */
function chooseCharts(names) {
  if (names.every((name) => !name || page.schedules.some((of) => plainName(of.name) === name))) state.charts = [];
  charts.forEach((chart, place) => {
    const at = page.schedules.findIndex(({ name }) => plainName(name) === names[place]);
    if (at < 0 && names[place]) return;
    chart.select.value = at < 0 ? "" : at;
    chart.schedule = at < 0 ? null : schedule(at);
    chart.canvas.hidden = chart.list.hidden = !chart.schedule;
    chart.resize();
  });
}

document.getElementById("charts").addEventListener("change", () => {
  state.ownCharts = true;
  tellParting();
  charts.forEach((chart) => chart.draw());
  noteState();
});

/** Says where the schedules part that the lab chose, and marks the place, while they are the first two that are seen. */
const parting = { words: "", ns: null };
function tellParting() {
  const isSeen = [0, 1].every((place) => charts[place]?.select.value === String(page.chosen[place]));
  document.getElementById("parting").textContent = isSeen ? parting.words : "";
  page.parts_ns = isSeen ? parting.ns : null;
}

/** Draws the schedules of simple schedulers at once. Returns their shares in time. */
async function sketch() {
  const { paths } = written(), began = performance.now();
  try {
    const result = await quick.latest({ do: "schedules", ...runOf(rules()) });
    renew(result.data, result.parting);
    measured.pictures.push(performance.now() - began);
    forgetErrors();
    return result.shares;
  } catch (error) {
    if (error instanceof Cancelled) return null;
    if (!(error instanceof Refused)) throw error;
    refuse(error, paths);
    return null;
  }
}

const working = (isWorking) => (document.getElementById("work").hidden = !isWorking);
/** Says whether the ranking is that of what is shown, or is being worked out anew. */
const awaited = (isAwaited) => document.getElementById("ranking-section").setAttribute("aria-busy", isAwaited);

/** Compares all chosen schedulers, in place of a comparison that is still under way. */
async function compareAll() {
  const { paths } = written(), began = performance.now();
  long.end();
  working(true);
  document.getElementById("work-words").textContent = "";
  let isLatest = true;
  try {
    const result = await long.ask({ do: "compare", ...runOf(), optimum: OPTIMUM });
    comparison = result.report;
    showParts(result.parts);
    renew(result.data, result.parts.parting);
    drawResponses();
    forgetErrors();
    measured.comparisons.push(performance.now() - began);
  } catch (error) {
    if (error instanceof Cancelled) return void (isLatest = false);
    if (!(error instanceof Refused)) throw error;
    comparison = null;
    document.getElementById("verdict").textContent = "Not compared.";
    refuse(error, paths);
  } finally {
    if (isLatest) {
      working(false);
      awaited(false);
    }
  }
}

/** Puts HTML of the lab into a box, with tables that can be sorted. */
function put(id, html) {
  const box = document.getElementById(id);
  box.innerHTML = html;
  box.querySelectorAll("table.sortable").forEach(sortable);
}

function showParts(parts) {
  for (const [id, words] of [["verdict", parts.verdict], ["facts", parts.facts], ["ranking-hint", parts.ranking_hint]]) document.getElementById(id).textContent = words;
  const numbers = document.getElementById("numbers");
  numbers.replaceChildren();
  for (const [number, what] of parts.numbers) {
    const item = make("li", numbers);
    make("b", item, number);
    item.append(what);
  }
  put("ranking-table", parts.ranking);
  put("heat", parts.tasks);
  put("chain-table", parts.chains && "<h3>Chains</h3>" + parts.chains);
  put("response-table", parts.responses);
}

let settleTimer;
/** Time without a further change after which everything is compared, in milliseconds. */
const SETTLED = 350;
/** Draws the schedules now, and compares when nothing has changed for a moment. */
function figures() {
  clearTimeout(settleTimer);
  settleTimer = setTimeout(compareAll, SETTLED);
  awaited(true);
  noteState();
  forgetAnswers();
  return sketch();
}

/** Compares without waiting for further changes. */
function compareNow() {
  clearTimeout(settleTimer);
  return compareAll();
}

/** What was found of an earlier set is removed. */
function forgetAnswers() {
  long.end();
  for (const id of ["analysis", "moment", "curve"]) document.getElementById(id).replaceChildren();
  for (const id of ["analysis-words", "curve-words"]) document.getElementById(id).textContent = "";
}

document.getElementById("cancel").addEventListener("click", () => {
  clearTimeout(settleTimer);
  long.end();
  quick.end();
  working(false);
  awaited(false);
  document.getElementById("verdict").textContent = "Cancelled.";
});

/** Asks the second worker for something with words beside a button; an empty answer was cancelled or refused. */
async function withWords(id, words, request) {
  const box = document.getElementById(id), { paths } = written();
  box.textContent = words;
  working(true);
  try {
    const result = await long.ask(request);
    box.textContent = "";
    return result;
  } catch (error) {
    box.textContent = error instanceof Cancelled ? "Cancelled." : error.message;
    if (error instanceof Refused && error.line) refuse(error, paths);
    else if (!(error instanceof Refused || error instanceof Cancelled)) throw error;
    return null;
  } finally {
    working(long.waiting.size > 0);
  }
}

document.getElementById("analyze").addEventListener("click", async () => {
  const result = await withWords("analysis-words", "Proving …", { do: "analyze", set: written().set });
  if (!result) return;
  const box = document.getElementById("analysis");
  box.innerHTML = `${result.html}<h3>What to change</h3>${result.changes}`;
  const verdict = document.createElement("p");
  verdict.className = "verdict";
  verdict.textContent = result.verdict;
  box.prepend(verdict);
});
