// The figures of the page are those of the command line: bit for bit where no network decides and no logarithm is in between.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { choose, compared, type, withLab } from "./browser.mjs";

/** Figures of intervals go through logarithms, whose last digits are those of the machine's library. They are rounded to this many digits. */
const DIGITS = 12;
const OF_INTERVALS = /^(compliance_ci95|compliance_interval|advice)$/;
/** Returns figures with those of intervals rounded. */
function rounded(value, isInterval = false) {
  if (typeof value === "number") return isInterval ? Number(value.toPrecision(DIGITS)) : value;
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((item) => rounded(item, isInterval));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, rounded(item, isInterval || OF_INTERVALS.test(key))]));
}

/** Largest difference of a share in time where the network decides: its numbers are rounded differently by each kernel. */
const CLOSE = 0.02;
const fromCommandLine = (...options) => JSON.parse(execFileSync(process.env.TEMPONET_CLI, ["compare", ...options, "--json"], { maxBuffer: 1 << 28 }));
const RULES = ["edf", "rm", "llf", "mh-edf", "srpt"];

for (const [set, horizon, runs] of [["robot", "1s", "3"], ["standard-125", "", ""], ["gap-avionics", "2s", "2"], ["autoware-chains", "1s", "2"]]) {
  test(`the page has the figures of the command line for ${set}`, async () => {
    const options = [...(horizon ? ["--horizon", horizon] : []), ...(runs ? ["--runs", runs] : [])];
    const expected = fromCommandLine(set, "--schedulers", RULES.join(","), ...options);
    const found = await withLab(async (page) => {
      await page.selectOption("#built-in", set);
      await choose(page, RULES);
      await type(page, "[data-run=horizon]", horizon);
      await compared(page, () => type(page, "[data-run=runs]", runs));
      return page.evaluate(() => comparison);
    });
    assert.deepEqual(rounded(found), rounded(expected));
  });
}

test("the learned scheduler is close to that of the command line, with either kernel", async () => {
  const expected = fromCommandLine("robot", "--schedulers", "temponet,edf", "--horizon", "1s", "--runs", "2");
  await withLab(async (page) => {
    await choose(page, ["temponet", "edf"]);
    await type(page, "[data-run=horizon]", "1s");
    await type(page, "[data-run=runs]", "2");
    for (const kernel of ["scalar", "simd128"]) {
      await compared(page, () => page.selectOption("[data-run=kernel]", kernel));
      const found = await page.evaluate(() => comparison);
      for (const { scheduler, compliance, decider } of expected.results) {
        const own = found.results.find((row) => row.scheduler === scheduler);
        const most = scheduler === "edf" ? 0 : CLOSE;
        assert.ok(Math.abs(own.compliance - compliance) <= most, `${kernel}, ${scheduler}: ${own.compliance} and ${compliance}`);
        assert.equal(own.decider?.name, decider?.name, kernel);
      }
    }
  });
});
