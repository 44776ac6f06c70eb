// The page can be used by everybody: axe finds no serious fault, a phone does not scroll sideways, and it prints.
import assert from "node:assert/strict";
import { test } from "node:test";
import { axeSource, choose, compared, type, withLab } from "./browser.mjs";

/** Shows a bit of everything. */
async function fill(page) {
  await choose(page, ["edf", "rm", "mh-edf"]);
  await compared(page, () => type(page, "[data-run=horizon]", "500ms"));
  await page.click("#analyze");
  await page.locator("#analysis .verdict").waitFor();
  await page.locator("#charts canvas").first().focus();
  await page.keyboard.press("e");
  await page.locator("#moment h3").first().waitFor();
}

async function faults(page) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((of) => (of.open = true)));
  // The policy of the page lets nothing else in, but a test may evaluate.
  await page.evaluate((await import("node:fs")).readFileSync(axeSource, "utf8"));
  const { violations } = await page.evaluate(() => axe.run());
  return violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).slice(0, 4).join(" | ")}`);
}

for (const colorScheme of ["light", "dark"]) {
  test(`axe finds no serious fault in the ${colorScheme}`, async () => {
    await withLab(async (page) => {
      await fill(page);
      assert.deepEqual(await faults(page), []);
    }, { colorScheme });
  });
}

test("on a phone nothing scrolls sideways, and axe finds no serious fault", async () => {
  await withLab(async (page) => {
    await fill(page);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
    assert.deepEqual(await faults(page), []);
  }, { viewport: { width: 390, height: 800 } });
});

test("everything is reached by the keyboard, and what has the focus is seen", async () => {
  await withLab(async (page) => {
    await compared(page);
    const reached = new Set();
    for (let press = 0; press < 400; press++) {
      await page.keyboard.press("Tab");
      const id = await page.evaluate(() => {
        const { id, dataset, tagName, type } = document.activeElement;
        return id || dataset.key || dataset.run || dataset.what || dataset.key || (tagName === "CANVAS" ? "canvas" : type);
      });
      reached.add(id);
      if (id === "analyze") break;
    }
    for (const id of ["built-in", "file", "tour", "link", "save", "add-task", "cores", "horizon", "canvas", "what-task", "wcet", "draw-curve", "analyze"]) assert.ok(reached.has(id), `${id} of ${[...reached]}`);
  });
});

test("it prints", async () => {
  await withLab(async (page) => {
    await fill(page);
    assert.ok((await page.pdf()).length > 10_000);
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator(".bar-of-tools").isVisible(), false);
  });
});
