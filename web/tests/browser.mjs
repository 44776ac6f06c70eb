// A browser with the page of the lab, opened from disk. Errors in its console and requests to anywhere else fail a test.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const require = createRequire(join(process.env.LAB_MODULES, "node_modules/"));
const { chromium } = require("playwright-core");
export const axeSource = require.resolve("axe-core/axe.min.js");
export const address = "file://" + process.env.LAB_PAGE;
const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
/** Longest time that anything takes here, in milliseconds; a busy machine is slow. */
export const PATIENCE = 120_000;

/** Calls a function with the lab in a fresh browser, after its first picture. */
export const withLab = (use, { url = address, ...options } = {}) =>
  withPage(url, async (page) => {
    await page.waitForFunction(() => measured.first);
    return use(page);
  }, options);

/** Calls a function with a page in a fresh browser, and checks what it said and asked for. */
export async function withPage(url, use, options = {}) {
  const folder = mkdtempSync(join(tmpdir(), "lab-"));
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: "/usr/bin/chromium", headless: true, args: QUIET, viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options,
  });
  try {
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage(), said = [], asked = [];
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && said.push(message.text()));
    page.on("pageerror", (error) => said.push(error.stack ?? String(error)));
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(url);
    const result = await use(page);
    assert.deepEqual(said, [], "nothing is said in the console");
    assert.deepEqual(asked.filter((of) => of.split("#")[0] !== url.split("#")[0] && !of.startsWith("blob:") && !of.startsWith("data:")), [], "nothing is requested");
    return result;
  } finally {
    await context.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Does something, and waits until everything has been compared. */
export async function compared(page, action = async () => {}) {
  await action();
  await page.waitForFunction(() => document.getElementById("ranking-section").getAttribute("aria-busy") === "false");
}

/** Changes what an input holds, as typing does. */
export async function type(page, selector, text) {
  await page.fill(selector, text);
  await page.locator(selector).blur();
}

/** Chooses these schedulers, and no others, by clicking. */
export async function choose(page, names) {
  await page.locator("#schedulers").evaluate((box) => (box.parentElement.open = true));
  await page.evaluate(() => document.querySelectorAll("#schedulers input:checked").forEach((input) => input.click()));
  for (const name of names) await page.locator(`#schedulers input[value="${name}"]`).check();
}

/** Opens a file with a text, as choosing it does. */
export const openFile = (page, name, text) => page.setInputFiles("#file", { name, mimeType: "text/plain", buffer: Buffer.from(text) });

/** Waits until a refusal stands above the table that has some words in it, and returns it. */
export async function refusal(page, words) {
  await page.waitForFunction((words) => document.getElementById("alert").textContent.includes(words), words);
  return page.locator("#alert").textContent();
}
