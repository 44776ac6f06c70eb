"use strict";
/** What is shown: the set as the keys of a task-set file, the runs, and the schedulers. Everything of it fits into a link. */
const state = { name: "", keys: {}, builtIn: null, schedulers: [], run: {}, view: null, byTask: null, charts: [], ownCharts: false, moment: null };
/** Earlier sets, the latest one last, for `undo`. */
const earlier = [];
const MOST_EARLIER = 100;

/** Writes a value as JSON with one key on each line, and adds the path of each line to a list. */
function lay(value, path, head, comma, lines, paths) {
  const put = (words) => (lines.push(words), paths.push(path));
  if (value === null || typeof value !== "object") return put(head + JSON.stringify(value) + comma);
  const isList = Array.isArray(value), entries = isList ? value.map((item, at) => [at, item]) : Object.entries(value);
  put(head + (isList ? "[" : "{"));
  entries.forEach(([key, item], at) => lay(item, [...path, key], isList ? "" : JSON.stringify(key) + ": ", at + 1 < entries.length ? "," : "", lines, paths));
  put((isList ? "]" : "}") + comma);
}

/** Returns the set as the module reads it, and the path of the key on each of its lines. */
function written(keys = state.keys) {
  const lines = [], paths = [];
  lay(keys, [], "", "", lines, paths);
  return { set: { name: state.name, text: lines.join("\n") }, paths };
}

/** Returns the request for runs of the chosen schedulers, or of some of them. */
function runOf(schedulers = state.schedulers) {
  const { horizon, seed, runs, kernel } = state.run;
  const run = { set: written().set, schedulers };
  if (horizon) run.horizon = horizon;
  if (seed !== undefined) run.seed = seed;
  if (runs !== undefined) run.runs = runs;
  if (kernel) run.kernel = kernel;
  return run;
}

/** Remembers the set for `undo`; call it before a change. */
function remember() {
  earlier.push(JSON.stringify([state.name, state.keys, state.builtIn]));
  if (earlier.length > MOST_EARLIER) earlier.shift();
}

/** The text between `<` and `>` of Base64 for links. */
const toLink = (bytes) => {
  let letters = "";
  for (let at = 0; at < bytes.length; at += 0x8000) letters += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
};
const fromLink = (text) => fromBase64(text.replaceAll("-", "+").replaceAll("_", "/"));
const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

/** Returns the state as the fragment of a link. */
async function fragment() {
  const { name, keys, builtIn, schedulers, run, moment } = state;
  const names = charts.map((chart) => chart.schedule && plainName(chart.schedule.name));
  const kept = { name, ...(builtIn ? { builtIn } : { keys }), schedulers, run, charts: names, moment, what: +whatTask.value };
  if (page) Object.assign(kept, { view: [shown.from, shown.to].map(Math.round), byTask: page.by_task });
  return toLink(await through(new TextEncoder().encode(JSON.stringify(kept)), new CompressionStream("deflate-raw")));
}

/** Greatest size of a link's state, in bytes, so that a small link cannot unpack into a huge one. */
const MOST_STATE = 8 << 20;

/** Returns the state in the fragment of this page's address; null if there is none, and an error if it is broken. */
async function stateOfLink() {
  const text = location.hash.slice(1);
  if (!text) return null;
  try {
    const reader = new Blob([fromLink(text)]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    const parts = [];
    for (let size = 0; ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      if (size > MOST_STATE) throw new Error("it is too long");
      parts.push(value);
    }
    const found = JSON.parse(await new Blob(parts).text());
    if (typeof found !== "object" || found === null || !Array.isArray(found.schedulers)) throw new Error("it is no state of the lab");
    return found;
  } catch (error) {
    throw new Refused(`the link cannot be read: ${error.message}`);
  }
}

let linkTimer;
/** Writes the state into the address, soon. */
function noteState() {
  clearTimeout(linkTimer);
  linkTimer = setTimeout(async () => history.replaceState(null, "", "#" + (await fragment())), 400);
}
