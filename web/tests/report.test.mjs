// The page of `temponet compare --report` has the same scripts: it draws, follows keys, and says nothing in the console.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { withPage } from "./browser.mjs";

test("the page of a comparison draws its schedules and response times", async () => {
  const folder = mkdtempSync(join(tmpdir(), "report-"));
  try {
    const out = join(folder, "out.html");
    execFileSync(process.env.TEMPONET_CLI, ["compare", "robot", "--schedulers", "edf,rm,mh-edf", "--horizon", "1s", "--runs", "2", "--report", out], { stdio: "ignore" });
    await withPage("file://" + out, async (page) => {
      assert.equal(await page.locator("#charts canvas:not([hidden])").count(), 2);
      assert.ok((await page.locator("#responses polyline").count()) > 1);
      assert.match(await page.locator("section .hint").first().textContent(), /^They part at /);
      await page.locator("#charts canvas").first().focus();
      const before = await page.locator("#window").textContent();
      await page.keyboard.press("+");
      assert.notEqual(await page.locator("#window").textContent(), before);
      await page.keyboard.press("m");
      assert.match(await page.locator("#said").textContent(), /MISSED: /);
      await page.locator("#charts select").nth(2).selectOption({ index: 1 });
      assert.equal(await page.locator("#charts canvas:not([hidden])").count(), 3);
      const colours = await page.evaluate(() => {
        const canvas = document.querySelector("#charts canvas");
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size;
      });
      assert.ok(colours > 5, `${colours} colors are drawn`);
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
