"use strict";
/** The comparison that is shown. */
let page;
const tip = document.getElementById("tip");
const said = document.getElementById("said");

/** Formats a time in nanoseconds with a fitting unit. */
function time(ns) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
    if (Math.abs(ns) >= size) return +(ns / size).toPrecision(5) + " " + unit;
  }
  return ns === 0 ? "0" : Math.round(ns) + " ns";
}

/** Labels that were cut, by their width and text: each drawing has the same ones. */
const cut = new Map();
/** Returns the beginning of a text that is at most this wide. */
function shortened(context, text, most) {
  if (context.measureText(text).width <= most) return text;
  const key = most + text;
  if (!cut.has(key)) {
    const letters = [...text];
    while (letters.length && context.measureText(letters.join("") + "…").width > most) letters.pop();
    cut.set(key, letters.join("") + "…");
  }
  return cut.get(key);
}

/** Splits a flat list into tuples of `size` numbers. */
const tuples = (list, size) => Array.from({ length: list.length / size }, (_, at) => list.slice(at * size, (at + 1) * size));
/** Schedules that were decoded, by index. */
const known = new Map();
/** Takes the data of a comparison; nothing is drawn yet. */
function take(data) {
  page = data;
  known.clear();
  cut.clear();
}
/** Returns the jobs of a comparison with their times in nanoseconds, and their index by task and number where tasks come after each other. */
function jobsOf({ jobs: list, unit_ns, after }) {
  const jobs = tuples(list, 4).map(([task, number, release, deadline]) => ({ task, number, release: release * unit_ns, deadline: deadline * unit_ns }));
  return { jobs, places: new Map(after.length ? jobs.map(({ task, number }, index) => [task + "#" + number, index]) : []) };
}
const jobName = (job) => `${page.tasks[job.task]} #${job.number}`;

/** Returns a schedule of the page; it is decoded when it is first shown. */
function schedule(index) {
  page.decoded ??= jobsOf(page);
  if (!known.has(index)) known.set(index, decoded(page, page.decoded, index));
  return known.get(index);
}

/** Returns a schedule of a comparison with its times in nanoseconds: its jobs, its slices by start, and the reason of each missed job. */
function decoded(data, { jobs, places }, index) {
  const { name, same } = data.schedules[index], unit = data.unit_ns;
  const { slices = [], missed = [], instead = [], open = [], holds = [], waits = [], until } = data.schedules[same ?? index];
  let start = 0;
  const read = { name, jobs, places, same: same === undefined ? undefined : data.schedules[same].name, until: until === undefined ? data.until_ns : until * unit, why: new Map(), open: new Set(open), ends: new Map() };
  read.slices = tuples(slices, 4).map(([core, job, after, length]) => {
    start += after * unit;
    read.ends.set(job, Math.max(read.ends.get(job) ?? 0, start + length * unit));
    return { core, job, start, end: start + length * unit };
  });
  const stretches = (list) => tuples(list, 4).map(([resource, job, start, length]) => ({ resource, job, start: start * unit, end: (start + length) * unit }));
  read.holds = stretches(holds);
  read.waits = stretches(waits);
  read.starts = new Map();
  for (const { job, start } of read.slices) if (!read.starts.has(job)) read.starts.set(job, start);
  const others = new Map();
  for (const [job, task, length] of tuples(instead, 3)) others.set(job, [...(others.get(job) ?? []), `${data.tasks[task]} ${time(length * unit)}`]);
  for (const [job, reason, value, why] of tuples(missed, 4)) {
    const words = [why ? data.whys[why - 1] : "", data.reasons[reason].replace("{}", time(value * unit))];
    if (others.has(job)) words.push("ran instead: " + others.get(job).join(", "));
    read.why.set(job, words.filter(Boolean).join("; "));
  }
  read.missed = [...read.why.keys()].sort((a, b) => jobs[a].deadline - jobs[b].deadline);
  return read;
}

