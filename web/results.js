"use strict";
/** The figures: schedules at once, and then the whole comparison. The first worker draws what changes, the second one does what takes longer. */
const quick = new Helper();
/** The third one answers about single moments, and follows what is dragged where that takes longer. */
const aside = new Helper();
const long = new Helper((share, words) => {
  const bar = document.getElementById("progress");
  if (share < 0) bar.removeAttribute("value");
  else bar.value = share;
  document.getElementById("work-words").textContent = words;
});
/** Durations in milliseconds, from a change to the picture of it, for the measurement in `web/test`. */
const measured = { pictures: [], comparisons: [], followed: [] };
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
/** Identity of a schedule over several runs: the name without who decides. */
const plainName = (shownName) => shownName.replace(/ \(.*\)$/, "").replace(/^clairvoyant.*/, "clairvoyant");
/** Place of a schedule among those of the page; -1 if there is none. */
const placeOf = (name) => page.schedules.findIndex((of) => plainName(of.name) === name);
const shapeOf = ({ tasks, cores, by_task, until_ns }) => JSON.stringify([tasks, cores, by_task, until_ns]);
/** Whether two sets have the same rows, so that a schedule of the one can stand among those of the other. */
const sameRows = (one, other) => JSON.stringify([one.tasks, one.cores]) === JSON.stringify([other.tasks, other.cores]);

/** Draws other data in place of what is shown. Lists, window and rows stay as the reader chose them. A sketch has simple schedulers alone: other schedules that are seen stay as they are, pale, until they are found anew. */
function renew(data, isSketch = false) {
  const view = state.view ?? [shown.from, shown.to];
  if (!charts.length) {
    data.by_task = state.byTask ?? data.by_task;
    state.byTask = null;
    start(data);
  } else {
    const names = charts.map((chart) => (chart.schedule ? plainName(chart.schedule.name) : null));
    const isAbsent = (name) => !data.schedules.some((of) => plainName(of.name) === name);
    const isAwaited = (name) => name && isAbsent(name) && (state.schedulers.includes(name) || name === "clairvoyant");
    const stale = isSketch && sameRows(page, data) ? charts.map((chart) => chart.schedule).filter((of) => of && isAwaited(plainName(of.name))) : [];
    const before = shapeOf(page);
    data.by_task = byTask.checked;
    take(data);
    for (const schedule of new Set(stale)) {
      known.set(page.schedules.length, schedule);
      page.schedules.push({ name: schedule.name });
    }
    // What has other rows cannot stay, and comes back when it has run.
    if (state.ownCharts && names.some((name) => isAwaited(name) && placeOf(name) < 0)) state.charts = names;
    const isSameShape = before === shapeOf(page);
    charts.forEach((chart, place) => {
      const at = placeOf(names[place]), isKept = (state.ownCharts || isSketch) && (at >= 0 || names[place] === null);
      const wasHidden = chart.canvas.hidden;
      put(chart, isKept ? at : (page.chosen[place] ?? -1));
      if (!isSameShape || wasHidden !== chart.canvas.hidden) chart.resize();
    });
    if (!isSameShape) legend();
    markStale(stale);
  }
  page.moment_ns = state.moment;
  if (state.charts.length) chooseCharts(state.charts);
  tellParting();
  // Before the first schedule nothing was seen.
  show(...(view[1] > view[0] ? view : page.first_view_ns));
  state.view = null;
}

/** Puts a schedule into a chart by its place; -1 is none. It is not drawn yet. */
function put(chart, at) {
  chart.offer(at >= 0 ? at : undefined);
  chart.schedule = at >= 0 ? schedule(at) : null;
  chart.cursor = -1;
  chart.canvas.hidden = chart.list.hidden = !chart.schedule;
}

/** Shows which charts have schedules of an earlier state of the set. */
function markStale(stale) {
  for (const { canvas, schedule } of charts) {
    canvas.classList.toggle("behind", stale.includes(schedule));
    canvas.setAttribute("aria-busy", stale.includes(schedule));
  }
}

