// Every step of every tour is walked by clicking; a picture of each tour is kept if there is a folder for them.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { compared, withLab } from "./browser.mjs";

/** What each tour claims, step by step: the name of a scheduler and whether it misses jobs. */
const CLAIMS = [
  [["edf", false], ["edf", true], ["edf", true], ["mh-edf", true], ["mh-edf", true]],
  [["fp", true], ["fp", true], ["edf", null], ["fp", false], ["fp", false]],
  [["edf", false], ["edf", true], ["edf", true], ["edzl", false], ["edzl", false]],
  [["edf", true], ["edf", true], ["shield:srpt", true], ["shield:srpt", true], ["temponet", true]],
  [["edf", false], ["edf", true], ["rm", true], ["edf", false], ["edf", false]],
  [["edf", true], ["temponet", true], ["temponet", true], ["temponet", true], ["temponet", true]],
];
/** The step of each tour whose picture is kept. */
const PICTURED = [3, 0, 1, 3, 1, 1];
const NAMES = ["domino", "mars-pathfinder", "dhall", "shield", "blocking", "learned"];

for (const [tour, claims] of CLAIMS.entries()) {
  test(`the tour ${NAMES[tour]} shows what it says`, async () => {
    await withLab(async (page) => {
      await page.selectOption("#tour", String(tour));
      for (const [step, [scheduler, misses]] of claims.entries()) {
        if (step) await page.click("#guide-next");
        await page.waitForFunction((of) => document.body.dataset.step === of, `${tour}.${step}`);
        await compared(page);
        assert.equal(await page.locator("#alert").textContent(), "");
        const rows = await page.evaluate(() => comparison.results);
        const row = rows.find((of) => of.scheduler === scheduler);
        assert.ok(row, `${scheduler} is in ${rows.map((of) => of.scheduler)}`);
        if (misses !== null) assert.equal(row.missed > 0, misses, `step ${step}: ${scheduler} misses ${row.missed}`);
        if (NAMES[tour] === "shield") {
          const critical = (name) => rows.find((of) => of.scheduler === name).by_criticality.find((level) => level.criticality === 1);
          const bare = step < 3 ? "srpt" : "edf";
          assert.ok(critical(bare).met < critical(bare).released, `${bare} lets critical jobs be late`);
          assert.equal(critical("shield:srpt").met, critical("shield:srpt").released, "no critical job is late behind the shield");
        }
        if (process.env.LAB_PICTURES && step === PICTURED[tour]) {
          await page.screenshot({ path: join(process.env.LAB_PICTURES, `lab-${NAMES[tour]}.png`), fullPage: process.env.LAB_PICTURES.endsWith("/full") });
        }
      }
      await page.click("#guide-back");
      await page.waitForFunction((of) => document.body.dataset.step === of, `${tour}.${claims.length - 2}`);
      await page.click("#guide-end");
      assert.equal(await page.locator("#guide").isVisible(), false);
    }, { viewport: { width: 1000, height: 700 } });
  });
}
