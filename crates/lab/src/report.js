"use strict";
const page = JSON.parse(document.getElementById("data").textContent);
const MISSED = "#c8102e";
/** What is less than everything never reads as 100%. */
const percent = (share) => (100 * share).toFixed(share < 1 && share >= 0.99995 ? 4 : 2) + "%";
const make = (name, parent, text) => {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
};

/** 12345678 ns as a short text with a fitting unit. */
function time(ns) {
  if (ns === null || ns === undefined) return "–";
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
    if (Math.abs(ns) >= size) return +(ns / size).toPrecision(5) + " " + unit;
  }
  return ns === 0 ? "0" : ns + " ns";
}

/** The share of deadlines met as a bar and a figure, in the one column that shows nothing else. */
function bar(cell, show, share, prefix) {
  if (show) return;
  cell.className = "bar";
  make("i", cell).style.width = 110 * share + "px";
  cell.append(prefix + percent(share));
}

function ranking() {
  const optimum = page.clairvoyant;
  const atLeast = optimum && !optimum.exact ? "≥ " : "";
  const atMost = optimum && !optimum.exact ? "≤ " : "";
  const table = document.getElementById("ranking");
  const columns = [
    ["scheduler", (row) => row.scheduler],
    ["deadlines met", null],
    page.clairvoyant && ["of optimum", (row) => atLeast + percent(Math.round(row.compliance * optimum.released) / optimum.upper)],
    ["± 95%", (row) => (row.ci95 === null ? "–" : percent(row.ci95))],
    ["missed", (row) => row.missed.toLocaleString("en")],
    page.has_critical && ["critical met", (row) => (row.pitmd === null ? "–" : percent(row.pitmd))],
    page.has_values && ["value", (row) => percent(row.value / row.value_possible)],
    ["response, completed", (row) => time(row.art_completed_ns)],
    ["response, all", (row) => time(row.art_all_ns)],
    ["lateness p95", (row) => time(row.lateness_p95_ns)],
    ["preemptions / job", (row) => row.preemptions_per_job.toFixed(2)],
    page.cores > 1 && ["migrations / job", (row) => row.migrations_per_job.toFixed(2)],
    ["idle", (row) => percent(row.idle)],
  ].filter(Boolean);
  const head = make("tr", table);
  columns.forEach(([name]) => make("th", head, name));
  if (optimum) {
    const line = make("tr", table);
    const cells = {
      "scheduler": optimum.exact ? "clairvoyant optimum" : "clairvoyant bound",
      "missed": (optimum.exact ? "" : "≥ ") + (optimum.released - optimum.upper).toLocaleString("en"),
      "critical met": optimum.critical === null ? "" : atMost + percent(optimum.critical),
      "value": optimum.value === null ? "" : atMost + percent(optimum.value),
    };
    line.className = "optimum";
    columns.forEach(([name, show]) => bar(make("td", line, show ? cells[name] ?? "" : ""), show, optimum.upper / optimum.released, atMost));
  }
  for (const row of page.rows) {
    const line = make("tr", table);
    for (const [, show] of columns) {
      bar(make("td", line, show ? show(row) : ""), show, row.compliance, "");
    }
  }
}

/** The part of the time axis that all schedules show: at first, as much as can be read. */
const shown = { from: 0, to: page.first_view_ns };
const charts = [];
const LEFT = 150, TOP = 8, AXIS = 22;

class Chart {
  constructor(row, parent) {
    this.row = row;
    const box = make("div", parent);
    box.className = "chart";
    const title = make("h3", box, row.scheduler + " ");
    const missed = row.jobs.filter((job) => job[5]).length;
    make("small", title, missed ? `${missed} missed in this window` : "nothing missed in this window");
    this.canvas = make("canvas", box);
    this.canvas.addEventListener("wheel", (event) => this.zoom(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.grab(event));
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => (tip.hidden = true));
    this.canvas.addEventListener("dblclick", () => show(0, page.until_ns));
  }

