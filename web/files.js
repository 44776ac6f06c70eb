"use strict";
/** Files and folders that the reader opens or drops: task sets of all kinds, and traces. A worker of their own reads them in pieces, so that they may be large. */

/** Greatest number of files in a folder. A trace has one for each processor, or a few. */
const MOST_FILES = 4096;
const reading = document.getElementById("reading");
/** The worker that is reading; null if none is. */
let reader = null;

/** A file with the path that the module knows it by. On its command line, "-" would be standard input. */
const heldFile = (path, blob) => ({ path: path === "-" ? "./-" : path, blob });

const tooMany = (folder) => new Refused(`${folder}: is a folder with more than ${MOST_FILES} files: no trace of CTF`);

/** Collects all files below a folder, which a browser calls a handle. */
async function filesBelow(folder, path, all) {
  for await (const next of folder.values()) {
    if (all.length >= MOST_FILES) throw tooMany(path);
    if (next.kind === "directory") await filesBelow(next, `${path}/${next.name}`, all);
    else all.push(heldFile(`${path}/${next.name}`, await next.getFile()));
  }
}

/** Returns what was dropped: files, and folders with all files below them. What the browser hands over is gone after the first wait. */
function dropped({ items }) {
  const found = [...items].filter(({ kind }) => kind === "file").map((item) => {
    const isFolder = item.webkitGetAsEntry?.()?.isDirectory;
    return isFolder ? { folder: item.getAsFileSystemHandle?.() } : { file: item.getAsFile() };
  });
  return async () => {
    const files = [], paths = [];
    for (const { folder, file } of found) {
      if (file) files.push(heldFile(file.name, file));
      const handle = await folder;
      if (handle) await filesBelow(handle, handle.name, files);
      else if (!file) throw new Refused("this browser does not hand over folders that are dropped: \"Open a folder\" does");
      paths.push(file ? files.at(-1).path : handle.name);
    }
    return { paths, files };
  };
}

/** Returns files that were chosen, each of which stands for itself. */
function chosen(list) {
  const files = list.map((file) => heldFile(file.name, file));
  return { paths: files.map(({ path }) => path), files };
}

/** Returns the folder that was chosen. */
function chosenFolder(list) {
  if (list.length > MOST_FILES) throw tooMany(list[0].webkitRelativePath.split("/")[0]);
  const files = list.map((file) => heldFile(file.webkitRelativePath || file.name, file));
  return { paths: [...new Set(files.map(({ path }) => path.split("/")[0]))], files };
}

/** Reads what is held: a task set, or a trace with options. */
async function readHeld(held, trace = {}) {
  reader?.end();
  const [bar, words, stop] = reading.children;
  const own = (reader = new Helper((share, what) => {
    bar.value = share;
    words.textContent = `${what} ${held.paths.join(", ")}`;
  }));
  stop.onclick = () => own.end();
  bar.removeAttribute("value");
  words.textContent = `reading ${held.paths.join(", ")}`;
  reading.hidden = false;
  try {
    const files = held.files.map(({ path, blob }) => [path, blob.size]);
    return { ...(await own.ask({ do: "open", paths: held.paths, files, trace }, held.files.map(({ blob }) => blob))), held };
  } catch (error) {
    if (error.isOfTrace && held !== shownTrace) showTrace(null, held);
    throw error;
  } finally {
    own.close();
    if (reader === own) {
      reader = null;
      reading.hidden = true;
    }
  }
}

for (const [id, found] of [["file", chosen], ["folder", chosenFolder]]) {
  const box = document.getElementById(id);
  box.addEventListener("change", () => {
    const list = [...box.files];
    box.value = "";
    if (list.length) open(async () => readHeld(found(list)));
  });
}
for (const kind of ["dragenter", "dragover"]) {
  addEventListener(kind, (event) => {
    event.preventDefault();
    document.body.classList.add("dragging");
  });
}
for (const kind of ["dragleave", "drop"]) {
  addEventListener(kind, (event) => {
    event.preventDefault();
    if (kind === "drop" || !event.relatedTarget) document.body.classList.remove("dragging");
    if (kind !== "drop" || !event.dataTransfer.types.includes("Files")) return;
    const found = dropped(event.dataTransfer);
    open(async () => readHeld(await found()));
  });
}

/** The trace that was read last, to read it again with other options. */
let shownTrace = null;
const traceOptions = [...document.querySelectorAll("[data-trace]")];
traceOptions.forEach((input) =>
  input.addEventListener("change", () => {
    const options = Object.fromEntries(traceOptions.map(({ dataset, value }) => [dataset.trace, value]));
    open(() => readHeld(shownTrace, options));
  })
);

/** Shows what was found in a trace, as `temponet import` does; the options alone if it was refused, and nothing if there is no trace. */
function showTrace(found, held) {
  const box = document.getElementById("trace"), holder = document.getElementById("trace-table");
  if (held !== shownTrace) traceOptions.forEach((input) => (input.value = ""));
  shownTrace = held;
  box.hidden = !held;
  box.open = true;
  holder.replaceChildren();
  const words = document.getElementById("trace-words");
  if (!found) return void (words.textContent = held ? `Options of ${held.paths.join(", ")}, which is not opened` : "");
  const jobs = `${counted(found.jobs)}${found.dropped ? ` (${found.dropped} left out)` : ""}`;
  const count = found.tasks.length === 1 ? "1 task" : `${found.tasks.length} tasks`;
  words.textContent = `Found in the trace: ${count} in ${time(found.length_ns)}, ${jobs}, ${found.formats.join(" and ")}`;
  const table = make("table", holder), head = make("tr", make("thead", table)), body = make("tbody", table);
  for (const name of ["task", "kind", "period or gap", "jobs", "median", "max", "cores", "notes"]) make("th", head, name).scope = "col";
  for (const task of found.tasks) {
    const row = make("tr", body);
    const period = task.after.length ? `after ${task.after.join(", ")}` : `${time(task.period_ns)} ± ${time(task.residual_ns)}`;
    const cells = [task.name, task.kind, period, String(task.jobs), time(task.median_ns), time(task.max_ns), task.processors.join(" "), task.notes.join("; ")];
    cells.forEach((words) => make("td", row, words));
  }
}
