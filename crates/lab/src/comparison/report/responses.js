"use strict";
/** Draws the distributions of response times on a logarithmic time axis. Check boxes beside the chart switch curves on and off. */
function drawResponses() {
  const box = document.getElementById("responses");
  box.replaceChildren();
  const W = 760, H = 330, L = 52, B = 34, R = 10;
  const curves = page.responses;
  /** Series by index of the curve. A curve takes the first free series when it is switched on, so a few curves never share a color. */
  const series = new Map();
  const seriesOf = (index) => {
    if (!series.has(index)) {
      const used = new Set(series.values());
      let free = 0;
      while (used.has(free)) free++;
      series.set(index, free);
    }
    return series.get(index);
  };
  const holder = make("div", box);
  holder.className = "curves";
  // It scrolls sideways in a narrow window, also by keys.
  Object.assign(holder, { tabIndex: 0, role: "group", ariaLabel: "Curves of response times" });
  const boxes = make("fieldset", box);
  make("legend", boxes, "Curves");
  const inputs = curves.map((curve) => {
    const label = make("label", boxes);
    const input = make("input", label);
    input.type = "checkbox";
    input.checked = curve.shown;
    input.disabled = !curve.ns.length;
    make("i", label);
    label.append(curve.name);
    input.addEventListener("change", draw);
    label.addEventListener("mouseenter", () => fade(curve));
    label.addEventListener("mouseleave", () => fade(null));
    input.addEventListener("focus", () => fade(curve));
    input.addEventListener("blur", () => fade(null));
    return input;
  });

  /** Fades all curves except one; shows all of them again if the curve is null or switched off. */
  function fade(curve) {
    const on = curve && inputs[curves.indexOf(curve)].checked;
    holder.querySelectorAll("polyline").forEach((line) => (line.style.opacity = !on || line.dataset.name === curve.name ? 1 : 0.15));
  }

  function draw() {
    const shown = curves.map((_, index) => index).filter((index) => inputs[index].checked);
    [...series.keys()].filter((index) => !shown.includes(index)).forEach((index) => series.delete(index));
    holder.replaceChildren();
    const values = shown.flatMap((index) => curves[index].ns).filter((ns) => ns > 0);
    inputs.forEach((input, index) => {
      const sample = input.nextSibling;
      sample.style.borderTopColor = input.checked ? `var(--c${seriesOf(index) % COLOURS})` : "transparent";
      sample.style.borderTopStyle = input.checked && seriesOf(index) >= COLOURS ? "dashed" : "solid";
    });
    if (!values.length) return void make("p", holder, curves.some((curve) => curve.ns.length) ? "No curve is switched on." : "No job completed.");
    const low = Math.log10(Math.min(...values)), high = Math.log10(Math.max(...values)) + 0.02;
    const x = (ns) => L + ((Math.log10(Math.max(ns, 1)) - low) / (high - low || 1)) * (W - L - R);
    const y = (share) => 8 + (1 - share) * (H - B - 8);
    const words = shown.map((index) => `${curves[index].name}: half within ${time(curves[index].ns[Math.floor(curves[index].ns.length / 2)])}`);
    const svg = makeSvg("svg", holder, { viewBox: `0 0 ${W} ${H}`, "font-size": 12, role: "img", "aria-label": `Response times of completed jobs. ${words.join("; ")}. All figures are in the table below.` });
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      makeSvg("line", svg, { x1: L, x2: W - R, y1: y(share), y2: y(share), class: "line" });
      makeSvg("text", svg, { x: L - 6, y: y(share) + 4, "text-anchor": "end", class: "soft" }, 100 * share + "%");
    }
    for (let power = Math.floor(low); power <= high; power++) {
      // Over many decades there is room for only one label per decade.
      for (const factor of high - low > 3 ? [1] : [1, 2, 5]) {
        const ns = factor * 10 ** power, at = x(ns);
        if (at < L || at > W - R) continue;
        makeSvg("line", svg, { x1: at, x2: at, y1: 8, y2: H - B, class: "line" });
        makeSvg("text", svg, { x: at, y: H - B + 16, "text-anchor": "middle", class: "soft" }, time(ns));
      }
    }
    for (const index of shown.filter((index) => curves[index].ns.length)) {
      const { name, ns, completed } = curves[index], of = seriesOf(index);
      const points = ns.map((value, step) => `${x(value).toFixed(1)},${y((step / (ns.length - 1 || 1)) * completed).toFixed(1)}`).join(" ");
      const line = makeSvg("polyline", svg, { points, class: "s" + (of % COLOURS), "stroke-width": 2, "stroke-dasharray": DASHES[Math.floor(of / COLOURS) % DASHES.length], "data-name": name });
      makeSvg("title", line, {}, name);
    }
  }
  draw();
}