/** Reads a color of the current theme, light or dark. */
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
let theme;
function readTheme() {
  theme = Object.fromEntries(["ink", "soft", "line", "mark", "ground", "bad", "focus"].map((name) => [name, css(name)]));
  theme.series = Array.from({ length: COLOURS }, (_, index) => css("c" + index));
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const c = tile.getContext("2d");
  c.strokeStyle = theme.ground;
  c.lineWidth = 1.6;
  for (const shift of [-6, 0, 6]) {
    c.moveTo(shift, 6);
    c.lineTo(shift + 6, 0);
  }
  c.stroke();
  theme.hatch = c.createPattern(tile, "repeat");
}
/** Returns black or white, whichever is legible on a color. */
const inkOn = (hex) => {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#000" : "#fff";
};
const colour = (index) => theme.series[index % theme.series.length];
/** Whether bars are colored by core: if tasks have rows of their own and there are several cores. Otherwise they are colored by task. */
const coloursAreCores = () => page.by_task && page.cores > 1;

/** The part of the time axis that all charts show, in nanoseconds. */
const shown = { from: 0, to: 0 };
const charts = [];
const TOP = 14, AXIS = 22;
/** Width of the labels of rows; narrow windows have less. */
let LEFT = 150;
/** Returns a number of jobs in words. Only jobs are counted: a chain can miss its end-to-end deadline although none of its jobs is late. */
const counted = (count) => (count === 0 ? "no job" : count === 1 ? "1 job" : `${count} jobs`);
/** Greatest number of missed jobs in a list. */
const MOST_LISTED = 60;

function show(from, to) {
  const all = page.until_ns;
  const span = Math.min(Math.max(to - from, 1000), all);
  shown.from = Math.min(Math.max(from, 0), all - span);
  shown.to = shown.from + span;
  document.getElementById("window").textContent = `${time(shown.from)} to ${time(shown.to)} of ${time(all)}`;
  charts.forEach((chart) => chart.draw());
}

function zoom(factor, centre = (shown.from + shown.to) / 2) {
  show(centre + (shown.from - centre) * factor, centre + (shown.to - centre) * factor);
}

