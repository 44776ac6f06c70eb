"use strict";
/** What is saved: the set, pictures, jobs and the ranking. */
const saveBox = document.getElementById("save");

/** Hands a file to the reader. */
function download(name, type, content) {
  const link = make("a", document.body);
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  link.download = name;
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The first schedule that is seen and that a scheduler made. */
function firstScheduler() {
  const seen = charts.filter((chart) => chart.schedule).map((chart) => plainName(chart.schedule.name));
  return seen.find((name) => state.schedulers.includes(name)) ?? state.schedulers[0];
}

/** Returns the entries of the legend: the picture of the symbol, if it has one, and the words. */
const legendEntries = () =>
  Promise.all(
    [...document.querySelectorAll("#legend li")].map(async (item) => {
      const symbol = item.querySelector("svg"), words = item.textContent;
      if (!symbol) return { words };
      const image = new Image();
      image.src = "data:image/svg+xml," + encodeURIComponent(new XMLSerializer().serializeToString(symbol));
      await image.decode();
      return { image, words };
    })
  );

/** Draws the schedules that are seen as one picture, with the legend below. */
async function pictureOfCharts() {
  const seen = charts.filter((chart) => chart.schedule), ratio = window.devicePixelRatio || 1, HEAD = 24;
  const canvas = document.createElement("canvas"), c = canvas.getContext("2d");
  const width = Math.max(...seen.map((chart) => chart.canvas.width)), height = seen.reduce((sum, chart) => sum + chart.canvas.height + HEAD * ratio, 0);
  const font = `${13 * ratio}px system-ui, sans-serif`, SYMBOL = 14;
  let right = 8, line = 0;
  c.font = font;
  const entries = (await legendEntries()).map(({ image, words }) => {
    const wide = SYMBOL + 22 + c.measureText(words).width / ratio;
    if (right > 8 && (right + wide) * ratio > width) [right, line] = [8, line + 1];
    right += wide;
    return { image, words, x: (right - wide) * ratio, y: height + line * 20 * ratio };
  });
  canvas.width = width;
  canvas.height = height + (line + 1) * 20 * ratio;
  c.fillStyle = theme.ground;
  c.fillRect(0, 0, canvas.width, canvas.height);
  c.fillStyle = theme.ink;
  c.font = `${14 * ratio}px system-ui, sans-serif`;
  let y = 0;
  for (const chart of seen) {
    c.fillText(`${state.name}: ${chart.schedule.name}, ${chart.count.textContent}`, 8 * ratio, y + 17 * ratio);
    c.drawImage(chart.canvas, 0, y + HEAD * ratio);
    y += chart.canvas.height + HEAD * ratio;
  }
  c.font = font;
  for (const { image, words, x, y } of entries) {
    if (image) c.drawImage(image, x, y, SYMBOL * ratio, SYMBOL * ratio);
    c.fillText(words, x + (SYMBOL + 6) * ratio, y + 12 * ratio);
  }
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** Columns of the ranking, with their keys in `temponet compare --json`. */
const RANKING = ["scheduler", "released", "met", "missed", "compliance", "compliance_ci95", "of_optimum", "art_completed_ns", "lateness_p95_ns", "preemptions", "migrations"];
const quoted = (value) => (/[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
const rankingAsCsv = () => [RANKING, ...comparison.results.map((row) => RANKING.map((key) => row[key]))].map((row) => row.map(quoted).join(",") + "\n").join("");

/** Saves the set, and says what the file cannot hold. */
async function saveSet(to, ending, type) {
  const file = `${state.name}.${ending}`, { text, notes } = await quick.ask({ do: "write", set: written().set, to });
  download(file, type, text);
  if (!notes.length) return;
  const box = document.getElementById("saved");
  make("p", box, `Saved as ${file}, with these notes:`);
  const list = make("ul", box);
  list.className = "hint";
  notes.forEach((note) => make("li", list, note));
}
const forgetSaved = () => document.getElementById("saved").replaceChildren();

const SAVE = {
  toml: () => saveSet("toml", "toml", "text/plain"),
  json: () => saveSet("json", "json", "application/json"),
  "rt-app": () => saveSet("rt-app", "rt-app.json", "application/json"),
  svg: async () => {
    const scheduler = firstScheduler(), until = `${Math.round(shown.to)}ns`;
    download(`${state.name}-${scheduler}.svg`, "image/svg+xml", (await long.ask({ do: "picture", run: runOf([scheduler]), scheduler, until })).text);
  },
  png: async () => download(`${state.name}.png`, "image/png", await pictureOfCharts()),
  jobs: async () => {
    const scheduler = firstScheduler();
    download(`${state.name}-${scheduler}.csv`, "text/csv", (await long.ask({ do: "jobs", run: runOf([scheduler]), scheduler })).text);
  },
  ranking: async () => {
    if (!comparison) throw new Refused("nothing has been compared yet");
    download(`${state.name}-ranking.csv`, "text/csv", rankingAsCsv());
  },
};
saveBox.addEventListener("change", async () => {
  const what = saveBox.value;
  saveBox.value = "";
  forgetSaved();
  try {
    await SAVE[what]?.();
  } catch (error) {
    if (error instanceof Refused) alertOf(error.message);
    else if (!(error instanceof Cancelled)) throw error;
  }
});

document.getElementById("link").addEventListener("click", async (event) => {
  const hash = await fragment();
  history.replaceState(null, "", "#" + hash);
  const button = event.target;
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Copied";
  } catch {
    // A page from disk may not write to the clipboard; the address has the link, too.
    button.textContent = "It is in the address";
  }
  setTimeout(() => (button.textContent = "Copy link"), 2000);
});
