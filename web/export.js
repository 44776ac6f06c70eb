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

/** Draws the schedules that are seen as one picture. */
function pictureOfCharts() {
  const seen = charts.filter((chart) => chart.schedule), ratio = window.devicePixelRatio || 1, HEAD = 24;
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(...seen.map((chart) => chart.canvas.width));
  canvas.height = seen.reduce((sum, chart) => sum + chart.canvas.height + HEAD * ratio, 0);
  const c = canvas.getContext("2d");
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
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** Columns of the ranking, with their keys in `temponet compare --json`. */
const RANKING = ["scheduler", "released", "met", "missed", "compliance", "compliance_ci95", "of_optimum", "art_completed_ns", "lateness_p95_ns", "preemptions", "migrations"];
const quoted = (value) => (/[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
const rankingAsCsv = () => [RANKING, ...comparison.results.map((row) => RANKING.map((key) => row[key]))].map((row) => row.map(quoted).join(",") + "\n").join("");

const SAVE = {
  toml: async () => download(`${state.name}.toml`, "text/plain", (await quick.ask({ do: "write", set: written().set, to: "toml" })).text),
  json: async () => download(`${state.name}.json`, "application/json", (await quick.ask({ do: "write", set: written().set, to: "json" })).text),
  "rt-app": async () => download(`${state.name}.rt-app.json`, "application/json", (await quick.ask({ do: "write", set: written().set, to: "rt-app" })).text),
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