class Chart {
  constructor(index, parent, place) {
    const box = make("div", parent);
    box.className = "chart";
    const head = make("div", box);
    head.className = "head";
    this.select = make("select", head);
    this.select.setAttribute("aria-label", `schedule ${place + 1}`);
    this.offer(index);
    this.select.addEventListener("change", () => {
      this.choose();
      tellParting();
      charts.forEach((chart) => chart.draw());
    });
    this.count = make("span", head);
    this.canvas = make("canvas", box);
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.list = make("details", box);
    this.summary = make("summary", this.list);
    this.items = make("ol", this.list);
    this.list.addEventListener("toggle", () => this.listMissed());
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.grab(event));
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => (tip.hidden = true));
    this.canvas.addEventListener("blur", () => (tip.hidden = true));
    this.canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !this.key(event.key)) return;
      event.preventDefault();
    });
    this.choose();
  }

  /** Fills the list of schedules and chooses one. */
  offer(index) {
    this.select.replaceChildren();
    make("option", this.select, "none").value = "";
    page.schedules.forEach(({ name }, at) => (make("option", this.select, name).value = at));
    this.select.value = index ?? "";
  }

  choose() {
    this.schedule = this.select.value === "" ? null : schedule(+this.select.value);
    this.cursor = -1;
    this.lastMissed = undefined;
    this.canvas.hidden = this.list.hidden = !this.schedule;
    this.resize();
    this.draw();
  }

  resize() {
    // With a row per core, missed deadlines get an extra row, because a job that never ran has no core.
    this.rows = page.by_task ? page.tasks.length : page.cores + 1;
    this.rowHeight = page.by_task ? (this.rows > 12 ? 15 : this.rows > 8 ? 20 : 28) : 24;
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    if (this.width) LEFT = this.width < 560 ? 92 : 150;
    this.height = TOP + this.rows * this.rowHeight + AXIS;
    this.canvas.style.height = this.height + "px";
    this.canvas.width = this.width * ratio;
    this.canvas.height = this.height * ratio;
    this.context = this.canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  x(ns) { return LEFT + ((ns - shown.from) / (shown.to - shown.from)) * (this.width - LEFT); }
  at(x) { return shown.from + ((x - LEFT) / (this.width - LEFT)) * (shown.to - shown.from); }
  row(slice) { return page.by_task ? this.schedule.jobs[slice.job].task : slice.core; }
  missedRow(job) { return page.by_task ? this.schedule.jobs[job].task : page.cores; }
  /** Returns the missed jobs whose deadline lies in the visible window. */
  missedNow() { return this.schedule.missed.filter((job) => this.schedule.jobs[job].deadline >= shown.from && this.schedule.jobs[job].deadline <= shown.to); }

  draw() {
    if (!this.schedule) return void (this.count.textContent = "");
    const c = this.context;
    c.clearRect(0, 0, this.width, this.height);
    c.font = "12px system-ui, sans-serif";
    c.save();
    c.beginPath();
    c.rect(LEFT, 0, this.width - LEFT, this.height);
    c.clip();
    this.axis();
    this.schedule.slices.forEach((slice) => this.bar(slice));
    this.sections();
    this.veil();
    if (page.by_task) this.schedule.jobs.forEach((job, index) => this.window(job, index));
    if (page.by_task && page.after.length) this.arrows();
    this.schedule.missed.forEach((job) => this.cross(job));
    this.marks();
    c.restore();
    c.fillStyle = theme.ink;
    c.textAlign = "right";
    for (let row = 0; row < this.rows; row++) {
      const label = page.by_task ? page.tasks[row] : row < page.cores ? page.core_names[row] : "missed";
      c.fillText(shortened(c, label, LEFT - 12), LEFT - 8, TOP + (row + 0.5) * this.rowHeight + 4);
    }
    const now = this.missedNow().length, all = this.schedule.missed.length;
    this.count.textContent = `${counted(now)} missed in this window` + (all > now ? `, ${all} in all that is recorded` : "");
    if (this.schedule.same !== undefined) this.count.textContent += `; the same schedule as ${this.schedule.same}`;
    this.summary.textContent = `${counted(now)} missed in this window, one by one`;
    this.list.hidden = now === 0;
    this.canvas.setAttribute("aria-label", `Schedule of ${this.schedule.name} from ${time(shown.from)} to ${time(shown.to)}: ${this.count.textContent}`);
    this.listMissed();
  }

  /** Draws a slice: hatched if its job missed its deadline, outlined if its task is critical. */
  bar(slice) {
    if (slice.end < shown.from || slice.start > shown.to) return;
    const c = this.context, tall = this.rowHeight * 0.62;
    const task = this.schedule.jobs[slice.job].task;
    const x = this.x(slice.start), wide = Math.max(0.7, this.x(slice.end) - x);
    const y = TOP + this.row(slice) * this.rowHeight + (this.rowHeight - tall) / 2;
    const ground = colour(coloursAreCores() ? slice.core : task);
    c.fillStyle = ground;
    c.fillRect(x, y, wide, tall);
    if (this.schedule.why.has(slice.job)) {
      c.fillStyle = theme.hatch;
      c.fillRect(x, y, wide, tall);
    }
    if (page.critical[task] && wide > 3) {
      c.strokeStyle = theme.ink;
      c.lineWidth = 1.5;
      c.strokeRect(x + 0.75, y + 0.75, wide - 1.5, tall - 1.5);
    }
    // Colors repeat in large sets, so bars carry the name of their task where it fits.
    if (!page.by_task && wide > 24 && c.measureText(page.tasks[task]).width < wide - 6) {
      c.fillStyle = inkOn(ground);
      c.textAlign = "left";
      c.fillText(page.tasks[task], x + 3, y + tall / 2 + 4);
    }
  }

  /** Draws a stripe below bars whose job holds a resource, and a box with a stripe where a job waits for one. */
  sections() {
    const c = this.context, tall = this.rowHeight * 0.62, stripe = 3;
    const y = (row) => TOP + row * this.rowHeight + (this.rowHeight - tall) / 2;
    const line = (resource, row, start, end) => {
      c.fillStyle = colour(page.tasks.length + resource);
      c.fillRect(this.x(start), y(row) + tall, Math.max(0.7, this.x(end) - this.x(start)), stripe);
    };
    for (const hold of this.schedule.holds) {
      for (const slice of this.schedule.slices) {
        const start = Math.max(slice.start, hold.start), end = Math.min(slice.end, hold.end);
        if (slice.job === hold.job && start < end && end > shown.from && start < shown.to) line(hold.resource, this.row(slice), start, end);
      }
    }
    if (!page.by_task) return;
    for (const { resource, job, start, end } of this.schedule.waits) {
      if (end < shown.from || start > shown.to) continue;
      const { task } = this.schedule.jobs[job];
      c.strokeStyle = theme.soft;
      c.lineWidth = 1;
      c.setLineDash([1, 2]);
      c.strokeRect(this.x(start), y(task) + 2, this.x(end) - this.x(start), tall - 4);
      c.setLineDash([]);
      line(resource, task, start, end);
    }
  }

  /** Draws an arrow from the end of each job to the start of the jobs that come after it. */
  arrows() {
    const c = this.context, { starts, ends, open, places } = this.schedule;
    const y = (task) => TOP + (task + 0.5) * this.rowHeight;
    c.strokeStyle = c.fillStyle = theme.ink;
    c.lineWidth = 1;
    for (const [index, start] of starts) {
      const { task, number } = this.schedule.jobs[index];
      for (const before of page.after[task]) {
        const place = places.get(before + "#" + number);
        const end = ends.get(place);
        if (end === undefined || open.has(place) || end > start || start < shown.from || end > shown.to) continue;
        const from = [this.x(end), y(before)], to = [this.x(start), y(task)];
        const long = Math.hypot(to[0] - from[0], to[1] - from[1]) || 1;
        const [dx, dy] = [(to[0] - from[0]) / long, (to[1] - from[1]) / long];
        c.beginPath();
        c.moveTo(...from);
        c.lineTo(...to);
        c.stroke();
        c.beginPath();
        c.moveTo(...to);
        c.lineTo(to[0] - 6 * dx + 3 * dy, to[1] - 6 * dy - 3 * dx);
        c.lineTo(to[0] - 6 * dx - 3 * dy, to[1] - 6 * dy + 3 * dx);
        c.fill();
      }
    }
  }

  /** Covers the time after which slices were too many to be kept. */
  veil() {
    const from = Math.max(this.x(this.schedule.until), LEFT);
    if (this.schedule.until >= page.until_ns || from >= this.width) return;
    const c = this.context;
    c.fillStyle = theme.line;
    c.fillRect(from, TOP, this.width - from, this.height - TOP - AXIS);
    c.fillStyle = theme.soft;
    c.textAlign = "left";
    c.fillText("not drawn: too many slices", from + 6, TOP + 14);
  }

  /** Draws the arrows of a job: up at its release, down at its deadline. Jobs that are too narrow at this zoom have none. */
  window({ task, release, deadline }, index) {
    if (deadline < shown.from || release > shown.to) return;
    if ((shown.to - shown.from) / (this.width - LEFT) >= (deadline - release) / 6) return;
    const c = this.context;
    const top = TOP + task * this.rowHeight + 2, bottom = top + this.rowHeight - 4;
    const arrow = (x, from, to, stroke) => {
      c.strokeStyle = stroke;
      c.lineWidth = 1;
      c.beginPath();
      c.moveTo(x, from);
      c.lineTo(x, to);
      const back = Math.sign(from - to) * 4;
      c.moveTo(x - 3, to + back);
      c.lineTo(x, to);
      c.lineTo(x + 3, to + back);
      c.stroke();
    };
    arrow(this.x(release), bottom, top, theme.mark);
    arrow(this.x(deadline), top, bottom, this.schedule.why.has(index) ? theme.bad : theme.mark);
  }

  /** Marks the date from which on the first two schedules that are seen run different jobs, and the moment that is explained. */
  marks() {
    this.mark(page.parts_ns ?? null, "first difference", []);
    const isSame = page.parts_ns === page.moment_ns;
    this.mark(page.moment_ns ?? null, isSame ? "" : "this moment", [4, 3], this.height - AXIS - 3);
  }

  /** Draws a line with words at a date, if there is one and it is visible. The words stand at a height. */
  mark(ns, words, dashes, y = 11) {
    if (ns === null || ns < shown.from || ns > shown.to) return;
    const c = this.context, x = this.x(ns), isRight = x > this.width - 110;
    c.strokeStyle = c.fillStyle = theme.focus;
    c.lineWidth = 2;
    c.setLineDash(dashes);
    c.beginPath();
    c.moveTo(x, 2);
    c.lineTo(x, this.height - AXIS);
    c.stroke();
    c.setLineDash([]);
    c.textAlign = isRight ? "right" : "left";
    c.fillText(words, x + (isRight ? -5 : 5), y);
  }

  /** Draws a cross at a missed deadline. */
  cross(job) {
    const { deadline } = this.schedule.jobs[job];
    if (deadline < shown.from || deadline > shown.to) return;
    const c = this.context;
    const x = this.x(deadline), y = TOP + (this.missedRow(job) + 0.5) * this.rowHeight;
    c.strokeStyle = theme.bad;
    c.lineWidth = 2.5;
    c.beginPath();
    c.moveTo(x - 4, y - 4);
    c.lineTo(x + 4, y + 4);
    c.moveTo(x + 4, y - 4);
    c.lineTo(x - 4, y + 4);
    c.stroke();
  }

  axis() {
    const c = this.context;
    // A label needs some room; a wide chart has nine.
    const rough = (shown.to - shown.from) / Math.min(9, Math.max(2, (this.width - LEFT) / 75));
    if (!(rough > 0)) return;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
    c.strokeStyle = theme.line;
    c.lineWidth = 1;
    c.fillStyle = theme.soft;
    for (let row = 0; row <= this.rows; row++) {
      c.beginPath();
      c.moveTo(LEFT, TOP + row * this.rowHeight);
      c.lineTo(this.width, TOP + row * this.rowHeight);
      c.stroke();
    }
    for (let tick = Math.ceil(shown.from / step) * step; tick <= shown.to; tick += step) {
      const x = this.x(tick);
      c.textAlign = x < LEFT + 30 ? "left" : x > this.width - 30 ? "right" : "center";
      c.beginPath();
      c.moveTo(x, TOP);
      c.lineTo(x, this.height - AXIS);
      c.stroke();
      c.fillText(time(Math.round(tick)), x, this.height - 6);
    }
  }

  /** Zooms with ctrl and the wheel (a pinch on a touchpad) and moves with the sideways wheel; the wheel alone scrolls the page. */
  wheel(event) {
    if (event.ctrlKey) {
      event.preventDefault();
      zoom(Math.exp(event.deltaY * 0.003), this.at(event.offsetX));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      const moved = (event.deltaX / (this.width - LEFT)) * (shown.to - shown.from);
      show(shown.from + moved, shown.to + moved);
    }
  }

  /** Handles a key; returns whether it has a meaning here. */
  key(key) {
    const span = shown.to - shown.from;
    const keys = {
      ArrowLeft: () => show(shown.from - span / 5, shown.to - span / 5),
      ArrowRight: () => show(shown.from + span / 5, shown.to + span / 5),
      "+": () => zoom(0.6),
      "=": () => zoom(0.6),
      "-": () => zoom(1 / 0.6),
      0: () => show(0, page.until_ns),
      Home: () => show(0, span),
      End: () => show(page.until_ns - span, page.until_ns),
      n: () => this.step(1),
      p: () => this.step(-1),
      m: () => this.nextMissed(),
      d: () => page.parts_ns != null && this.centre(page.parts_ns),
      Escape: () => (tip.hidden = true),
    };
    if (!keys[key]) return false;
    keys[key]();
    return true;
  }

  /** Moves the cursor by some slices and shows the tooltip of the slice it reaches. */
  step(by) {
    const { slices } = this.schedule;
    if (!slices.length) return;
    const isShown = ({ start, end }) => end > shown.from && start < shown.to;
    const from = this.cursor >= 0 && isShown(slices[this.cursor]) ? this.cursor + by : slices.findIndex(isShown);
    this.cursor = Math.min(Math.max(from, 0), slices.length - 1);
    const slice = slices[this.cursor];
    if (!isShown(slice)) this.centre((slice.start + slice.end) / 2);
    this.tell(slice.job, slice, this.x((slice.start + slice.end) / 2), this.row(slice));
  }

  nextMissed() {
    const { missed } = this.schedule;
    if (!missed.length) return void (said.textContent = "no job is missed");
    const after = missed.find((job) => this.schedule.jobs[job].deadline > (this.lastMissed ?? shown.from)) ?? missed[0];
    this.lastMissed = this.schedule.jobs[after].deadline;
    this.goto(after);
  }

  goto(job) {
    this.centre(this.schedule.jobs[job].deadline);
    this.tell(job, null, this.x(this.schedule.jobs[job].deadline), this.missedRow(job));
  }

  centre(ns) {
    const half = (shown.to - shown.from) / 2;
    show(ns - half, ns + half);
  }

  words(index, slice) {
    const job = this.schedule.jobs[index], { why, open, ends } = this.schedule;
    const lines = [jobName(job) + (slice ? ` on ${page.core_names[slice.core]}` : "") + (page.critical[job.task] ? `, criticality ${page.critical[job.task]}` : "")];
    if (slice) lines.push(`ran ${time(slice.start)} to ${time(slice.end)}`);
    lines.push(`${page.after[job.task]?.length ? "arrived" : "released"} ${time(job.release)}, deadline ${time(job.deadline)}`);
    if (why.has(index)) lines.push(`MISSED: ${why.get(index)}`);
    else if (!open.has(index) && ends.has(index)) lines.push(`completed ${time(ends.get(index))}`);
    else lines.push("its end is not drawn");
    return lines;
  }

  /** Shows the tooltip at a place of the canvas, and announces it to screen readers. */
  tell(job, slice, x, row) {
    this.told = { schedule: this.schedule, job, slice };
    const lines = this.words(job, slice), box = this.canvas.getBoundingClientRect();
    this.tipAt(lines, box.left + x, box.top + TOP + (row + 1) * this.rowHeight);
    said.textContent = lines.join(", ");
  }

  tipAt(lines, x, y) {
    tip.hidden = lines.length === 0;
    tip.textContent = lines.join("\n");
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.min(y + 8, innerHeight - tip.offsetHeight - 8) + "px";
  }

  grab(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.held = { x: event.offsetX, from: shown.from, to: shown.to };
    const drop = () => (this.held = null);
    this.canvas.addEventListener("pointerup", drop, { once: true });
    this.canvas.addEventListener("pointercancel", drop, { once: true });
  }

  point(event) {
    if (this.held) {
      const moved = ((event.offsetX - this.held.x) / (this.width - LEFT)) * (this.held.to - this.held.from);
      return show(this.held.from - moved, this.held.to - moved);
    }
    const ns = this.at(event.offsetX), row = Math.floor((event.offsetY - TOP) / this.rowHeight);
    const isNear = (job) => this.missedRow(job) === row && Math.abs(this.x(this.schedule.jobs[job].deadline) - event.offsetX) < 6;
    const slice = this.schedule.slices.find((slice) => this.row(slice) === row && slice.start <= ns && ns < slice.end);
    const crossed = this.schedule.missed.filter(isNear);
    const waiting = ({ task, release, deadline }) => page.by_task && task === row && release <= ns && ns < deadline;
    let lines = [];
    if (crossed.length) lines = crossed.flatMap((job) => this.words(job, null));
    else if (slice) lines = this.words(slice.job, slice);
    else lines = this.schedule.jobs.flatMap((job, index) => (waiting(job) ? this.words(index, null) : []));
    this.tipAt(lines, event.clientX, event.clientY + 8);
  }

  /** Lists the missed jobs of the visible window; clicking one goes to it. */
  listMissed() {
    this.items.replaceChildren();
    if (!this.list.open || !this.schedule) return;
    const now = this.missedNow();
    for (const job of now.slice(0, MOST_LISTED)) {
      const item = make("li", this.items);
      const button = make("button", item, `${jobName(this.schedule.jobs[job])}, due ${time(this.schedule.jobs[job].deadline)}`);
      button.type = "button";
      button.addEventListener("click", () => {
        this.canvas.focus();
        this.goto(job);
      });
      item.append(": " + this.schedule.why.get(job));
    }
    if (now.length > MOST_LISTED) make("li", this.items, `and ${now.length - MOST_LISTED} more: zoom in`);
  }
}
