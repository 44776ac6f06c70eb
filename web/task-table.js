"use strict";
/** The table of tasks, and the settings of the set, edited in place. What is wrong stands under its cell, in the words of the command line. */

/** Keys that have a column even where no task has them. */
const ALWAYS = ["name", "period", "wcet", "deadline"];
/** Keys that have a column if some task has them, in this order; all others stand together as JSON. */
const COLUMN_KEYS = ["name", "period", "wcet", "bcet", "deadline", "offset", "jitter", "execution", "criticality", "value", "priority"];
/** Greatest number of tasks with a row. */
const MOST_ROWS = 200;
const tableOfTasks = document.getElementById("task-table");
/** Inputs by the path of their keys, as JSON. */
const inputs = new Map();
const byPath = (path) => JSON.stringify(path);

/** Reads what was typed: nothing, a number, JSON, or text. */
function typed(text) {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  if (/^-?\d+(\.\d+)?$/.test(trimmed)) return Number(trimmed);
  if (/^[[{]/.test(trimmed)) {
    try {
      return JSON.parse(trimmed);
    } catch {
      return trimmed;
    }
  }
  return trimmed === "true" ? true : trimmed === "false" ? false : trimmed;
}
const asText = (value) => (value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value));

/** Adds an input for a key to a parent; `change` takes what was typed, unless `problemWith` says what is wrong with it. */
function cell(parent, path, label, value, change, problemWith = () => "") {
  const input = make("input", parent);
  input.value = asText(value);
  input.setAttribute("aria-label", label);
  input.spellcheck = false;
  input.addEventListener("change", () => {
    const value = typed(input.value), problem = problemWith(value);
    reject(input, problem);
    if (problem) return;
    remember();
    change(value);
    edited();
  });
  inputs.set(byPath(path), input);
}

/** Draws the table and the settings anew. */
function drawTasks() {
  inputs.clear();
  const tasks = state.keys.task ?? [], shownTasks = tasks.slice(0, MOST_ROWS);
  const columns = COLUMN_KEYS.filter((key) => ALWAYS.includes(key) || tasks.some((task) => task[key] !== undefined && typeof task[key] !== "object"));
  const inMore = (task, key) => !columns.includes(key) || typeof task[key] === "object";
  /** Keys of a task without a cell of their own, as they are now. */
  const moreOf = (task) => Object.keys(task).filter((key) => inMore(task, key));
  const moreAsText = (task) => (moreOf(task).length ? JSON.stringify(Object.fromEntries(moreOf(task).map((key) => [key, task[key]]))) : "");
  const hasMore = tasks.some((task) => moreOf(task).length);
  tableOfTasks.tHead.replaceChildren();
  const head = make("tr", tableOfTasks.tHead);
  [...columns, ...(hasMore ? ["more"] : []), ""].forEach((name) => {
    const column = make(name ? "th" : "td", head, name);
    if (name) column.scope = "col";
  });
  const body = tableOfTasks.tBodies[0];
  body.replaceChildren();
  shownTasks.forEach((task, at) => {
    const row = make("tr", body), name = task.name ?? `task ${at + 1}`;
    for (const key of columns) {
      const of = typeof task[key] === "object" ? undefined : task[key];
      cell(make("td", row), ["task", at, key], `${key} of ${name}`, of, (value) => {
        const wasInMore = typeof task[key] === "object";
        if (value === undefined) delete task[key];
        else task[key] = value;
        const more = inputs.get(byPath(["task", at, null]));
        if (!wasInMore || !more) return;
        more.value = moreAsText(task);
        reject(more, "");
      });
    }
    if (hasMore) {
      const place = make("td", row);
      place.className = "more";
      const change = (value = {}) => {
        moreOf(task).forEach((key) => delete task[key]);
        Object.assign(task, value);
      };
      cell(place, ["task", at, null], `further keys of ${name}, as JSON`, moreAsText(task), change, (value = {}) => {
        if (!isObject(value)) return "is no JSON object, such as {\"mk\": [1, 2]}";
        const isInCell = (key) => columns.includes(key) && (typeof value[key] !== "object" || !inMore(task, key) && task[key] !== undefined);
        const own = Object.keys(value).find(isInCell);
        return own === undefined ? "" : `${own} has a column of its own`;
      });
    }
    const remove = make("button", make("td", row), "×");
    remove.type = "button";
    remove.setAttribute("aria-label", `Remove ${name}`);
    remove.addEventListener("click", () => {
      remember();
      tasks.splice(at, 1);
      redrawSet();
    });
  });
  if (tasks.length > shownTasks.length) {
    const rest = make("td", make("tr", body), `and ${tasks.length - shownTasks.length} more tasks, which are in what is saved`);
    rest.colSpan = columns.length + 2;
  }
  drawPlaceholders();
  drawSettings();
}

/** Shows in empty cells what holds for a task that states no period or deadline. */
function drawPlaceholders() {
  const tasks = state.keys.task ?? [], byName = new Map(tasks.map((task) => [task.name, task]));
  tasks.slice(0, MOST_ROWS).forEach((task, at) => {
    for (const [key, value] of [["period", periodOf(task, byName)], ["deadline", deadlineOf(task, byName)]]) inputs.get(byPath(["task", at, key])).placeholder = asText(value);
  });
}

/** Returns the period of a task as it is written: its own, or that of the tasks that it comes after. */
function periodOf(task, byName) {
  for (const seen = new Set(); task && task.period === undefined && !seen.has(task); task = byName.get([task.after].flat()[0])) seen.add(task);
  return task?.period;
}

/** Returns the deadline of a task that states none: the period, or the shortest of the chains through a task that comes after others. */
function deadlineOf(task, byName) {
  const chains = task.after === undefined ? [] : [state.keys.chain ?? []].flat().filter((chain) => chain?.tasks?.includes?.(task.name) && nanoseconds(chain.deadline) !== null);
  const [shortest] = chains.map(({ deadline }) => deadline).sort((one, other) => nanoseconds(one) - nanoseconds(other));
  return shortest ?? periodOf(task, byName);
}

/** The settings of the set and of the runs. */
const settings = [...document.querySelectorAll("#settings [data-key]")];
const runSettings = [...document.querySelectorAll("#settings [data-run]")];
function drawSettings() {
  for (const input of settings) {
    const [outer, inner] = input.dataset.key.split(".");
    const value = inner ? state.keys[outer]?.[inner] : state.keys[outer];
    input.value = asText(value === "abort" || value === "inheritance" ? undefined : value);
    inputs.set(byPath(input.dataset.key.split(".")), input);
  }
  // A list of cores has names and speeds, which are kept as they are.
  const cores = document.querySelector("[data-key=cores]");
  cores.disabled = state.keys.core !== undefined;
  cores.placeholder = cores.disabled ? "listed" : "1";
  for (const input of runSettings) {
    input.value = asText(state.run[input.dataset.run]);
    reject(input, "");
  }
}
settings.forEach((input) =>
  input.addEventListener("change", () => {
    remember();
    const [outer, inner] = input.dataset.key.split("."), value = typed(input.value);
    const owner = inner ? (state.keys[outer] ??= {}) : state.keys;
    if (value === undefined) delete owner[inner ?? outer];
    else owner[inner ?? outer] = value;
    edited();
  })
);
runSettings.forEach((input) =>
  input.addEventListener("change", () => {
    const value = typed(input.value), key = input.dataset.run;
    const isCount = key === "seed" || key === "runs";
    const isWhole = value === undefined || /^\d+$/.test(input.value.trim());
    const isTooLarge = isWhole && value > Number.MAX_SAFE_INTEGER;
    const problem = !isWhole ? `${input.value} is no whole number` : isTooLarge ? `${input.value} is above the greatest, ${Number.MAX_SAFE_INTEGER}` : "";
    reject(input, isCount ? problem : "");
    if (isCount && problem) return;
    if (value === undefined) delete state.run[key];
    else state.run[key] = isCount ? value : String(value);
    figures();
  })
);

/** Refuses what was typed before it becomes a part of the set; nothing if the text is empty. What is wrong stands under the input until something else is typed. */
function reject(input, message) {
  input.rejected = message;
  wrong(input, message);
}

/** Says under an input what is wrong with it; nothing if the text is empty. */
function wrong(input, message) {
  const known = input.parentElement.querySelector(".cell-error");
  known?.remove();
  input.toggleAttribute("aria-invalid", false);
  input.removeAttribute("aria-describedby");
  if (!message) return;
  const words = make("span", input.parentElement, message);
  words.className = "cell-error";
  words.id = "error-of-" + Math.random().toString(36).slice(2);
  input.setAttribute("aria-invalid", "true");
  input.setAttribute("aria-describedby", words.id);
}

/** Removes what was wrong with the set. */
function forgetErrors() {
  document.querySelectorAll("#start [aria-invalid], #task-table [aria-invalid], #settings [aria-invalid]").forEach((input) => wrong(input, input.rejected ?? ""));
  if (alertOf.isOfSet) alertOf("");
}

/** Shows a refusal at its cell, or above the table. */
function refuse(error, paths) {
  forgetErrors();
  const path = error.line === null ? null : paths[error.line - 1];
  const own = path && (inputs.get(byPath(path.slice(0, 3))) ?? inputs.get(byPath(path.slice(0, 2))));
  const more = path?.[0] === "task" && (inputs.get(byPath(["task", path[1], null])) ?? inputs.get(byPath(["task", path[1], "name"])));
  const [, run] = (error.line === null && /^(horizon|runs) /.exec(error.message)) || [];
  const input = own || more || (run && document.querySelector(`[data-run=${run}]`)) || (path?.[0] === "cores" && document.querySelector("[data-key=cores]"));
  if (input) wrong(input, error.message);
  else alertOf(error.message, true);
}

/** Shows a refusal above the table. One of the set goes away when the set is mended. */
function alertOf(message, isOfSet = false) {
  alertOf.isOfSet = isOfSet;
  const box = document.getElementById("alert");
  box.hidden = !message;
  box.textContent = message;
}

document.getElementById("add-task").addEventListener("click", () => {
  remember();
  const tasks = (state.keys.task ??= []), names = new Set(tasks.map((task) => task.name));
  let number = tasks.length + 1;
  while (names.has(`task_${number}`)) number++;
  tasks.push({ name: `task_${number}`, period: "100ms", wcet: "10ms" });
  redrawSet();
  inputs.get(byPath(["task", tasks.length - 1, "name"]))?.focus();
});