/** Chooses the schedules that are seen, by name; null is none. A name is waited for until its scheduler has run. They are not drawn yet. */
function chooseCharts(names) {
  if (names.every((name) => !name || placeOf(name) >= 0)) state.charts = [];
  charts.forEach((chart, place) => {
    if (placeOf(names[place]) < 0 && names[place]) return;
    put(chart, placeOf(names[place]));
    chart.resize();
  });
}

document.getElementById("charts").addEventListener("change", () => {
  state.ownCharts = true;
  state.charts = [];
  explainAgain();
});
// What moves, zooms or chooses is a part of the link.
for (const kind of ["change", "click", "pointerup", "wheel", "keyup"]) document.getElementById("schedules-section").addEventListener(kind, noteState, { passive: true });

/** Number of the latest sketch, to know what is of an earlier state of the set. */
let sketched = 0;

/** Draws the schedules of simple schedulers at once. Returns their shares in time, or why there are none. */
async function sketch() {
  const { paths } = written(), began = performance.now();
  sketched++;
  try {
    const result = await quick.latest({ do: "schedules", ...runOf(rules()) });
    renew(result.data, true);
    measured.pictures.push(performance.now() - began);
    forgetErrors();
    return { shares: result.shares };
  } catch (error) {
    if (error instanceof Cancelled) return {};
    if (!(error instanceof Refused)) throw error;
    refuse(error, paths);
    return { refusal: error.message };
  }
}

/** Draws the schedules that are seen of schedulers that look at the whole set before they start, as fast as they are found. Returns their shares in time. */
async function follow() {
  const isFast = (name) => !about.schedulers.some((entry) => entry.name === nameOf(name) && entry.slow);
  const seen = charts.map(({ schedule }) => schedule && plainName(schedule.name));
  const names = [...new Set(seen)].filter((name) => state.schedulers.includes(name) && !isRule(name) && isFast(name));
  if (!names.length) return null;
  const turn = sketched;
  try {
    const { data, shares } = await aside.latest({ do: "schedules", ...runOf(names) });
    const jobs = jobsOf(data);
    data.schedules.forEach((of, at) => {
      const place = placeOf(plainName(of.name));
      if (place < 0 || !sameRows(page, data)) return;
      const before = known.get(place), found = decoded(data, jobs, at);
      page.schedules[place].name = found.name;
      known.set(place, found);
      charts.filter((chart) => chart.schedule === before).forEach((chart) => put(chart, place));
      if (turn === sketched) markStale([]);
    });
    tellParting();
    charts.forEach((chart) => chart.draw());
    measured.followed.push(turn);
    return turn === sketched ? shares : null;
  } catch (error) {
    // What is refused is refused to the sketch, too.
    if (error instanceof Cancelled || error instanceof Refused) return null;
    throw error;
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
    renew(result.data);
    noteState();
    explainAgain();
    drawResponses();
    forgetErrors();
    measured.comparisons.push(performance.now() - began);
  } catch (error) {
    if (error instanceof Cancelled) return void (isLatest = false);
    if (!(error instanceof Refused)) throw error;
    comparison = null;
    const isBelow = document.getElementById("ranking-table").childElementCount > 0;
    document.getElementById("verdict").textContent = `Not compared.${isBelow ? " What stands below is of the set as it was before." : ""}`;
    refuse(error, paths);
  } finally {
    if (isLatest) {
      working(false);
      awaited(false);
    }
  }
}

/** Puts HTML of the lab into a box, with tables that can be sorted. */
function fill(id, html) {
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
  fill("ranking-table", parts.ranking);
  fill("heat", parts.tasks);
  fill("chain-table", parts.chains && "<h3>Chains</h3>" + parts.chains);
  fill("response-table", parts.responses);
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
  aside.end();
  explained = null;
  for (const id of ["analysis", "moment", "curve"]) document.getElementById(id).replaceChildren();
  for (const id of ["analysis-words", "curve-words"]) document.getElementById(id).textContent = "";
}

document.getElementById("cancel").addEventListener("click", () => {
  clearTimeout(settleTimer);
  [long, quick, aside].forEach((helper) => helper.end());
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
