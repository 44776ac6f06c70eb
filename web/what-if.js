"use strict";
/** Times of one task that can be dragged; schedules follow while they are. */
const whatTask = document.getElementById("what-task");
const UNITS = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9 };

/** Returns a time of a file in nanoseconds; null if it is none. */
function nanoseconds(value) {
  if (value === undefined || value === null || value === "") return null;
  if (typeof value === "number") return value * UNITS[state.keys.time_unit ?? "ms"];
  const [, number, unit] = /^\s*([\d.]+)\s*(ns|us|µs|ms|s)?\s*$/.exec(value) ?? [];
  return number === undefined ? null : Number(number) * UNITS[unit ?? state.keys.time_unit ?? "ms"];
}

/** Writes a time as files have it, with at most four digits. */
function asTime(ns) {
  const rounded = Number(ns.toPrecision(4));
  const unit = rounded >= 1e9 ? "s" : rounded >= 1e6 ? "ms" : rounded >= 1e3 ? "us" : "ns";
  return `${+(rounded / UNITS[unit]).toFixed(unit === "ns" ? 0 : 6)}${unit}`;
}

/** Least and greatest factor of a slider, and its steps. */
const LEAST = 0.1, GREATEST = 3, STEPS = 580;

/** Fills the list of tasks, and draws the sliders of the chosen one. */
function drawWhatIf() {
  const tasks = state.keys.task ?? [], chosen = whatTask.value;
  whatTask.replaceChildren();
  tasks.slice(0, MOST_ROWS).forEach((task, at) => (make("option", whatTask, task.name ?? `task ${at + 1}`).value = at));
  chooseTask(tasks[chosen] ? chosen : 0);
}

/** Chooses a task by its place. */
function chooseTask(at) {
  whatTask.value = at;
  drawSliders();
}

function drawSliders() {
  const box = document.getElementById("what-times"), at = +whatTask.value, task = state.keys.task?.[at];
  box.replaceChildren();
  if (!task) return;
  for (const key of ["wcet", "period", "deadline"]) {
    const stated = task[key], now = nanoseconds(stated ?? (key === "deadline" ? inputs.get(byPath(["task", at, key]))?.placeholder : undefined));
    if (!now) continue;
    const label = make("label", box, key);
    const slider = make("input", label), shownTime = make("output", label, asTime(now));
    slider.type = "range";
    slider.dataset.what = key;
    // No time is shorter than 1 ns, and an execution time below the best case would be refused at each step.
    const best = key === "wcet" ? (nanoseconds(task.bcet) ?? 0) : 0, least = Math.max(LEAST * now, best, 1);
    Object.assign(slider, { min: 0, max: STEPS, step: 1 });
    const place = (ns) => Math.round(((ns - least) / (GREATEST * now - least)) * STEPS);
    slider.value = place(now);
    const change = () => {
      const ns = least + (slider.value / STEPS) * (GREATEST * now - least);
      // Where it began it is as it was, and the best case is not rounded.
      const value = +slider.value === place(now) ? stated : +slider.value === 0 && least === best ? task.bcet : asTime(ns);
      if (value === undefined) delete task[key];
      else task[key] = value;
      shownTime.textContent = asTime(nanoseconds(value) ?? now);
      slider.setAttribute("aria-valuetext", shownTime.textContent);
      const input = inputs.get(byPath(["task", at, key]));
      if (input) input.value = asText(value);
      drawPlaceholders();
      state.builtIn = null;
    };
    slider.setAttribute("aria-valuetext", asTime(now));
    // One drag, or one key that is held down, is one change.
    let isMoving = false, isHeld = false;
    slider.addEventListener("keydown", ({ repeat }) => (isHeld = repeat));
    slider.addEventListener("keyup", () => (isHeld = false));
    slider.addEventListener("input", async () => {
      if (!isMoving && !isHeld) remember();
      isMoving = true;
      change();
      const found = [sketch(), follow()];
      const { shares, refusal } = await found[0];
      if (refusal) document.getElementById("what-shares").textContent = refusal;
      tellShares(shares);
      tellShares(await found[1], true);
    });
    slider.addEventListener("change", () => {
      isMoving = false;
      edited(false);
    });
  }
}

/** Says how many jobs of the window are in time while something is dragged. */
function tellShares(shares, isMore = false) {
  if (!shares) return;
  tellShares.told = isMore ? [...tellShares.told, ...shares] : shares;
  const words = tellShares.told.map(({ scheduler, met, released }) => `${scheduler} ${released ? ((100 * met) / released).toFixed(1) + "%" : "–"}`);
  document.getElementById("what-shares").textContent = `In time, in the part that is recorded: ${words.join(", ")}.`;
}
whatTask.addEventListener("change", () => {
  drawSliders();
  noteState();
});
