"use strict";
/** Where the first two schedules part that are seen: marked in the charts, and said in a sentence above them. */

/** Identity of a job in any run of the same set. */
const keyOf = ({ task, number }) => task + "#" + number;

/** Returns the first time from which on two schedules run different jobs for a while, with the jobs that only the one and only the other runs then; null if there is none. Which core a job has, and into how many slices it is cut, is no difference. */
function difference(one, other) {
  const until = Math.min(one.until, other.until), least = page.least_difference_ns;
  const events = [];
  [one, other].forEach(({ slices, jobs }, which) => {
    for (const { job, start, end } of slices) {
      const key = one.jobs === other.jobs ? job : keyOf(jobs[job]);
      events.push({ at: start, which, by: 1, key, job }, { at: end, which, by: -1, key, job });
    }
  });
  events.sort((a, b) => a.at - b.at);
  const running = new Map(), differing = new Map();
  let begun = null;
  for (let next = 0; next < events.length && events[next].at < until; ) {
    const { at } = events[next];
    if (begun && at - begun.at >= least) return begun;
    for (; next < events.length && events[next].at === at; next++) {
      const { which, by, key, job } = events[next];
      const counts = running.get(key) ?? [0, 0];
      counts[which] += by;
      running.set(key, counts);
      if (counts[0] > 0 === counts[1] > 0) differing.delete(key);
      else differing.set(key, { which, job });
    }
    if (!differing.size) begun = null;
    else begun ??= { at, jobs: [0, 1].map((which) => [...differing].filter(([key]) => running.get(key)[which] > 0).map(([, of]) => jobName([one, other][of.which].jobs[of.job]))) };
  }
  return begun && until - begun.at >= least ? begun : null;
}

/** Greatest number of jobs that are named. */
const MOST_PARTED = 3;
const listed = (names) => (names.length ? names.slice(0, MOST_PARTED).join(", ") + (names.length > MOST_PARTED ? ` and ${names.length - MOST_PARTED} more` : "") : "nothing instead");

/** Says where two schedules part, and which job is the first one that only one of them then misses. */
function partingInWords(one, other, { at, jobs }) {
  const words = `They part at ${time(at)}: ${one.name} runs ${listed(jobs[0])}, ${other.name} runs ${listed(jobs[1])}.`;
  const missed = [one, other].map(({ missed, jobs }) => new Map(missed.map((job) => [keyOf(jobs[job]), job])));
  const alone = [one, other].flatMap((of, which) => {
    const job = [...missed[which]].find(([key, job]) => of.jobs[job].deadline > at && !missed[1 - which].has(key))?.[1];
    return job === undefined ? [] : { of, job, deadline: of.jobs[job].deadline };
  });
  if (!alone.length) return words;
  const { of, job, deadline } = alone.reduce((a, b) => (b.deadline < a.deadline ? b : a));
  return `${words} ${of.name} alone then misses ${jobName(of.jobs[job])}, due ${time(deadline)}: ${of.why.get(job)}.`;
}

/** Says where the first two schedules part that are seen, and marks the place; the charts are not drawn yet. */
function tellParting() {
  const [one, other] = charts.map(({ schedule }) => schedule).filter(Boolean);
  const found = other ? difference(one, other) : null;
  page.parts_ns = found?.at ?? null;
  const same = other ? `${one.name} and ${other.name} run the same jobs at the same times, as far as they are recorded.` : "";
  document.getElementById("parting").textContent = found ? partingInWords(one, other, found) : same;
  if (legend.hasParting !== (found !== null)) legend();
}
