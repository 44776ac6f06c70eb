"use strict";
/** The moment under the cursor: who was ready, what each scheduler chose and why, and what the network thought. */

/** Schedulers whose decisions stand below the schedules; null if none do. */
let explained = null;
/** Schedulers whose schedules are seen. */
const seenSchedulers = () => {
  const seen = charts.filter((chart) => chart.schedule).map((chart) => plainName(chart.schedule.name));
  return [...new Set(seen)].filter((name) => state.schedulers.includes(name));
};

/** Explains the moment again if other schedules are seen than those that it speaks of. */
const explainAgain = () => explained !== null && String(explained) !== String(seenSchedulers()) && explainMoment(state.moment);

/** Explains the last decision of each schedule that is seen, at or before a date. */
async function explainMoment(ns) {
  const at_ns = Math.max(0, Math.min(Math.round(ns), page.until_ns - 1));
  state.moment = page.moment_ns = at_ns;
  charts.forEach((chart) => chart.draw());
  noteState();
  explained = seenSchedulers();
  const box = document.getElementById("moment");
  box.textContent = "…";
  const { set, ...run } = runOf(explained);
  if (!run.schedulers.length) return void (box.textContent = "Choose a scheduler in a schedule above.");
  try {
    showMoment(box, await aside.ask({ do: "moment", run: { set, ...run }, at_ns }));
  } catch (error) {
    box.textContent = error instanceof Cancelled ? "" : error.message;
    if (!(error instanceof Cancelled || error instanceof Refused)) throw error;
  }
}

/** What a scheduler did, in a sentence. */
function choiceInWords({ ready, cores }) {
  const chosen = ready.filter((job) => job.core !== null).sort((a, b) => a.core - b.core);
  const waits = ready.filter((job) => job.core === null);
  const runs = chosen.map((job) => (cores > 1 ? `${job.job} on core ${job.core}` : job.job) + (job.was_running ? "" : " (starts)"));
  if (!ready.length) return "No job was ready.";
  const words = [runs.length ? `Runs ${runs.join(", ")}.` : "Runs nothing."];
  if (waits.length) words.push(`${waits.map(({ job }) => job).slice(0, 8).join(", ")}${waits.length > 8 ? " and others" : ""} ${waits.length === 1 ? "waits" : "wait"}.`);
  const impossible = ready.filter((job) => job.impossible);
  if (impossible.length) words.push(`No longer possible: ${impossible.map(({ job }) => job).join(", ")}.`);
  return words.join(" ");
}

function showMoment(all, { schedulers, network }) {
  all.replaceChildren();
  const scores = new Map((network?.details.decision.jobs ?? []).map((job) => [`${job.task} #${job.job}`, job.q]));
  for (const { scheduler, rule, decision, not_run } of schedulers) {
    const box = make("article", all);
    make("h3", box, scheduler);
    if (not_run) {
      make("p", box, not_run);
      continue;
    }
    make("p", box, rule ? `Rule: ${rule}.` : "").className = "hint";
    if (!decision) {
      make("p", box, "It had not decided anything yet.");
      continue;
    }
    make("p", box, `At ${time(decision.now_ns)}: ${choiceInWords(decision)}`);
    if (decision.ready.length) momentTable(scrolling(make("div", box), `Ready jobs under ${scheduler}`), decision, network?.scheduler === scheduler ? scores : null);
    if (network?.scheduler === scheduler) make("p", box, network.sentences);
  }
}

/** Lets a box scroll sideways by keys, too. */
const scrolling = (box, label) => Object.assign(box, { tabIndex: 0, role: "group", ariaLabel: label });

function momentTable(box, { ready, now_ns }, scores) {
  const table = make("table", box);
  make("caption", table, `Ready jobs at ${time(now_ns)}`);
  const head = make("tr", make("thead", table)), body = make("tbody", table);
  for (const name of ["job", "core", "due in", "slack", "remaining wcet", ...(scores ? ["network's score"] : [])]) make("th", head, name).scope = "col";
  for (const job of [...ready].sort((a, b) => a.due_in_ns - b.due_in_ns)) {
    const row = make("tr", body);
    if (job.core !== null) row.className = "chosen";
    const notes = [job.held && "holds its core", job.given_up && "given up", job.impossible && "impossible"].filter(Boolean).join(", ");
    const cells = [job.job, job.core ?? (notes || "–"), time(job.due_in_ns), time(job.slack_ns), time(job.remaining_ns)];
    if (scores) cells.push(Number.isFinite(scores.get(job.job)) ? scores.get(job.job).toFixed(4) : "–");
    cells.forEach((words) => make("td", row, String(words)));
  }
}

/** Distance in pixels below which a press is a click and no drag. */
const STILL = 4;
document.getElementById("charts").addEventListener("pointerdown", ({ clientX }) => (explainMoment.from = clientX));
document.getElementById("charts").addEventListener("click", (event) => {
  const chart = charts.find(({ canvas }) => canvas === event.target);
  if (chart && Math.abs(event.clientX - explainMoment.from) < STILL && event.offsetX > LEFT) explainMoment(chart.at(event.offsetX));
});
document.getElementById("charts").addEventListener("keydown", (event) => {
  const chart = charts.find(({ canvas }) => canvas === event.target);
  if (!chart || event.key !== "e" || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  // What was told last was selected: a part of a job is explained from its start, and a missed job just before its deadline.
  const { schedule, job, slice } = chart.told ?? {};
  const isOfThis = schedule && schedule === chart.schedule;
  const before = isOfThis && schedule.jobs[job].deadline - 1;
  const start = slice?.start ?? before, end = slice?.end ?? before;
  const isShown = isOfThis && end >= shown.from && start <= shown.to;
  explainMoment(isShown ? Math.max(start, shown.from) : (shown.from + shown.to) / 2);
});
