"use strict";
/** The sensitivity curve: the share of deadlines met over the load, point by point, coarse first. */
const curve = { points: new Map(), isDrawing: false, now: null };
/** Loads of the curve, in the order in which they are found. */
const LOADS = (() => {
  const all = Array.from({ length: 25 }, (_, at) => 0.4 + at * 0.05);
  return [8, 4, 2, 1].flatMap((step) => all.filter((_, at) => at % step === 0)).filter((load, at, list) => list.indexOf(load) === at);
})();

async function drawCurve() {
  if (curve.isDrawing) return;
  curve.isDrawing = true;
  curve.points.clear();
  const words = document.getElementById("curve-words"), { set, ...run } = runOf();
  working(true);
  try {
    for (const [at, load] of LOADS.entries()) {
      words.textContent = `${at} of ${LOADS.length} points`;
      const found = await long.ask({ do: "curve", run: { set, ...run }, load });
      curve.now = found.now;
      curve.points.set(load, found.shares);
      drawPoints();
    }
    words.textContent = "";
  } catch (error) {
    words.textContent = error instanceof Cancelled ? `Stopped after ${curve.points.size} points.` : error.message;
    if (!(error instanceof Cancelled || error instanceof Refused)) throw error;
  } finally {
    curve.isDrawing = false;
    working(long.waiting.size > 0);
  }
}

function drawPoints() {
  const box = document.getElementById("curve");
  const W = 760, H = 320, L = 52, B = 40, R = 130;
  const points = [...curve.points].sort(([a], [b]) => a - b);
  const names = state.schedulers.filter((name) => points.some(([, shares]) => shares.some(({ scheduler }) => scheduler === name)));
  const all = points.flatMap(([, shares]) => shares.map(({ share }) => share));
  const low = Math.floor(Math.min(...all, 0.95) * 10) / 10, first = Math.min(...LOADS), last = Math.max(...LOADS);
  const x = (load) => L + ((load - first) / (last - first)) * (W - L - R), y = (share) => 10 + ((1 - share) / (1 - low)) * (H - B - 10);
  box.replaceChildren();
  const svg = makeSvg("svg", box, { viewBox: `0 0 ${W} ${H}`, width: W, "font-size": 12, role: "img", "aria-label": `Share of deadlines met over the load, ${points.length} points. The figures are in the table below.` });
  for (let share = low; share <= 1.0001; share += low > 0.6 ? 0.05 : 0.1) {
    makeSvg("line", svg, { x1: L, x2: W - R, y1: y(share), y2: y(share), class: "line" });
    makeSvg("text", svg, { x: L - 6, y: y(share) + 4, "text-anchor": "end", class: "soft" }, Math.round(100 * share) + "%");
  }
  for (let load = first; load <= last + 0.001; load += 0.2) {
    makeSvg("line", svg, { x1: x(load), x2: x(load), y1: 10, y2: H - B, class: "line" });
    makeSvg("text", svg, { x: x(load), y: H - B + 16, "text-anchor": "middle", class: "soft" }, load.toFixed(1));
  }
  makeSvg("text", svg, { x: (L + W - R) / 2, y: H - 6, "text-anchor": "middle", class: "soft" }, "mean load per core");
  if (curve.now >= first && curve.now <= last) {
    makeSvg("line", svg, { x1: x(curve.now), x2: x(curve.now), y1: 10, y2: H - B, class: "bound", "stroke-dasharray": "4 3" });
    makeSvg("text", svg, { x: x(curve.now) + 4, y: H - B - 6 }, "this set");
  }
  names.forEach((name, place) => {
    const of = points.flatMap(([load, shares]) => shares.filter(({ scheduler }) => scheduler === name).map(({ share }) => [x(load), y(share)]));
    const style = { class: "s" + (place % COLOURS), "stroke-width": 2, "stroke-dasharray": DASHES[Math.floor(place / COLOURS) % DASHES.length] };
    makeSvg("title", makeSvg("polyline", svg, { points: of.map((at) => at.map((value) => value.toFixed(1)).join(",")).join(" "), ...style }), {}, name);
    makeSvg("line", svg, { x1: W - R + 10, x2: W - R + 28, y1: 18 + 16 * place, y2: 18 + 16 * place, ...style });
    makeSvg("text", svg, { x: W - R + 33, y: 22 + 16 * place }, name);
  });
  const details = make("details", box);
  make("summary", details, "The curve as a table");
  const table = make("table", details), head = make("tr", make("thead", table)), body = make("tbody", table);
  ["load", ...names].forEach((name) => (make("th", head, name).scope = "col"));
  for (const [load, shares] of points) {
    const row = make("tr", body);
    make("td", row, load.toFixed(2));
    names.forEach((name) => {
      const share = shares.find(({ scheduler }) => scheduler === name)?.share;
      make("td", row, share === undefined ? "–" : (100 * share).toFixed(2) + "%");
    });
  }
}
document.getElementById("draw-curve").addEventListener("click", drawCurve);
