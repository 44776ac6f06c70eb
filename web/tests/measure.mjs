// How large and how fast the page is. Each time is a median, beside a fixed loop that says how fast the machine is.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { choose, compared, type, withLab } from "./browser.mjs";

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const say = (what, value, aim) => console.log(`${what.padEnd(64)} ${value.padStart(10)}   aim: ${aim}`);

const bytes = readFileSync(process.env.LAB_PAGE);
say("size of the page, gzipped", `${(gzipSync(bytes, { level: 9 }).length / 1e6).toFixed(2)} MB`, "4 MB");

const firsts = [];
for (let time = 0; time < 5; time++) firsts.push(await withLab((page) => page.evaluate(() => measured.first)));
say("from opening the page to the first picture, median of 5", `${median(firsts).toFixed(0)} ms`, "1000 ms");

await withLab(async (page) => {
  await choose(page, ["edf", "rm", "mh-edf"]);
  await compared(page, () => type(page, "[data-run=horizon]", "1s"));
  await page.evaluate(() => (measured.pictures = []));
  const slider = page.locator("[data-what=wcet]");
  await slider.scrollIntoViewIfNeeded();
  const box = await slider.boundingBox(), y = box.y + box.height / 2;
  await page.mouse.move(box.x + 0.3 * box.width, y);
  await page.mouse.down();
  for (let step = 0; step < 120; step++) {
    await page.mouse.move(box.x + (0.3 + 0.3 * (step / 120)) * box.width, y);
    await page.waitForTimeout(25);
  }
  await page.mouse.up();
  const pictures = await page.evaluate(() => measured.pictures);
  say(`from a drag to its picture: 12 tasks, 3 cores, 3 schedulers, 1 s; median of ${pictures.length}`, `${median(pictures).toFixed(1)} ms`, "16 ms");
});

for (const set of ["robot", "standard-125", "rosace", "autoware-chains"]) {
  await withLab(async (page) => {
    await page.selectOption("#built-in", set);
    await page.waitForFunction((of) => state.name === of, set);
    const times = await page.evaluate(async () => {
      const helper = new Helper(), times = [];
      await helper.ask({ do: "schedules", ...runOf(["edf"]) });
      for (let time = 0; time < 5; time++) {
        // Another set each time, for which the scheduler has not chosen yet.
        state.keys.task[0].wcet = asTime(nanoseconds(state.keys.task[0].wcet) * 0.97);
        const began = performance.now();
        await helper.ask({ do: "schedules", ...runOf(["temponet"]) });
        times.push(performance.now() - began);
      }
      helper.end();
      return times;
    });
    say(`the learned scheduler follows on ${set}, median of 5`, `${median(times).toFixed(0)} ms`, "–");
  });
}

await withLab(async (page) => {
  await choose(page, ["edf", "rm", "dm", "llf", "srpt", "edf-skip", "mh-edf", "edzl", "muf", "fcfs"]);
  await type(page, "[data-run=horizon]", "5s");
  await compared(page, () => type(page, "[data-run=runs]", "1"));
  const times = [];
  for (let time = 0; time < 5; time++) {
    await page.evaluate(() => (measured.comparisons = []));
    await compared(page, () => type(page, "[data-run=seed]", String(time + 2)));
    times.push(await page.evaluate(() => measured.comparisons.at(-1)));
  }
  say("5 s of robot under ten schedulers, with verdict and bound, median of 5", `${median(times).toFixed(0)} ms`, "1000 ms");
  const alone = await page.evaluate(async () => {
    const began = performance.now();
    await quick.ask({ do: "schedules", ...runOf() });
    return performance.now() - began;
  });
  say("the same, simulation and pictures alone", `${alone.toFixed(0)} ms`, "1000 ms");
});

const began = performance.now();
let sum = 0;
for (let at = 0; at < 1e8; at++) sum = (sum + at * 7) | 0;
say("a loop of 1e8 additions on this machine", `${(performance.now() - began).toFixed(0)} ms`, `– (${sum & 1})`);