  resize() {
    // By core, missed deadlines get a row of their own below: a job that never ran has no core.
    this.rows = page.by_task ? page.tasks.length : page.cores + 1;
    this.rowHeight = page.by_task ? (this.rows > 8 ? 20 : 30) : 26;
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = TOP + this.rows * this.rowHeight + AXIS;
    this.canvas.style.height = this.height + "px";
    this.canvas.width = this.width * ratio;
    this.canvas.height = this.height * ratio;
    this.context = this.canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  x(ns) { return LEFT + ((ns - shown.from) / (shown.to - shown.from)) * (this.width - LEFT); }
  at(x) { return shown.from + ((x - LEFT) / (this.width - LEFT)) * (shown.to - shown.from); }
  rowOf(core, task) { return page.by_task ? task : core; }

  draw() {
    const c = this.context;
    c.clearRect(0, 0, this.width, this.height);
    c.font = "12px system-ui, sans-serif";
    c.save();
    c.beginPath();
    c.rect(LEFT, 0, this.width - LEFT, this.height);
    c.clip();
    this.axis();
    const bar = this.rowHeight * 0.55;
    for (const [core, task, , start, end] of this.row.slices) {
      if (end < shown.from || start > shown.to) continue;
      const colour = page.by_task && page.cores > 1 ? core : task;
      c.fillStyle = page.palette[colour % page.palette.length];
      const x = this.x(start);
      c.fillRect(x, TOP + this.rowOf(core, task) * this.rowHeight + (this.rowHeight - bar) / 2, Math.max(0.7, this.x(end) - x), bar);
    }
    this.row.jobs.forEach((job) => this.marks(job));
    c.restore();
    c.fillStyle = "#1c2733";
    c.textAlign = "right";
    for (let row = 0; row < this.rows; row++) {
      const label = page.by_task ? page.tasks[row] : row < page.cores ? "core " + row : "missed";
      c.fillText(label.length > 20 ? label.slice(0, 19) + "…" : label, LEFT - 8, TOP + (row + 0.5) * this.rowHeight + 4);
    }
  }

  /** Release up, deadline down, a red cross at a missed one. */
  marks([task, , release, deadline, , why]) {
    if (deadline < shown.from || release > shown.to) return;
    const c = this.context;
    const row = page.by_task ? task : page.cores;
    const top = TOP + row * this.rowHeight + 2, bottom = top + this.rowHeight - 4;
    const arrow = (x, from, to, colour) => {
      c.strokeStyle = colour;
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
    if (page.by_task && (shown.to - shown.from) / (this.width - LEFT) < (deadline - release) / 6) {
      arrow(this.x(release), bottom, top, "#8a97a3");
      arrow(this.x(deadline), top, bottom, why ? MISSED : "#8a97a3");
    }
    if (why) {
      const x = this.x(deadline) - 8, y = (top + bottom) / 2;
      c.strokeStyle = MISSED;
      c.lineWidth = 2.5;
      c.beginPath();
      c.moveTo(x - 4, y - 4); c.lineTo(x + 4, y + 4);
      c.moveTo(x + 4, y - 4); c.lineTo(x - 4, y + 4);
      c.stroke();
    }
  }

  axis() {
    const c = this.context;
    const rough = (shown.to - shown.from) / 9;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
    c.strokeStyle = "#edf0f3";
    c.lineWidth = 1;
    c.fillStyle = "#5c6b7a";
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

  zoom(event) {
    event.preventDefault();
    const centre = this.at(event.offsetX);
    const factor = Math.exp(event.deltaY * 0.0015);
    show(centre + (shown.from - centre) * factor, centre + (shown.to - centre) * factor);
  }

  grab(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.held = { x: event.offsetX, from: shown.from, to: shown.to };
    this.canvas.addEventListener("pointerup", () => (this.held = null), { once: true });
  }

  point(event) {
    if (this.held) {
      const moved = ((event.offsetX - this.held.x) / (this.width - LEFT)) * (this.held.to - this.held.from);
      show(this.held.from - moved, this.held.to - moved);
      return;
    }
    const ns = this.at(event.offsetX);
    const row = Math.floor((event.offsetY - TOP) / this.rowHeight);
    const lines = [];
    const slice = this.row.slices.find(([core, task, , start, end]) => this.rowOf(core, task) === row && start <= ns && ns < end);
    if (slice) lines.push(`${page.tasks[slice[1]]} #${slice[2]} on core ${slice[0]}`, `ran ${time(slice[3])} to ${time(slice[4])}`);
    const nearCross = (deadline) => Math.abs(this.x(deadline) - 8 - event.offsetX) < 7;
    const isHere = ([task, number, release, deadline, , why]) => {
      if (slice) return task === slice[1] && number === slice[2];
      if (!page.by_task) return row === page.cores && why && nearCross(deadline);
      return task === row && release <= ns && ns < deadline;
    };
    for (const [task, number, release, deadline, left, why] of this.row.jobs.filter(isHere)) {
      if (!slice) lines.push(`${page.tasks[task]} #${number}`);
      lines.push(`released ${time(release)}, deadline ${time(deadline)}`);
      lines.push(why ? `MISSED: ${why}` : left <= deadline ? `completed ${time(left)}` : "still open");
    }
    tip.hidden = lines.length === 0;
    tip.textContent = lines.join("\n");
    tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
    tip.style.top = event.clientY + 16 + "px";
  }
}

const tip = document.getElementById("tip");

function show(from, to) {
  const all = page.until_ns;
  const span = Math.min(Math.max(to - from, 1000), all);
  shown.from = Math.min(Math.max(from, 0), all - span);
  shown.to = shown.from + span;
  charts.forEach((chart) => chart.draw());
}

function schedules() {
  const parent = document.getElementById("charts");
  const optimum = page.clairvoyant ? [page.clairvoyant] : [];
  [...optimum, ...page.rows].forEach((row) => charts.push(new Chart(row, parent)));
  const choice = document.getElementById("by-task");
  choice.checked = page.by_task;
  const redraw = () => {
    charts.forEach((chart) => chart.resize());
    show(shown.from, shown.to);
  };
  choice.addEventListener("change", () => {
    page.by_task = choice.checked;
    redraw();
  });
  addEventListener("resize", redraw);
  redraw();
}

/** Distribution curves on a logarithmic time axis. */
function responses() {
  const box = document.getElementById("responses");
  const values = page.rows.flatMap((row) => row.responses.map(([, ns]) => ns)).filter((ns) => ns > 0);
  if (!values.length) return void make("p", box, "No job completed.");
  const W = 760, H = 320, L = 52, B = 34, low = Math.log10(Math.min(...values)), high = Math.log10(Math.max(...values)) + 0.02;
  const x = (ns) => L + ((Math.log10(Math.max(ns, 1)) - low) / (high - low || 1)) * (W - L - 10);
  const y = (share) => 8 + (1 - share) * (H - B - 8);
  let svg = "";
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    svg += `<line x1="${L}" x2="${W - 10}" y1="${y(share)}" y2="${y(share)}" stroke="#e6eaee"/>`;
    svg += `<text x="${L - 6}" y="${y(share) + 4}" text-anchor="end">${100 * share}%</text>`;
  }
  for (let power = Math.floor(low); power <= high; power++) {
    // Over many decades there is room for one label each.
    for (const factor of high - low > 3 ? [1] : [1, 2, 5]) {
      const ns = factor * 10 ** power, at = x(ns);
      if (at < L || at > W - 10) continue;
      svg += `<line x1="${at}" x2="${at}" y1="8" y2="${H - B}" stroke="#eef1f4"/>`;
      svg += `<text x="${at}" y="${H - B + 16}" text-anchor="middle">${time(ns)}</text>`;
    }
  }
  const colour = (index) => page.palette[index % page.palette.length];
  const dash = (index) => (index < page.palette.length ? "" : "5 3");
  page.rows.forEach((row, index) => {
    const points = row.responses.map(([share, ns]) => `${x(ns).toFixed(1)},${y(share).toFixed(1)}`).join(" ");
    svg += `<polyline data-row="${index}" points="${points}" fill="none" stroke="${colour(index)}" stroke-width="1.8" stroke-dasharray="${dash(index)}"/>`;
  });
  const holder = make("div", box);
  holder.innerHTML = `<svg width="${W}" height="${H}" font-size="12" fill="#5c6b7a">${svg}</svg>`;
  const legend = make("div", box);
  legend.className = "legend";
  page.rows.forEach((row, index) => {
    const entry = make("div", legend);
    make("i", entry).style.background = colour(index);
    entry.append(row.scheduler);
    const lines = holder.querySelectorAll("polyline");
    entry.addEventListener("mouseenter", () => lines.forEach((line) => (line.style.opacity = line.dataset.row == index ? 1 : 0.12)));
    entry.addEventListener("mouseleave", () => lines.forEach((line) => (line.style.opacity = 1)));
  });
}

/** Rows of the task table. */
const MOST_TASKS = 200;

function tasks() {
  const table = document.getElementById("tasks");
  const head = make("tr", table);
  make("th", head, "task");
  page.rows.forEach((row) => make("th", head, row.scheduler));
  // The worst first, so that a long list can be cut.
  const worst = (task) => Math.min(...page.rows.map((row) => row.tasks[task]));
  let order = page.tasks.map((_, task) => task);
  if (order.length > MOST_TASKS) {
    order = order.sort((a, b) => worst(a) - worst(b)).slice(0, MOST_TASKS);
    make("caption", table, `the ${MOST_TASKS} worst of ${page.tasks.length} tasks`);
  }
  order.forEach((task) => {
    const name = page.tasks[task];
    const line = make("tr", table);
    make("td", line, name);
    for (const row of page.rows) {
      const met = row.tasks[task];
      const cell = make("td", line, (100 * met).toFixed(1));
      cell.style.background = `color-mix(in srgb, #009e73 ${Math.round(met * met * 45)}%, #f6c9c4 ${Math.round((1 - met) * 100)}%)`;
      if (met === 1) cell.style.background = "#e3f4ee";
    }
  });
}

ranking();
schedules();
responses();
tasks();
