"use strict";
/** The page: opens sets, and starts. */

/** Schedulers that are compared at first. */
const FIRST = ["temponet", "tuned", "edf", "rm", "llf", "mh-edf", "edf-skip", "muf", "look-ahead"];

/** After a change of the set: everything follows. */
function edited(redraws = true) {
  state.builtIn = null;
  document.getElementById("built-in").value = "";
  document.getElementById("undo").disabled = earlier.length === 0;
  forgetSaved();
  drawPlaceholders();
  if (redraws) drawWhatIf();
  return figures();
}

/** After a change of which tasks there are. */
function redrawSet() {
  drawTasks();
  return edited();
}

/** What was opened last, for tests. */
let lastOpened = null;

/** Shows another set. */
function showSet({ name, set, builtIn = null, notes = [], trace = null, held = null }, names = []) {
  Object.assign(state, { name, keys: set, builtIn, moment: null, charts: names, ownCharts: names.length > 0 });
  forgetErrors();
  alertOf("");
  document.getElementById("built-in").value = builtIn ?? "";
  document.getElementById("about-set").textContent = `${name}${set.description ? ": " + set.description : ""}`;
  const list = document.getElementById("notes");
  list.replaceChildren();
  notes.forEach((note) => make("li", list, note));
  forgetSaved();
  showTrace(trace, trace && held);
  document.getElementById("undo").disabled = earlier.length === 0;
  // Another set has another time axis.
  charts.splice(0).forEach((chart) => chart.canvas.parentElement.remove());
  [shown.from, shown.to] = [0, 0];
  drawTasks();
  drawWhatIf();
  return figures();
}

const openBuiltIn = async (name) => ({ ...(await quick.ask({ do: "open", built_in: name })), builtIn: name });

/** Opens what the reader chose; a refusal leaves the set as it is. */
async function open(load) {
  try {
    const found = await load();
    if (!found) return;
    if (state.name) remember();
    lastOpened = found;
    await showSet(found);
  } catch (error) {
    if (error instanceof Refused) alertOf(error.message);
    else if (!(error instanceof Cancelled)) throw error;
  }
}

document.getElementById("built-in").addEventListener("change", ({ target }) => target.value && open(() => openBuiltIn(target.value)));
document.getElementById("undo").addEventListener("click", () => {
  const [name, set, builtIn] = JSON.parse(earlier.pop());
  showSet({ name, set, builtIn });
});

/** Draws the check boxes of the schedulers. */
function drawSchedulers() {
  const box = document.getElementById("schedulers");
  box.querySelectorAll("label").forEach((label) => label.remove());
  for (const { name, summary } of about.schedulers) {
    const label = make("label", box), input = make("input", label);
    input.type = "checkbox";
    input.value = name;
    input.checked = state.schedulers.includes(name);
    label.append(` ${name} `);
    make("small", label, summary);
    input.addEventListener("change", () => {
      state.schedulers = input.checked ? [...state.schedulers, name] : state.schedulers.filter((other) => other !== name);
      tellSchedulers();
      figures();
    });
  }
  ownSchedulers.value = state.schedulers.filter((spec) => !isListed(spec)).join(" ");
  tellSchedulers();
}
const ownSchedulers = document.getElementById("own-schedulers");
const isListed = (spec) => about.schedulers.some(({ name }) => name === spec);
ownSchedulers.addEventListener("change", () => {
  state.schedulers = [...state.schedulers.filter(isListed), ...ownSchedulers.value.split(/\s+/).filter(Boolean)];
  tellSchedulers();
  figures();
});
const tellSchedulers = () => (document.getElementById("chosen-schedulers").textContent = state.schedulers.join(", ") || "none");

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Takes the state of a link or of a step of a tour. What anybody may have written into a link is checked. */
async function takeState(found) {
  const { schedulers, moment = null, what } = found, run = isObject(found.run) ? found.run : {};
  const byTask = typeof found.byTask === "boolean" ? found.byTask : null;
  const names = Array.isArray(found.charts) ? found.charts.map((name) => (typeof name === "string" ? name : null)) : [];
  const view = Array.isArray(found.view) && found.view.length === 2 && found.view.every(Number.isFinite) ? found.view : null;
  if (!found.builtIn && !(isObject(found.keys) && (found.keys.task ?? []).every?.(isObject))) throw new Refused("the link holds no set");
  const set = found.builtIn ? await openBuiltIn(found.builtIn) : { name: String(found.name ?? "unnamed"), set: found.keys };
  Object.assign(state, { schedulers: schedulers.map(String), run, view, byTask });
  drawSchedulers();
  const drawn = showSet(set, names);
  if (Number.isInteger(what) && state.keys.task?.[what]) chooseTask(what);
  await drawn;
  if (Number.isFinite(moment) && page) await explainMoment(moment);
}

(async () => {
  try {
    about = await quick.ask({ do: "about" });
    const list = document.getElementById("built-in");
    make("option", list, "own").value = "";
    about.sets.forEach((name) => make("option", list, name));
    listTours();
    const known = new Set(about.schedulers.map(({ name }) => name));
    state.schedulers = FIRST.filter((name) => known.has(name));
    drawSchedulers();
    const given = document.getElementById("given");
    let found = null, broken = "";
    try {
      found = await stateOfLink();
    } catch (error) {
      broken = error.message;
    }
    if (found) await open(() => takeState(found));
    else if (given) await open(() => quick.ask({ do: "open", ...JSON.parse(given.textContent) }));
    if (!state.name) {
      broken ||= document.getElementById("alert").textContent;
      await open(() => openBuiltIn(about.default_set));
    }
    if (broken) alertOf(broken);
    measured.first = performance.now();
  } catch (error) {
    if (!(error instanceof Cancelled)) alertOf(error.message);
  }
})();
addEventListener("hashchange", async () => {
  try {
    const found = await stateOfLink();
    if (found) await takeState(found);
  } catch (error) {
    if (!(error instanceof Refused || error instanceof Cancelled)) throw error;
    if (error instanceof Refused) alertOf(error.message);
  }
});
