// Traces are opened in the page itself: the same set and the same notes as `temponet import`, whatever the format, and whatever the size.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { choose, compared, openFile, refusal, type, withLab } from "./browser.mjs";

let folder;
before(() => {
  folder = mkdtempSync(join(tmpdir(), "lab-traces-"));
  cpSync(process.env.LAB_TRACES, folder, { recursive: true });
  execFileSync(process.env.TEMPONET_CLI, ["simulate", "robot", "--scheduler", "edf", "--horizon", "3s", "--trace", "chrome.json"], { cwd: folder, stdio: "ignore" });
  writeFileSync(join(folder, "babeltrace.txt"), callbacks());
  writeFileSync(join(folder, "markers.txt"), markers());
});
after(() => rmSync(folder, { recursive: true, force: true }));

/** A timer of ROS 2 whose callback publishes, and one that works on what it publishes, as babeltrace2 prints it. */
function callbacks() {
  const lines = [
    'ros2:rcl_node_init: { cpu_id = 1 }, { vpid = 5, vtid = 5 }, { node_handle = 0x11, rmw_handle = 0x0, node_name = "camera", namespace = "/" }',
    'ros2:rcl_timer_init: { cpu_id = 1 }, { vpid = 5, vtid = 5 }, { timer_handle = 0x31, period = 20000000 }',
    "ros2:rclcpp_timer_callback_added: { cpu_id = 1 }, { vpid = 5, vtid = 5 }, { timer_handle = 0x31, callback = 0x100 }",
    "ros2:rclcpp_timer_link_node: { cpu_id = 1 }, { vpid = 5, vtid = 5 }, { timer_handle = 0x31, node_handle = 0x11 }",
  ].map((line, at) => `[1.00000000${at}] (+0.1) vm ${line}`);
  for (let k = 0; k < 200; k++) {
    const date = (us) => (2 + (20_000 * k + us) / 1e6).toFixed(9);
    lines.push(`[${date(0)}] (+0.0) vm ros2:callback_start: { cpu_id = 1 }, { vpid = 5, vtid = 6 }, { callback = 0x100, is_intra_process = 0 }`);
    lines.push(`[${date(3000 + (k % 7) * 100)}] (+0.0) vm ros2:callback_end: { cpu_id = 1 }, { vpid = 5, vtid = 6 }, { callback = 0x100 }`);
  }
  return lines.join("\n") + "\n";
}

/** Markers of a program in ftrace, with names that a page must not take for its own. */
function markers() {
  const lines = ["# tracer: nop"];
  for (let k = 0; k < 100; k++) {
    const date = (us) => (5 + (10_000 * k + us) / 1e6).toFixed(6);
    lines.push(`app-12 [000] ..... ${date(0)}: tracing_mark_write: B|12|<b>"draw" 🙂`, `app-12 [000] ..... ${date(2000)}: tracing_mark_write: E|12`);
  }
  return lines.join("\n") + "\n";
}

const imported = (...options) => JSON.parse(execFileSync(process.env.TEMPONET_CLI, ["import", ...options, "--json"], { cwd: folder, stdio: ["ignore", "pipe", "ignore"] }));
const refused = (...options) => spawnSync(process.env.TEMPONET_CLI, options, { cwd: folder, encoding: "utf8" }).stderr.replace(/^error: /, "").trim();
/** The set that the command line writes, as the page keeps it. */
const setOf = (...options) => {
  execFileSync(process.env.TEMPONET_CLI, ["import", ...options, "-o", "found.json", "--force"], { cwd: folder, stdio: "ignore" });
  return JSON.parse(execFileSync("cat", [join(folder, "found.json")]));
};
/** What the page found last. */
const shownTrace = (page) => page.evaluate(async () => ({ trace: lastOpened.trace, keys: state.keys, notes: [...document.querySelectorAll("#notes li")].map((of) => of.textContent) }));

/** The confidence in a period goes through functions whose last digits are those of the machine's library. */
const rounded = ({ tasks, ...found }) => ({ ...found, tasks: tasks.map((task) => ({ ...task, confidence: task.confidence.toFixed(12) })) });

async function check(page, ...options) {
  const { written: _, ...expected } = imported(...options), { trace, keys, notes } = await shownTrace(page);
  assert.deepEqual(rounded(trace), rounded(expected));
  assert.deepEqual(keys, setOf(...options));
  assert.deepEqual(notes, expected.notes);
  const rows = await page.locator("#trace-table tbody tr").evaluateAll((rows) => rows.map((row) => row.cells[0].textContent));
  assert.deepEqual(rows, expected.tasks.map(({ name }) => name));
}

test("a trace of any format gives the set and the notes of temponet import", async () => {
  await withLab(async (page) => {
    await choose(page, ["edf"]);
    for (const name of ["perf.txt", "perf-short.txt", "trace", "report.log", "chrome.json", "babeltrace.txt"]) {
      await page.setInputFiles("#file", join(folder, name));
      await page.waitForFunction((of) => lastOpened?.file === of, name);
      assert.equal(await page.locator("#alert").textContent(), "", name);
      await check(page, name);
    }
    await page.setInputFiles("#file", join(folder, "markers.txt"));
    const why = refused("import", "markers.txt");
    assert.equal(await refusal(page, why), why);
    await page.selectOption("[data-trace=task_by]", "marker");
    await page.waitForFunction(() => lastOpened.file === "markers.txt");
    await check(page, "markers.txt", "--task-by", "marker");
    await page.setInputFiles("#folder", join(folder, "session"));
    await page.waitForFunction(() => state.name === "session");
    await check(page, "session");
    await compared(page);
    assert.match(await page.locator("#verdict").textContent(), /edf/);
  });
});

test("several files are one trace; options find other tasks; what is no trace is refused in the words of the command line", async () => {
  await withLab(async (page) => {
    const both = ["markers.txt", "markers-2.txt"];
    writeFileSync(join(folder, both[1]), markers().replaceAll("app-12", "app-13").replaceAll("|12", "|13").replaceAll("draw", "send"));
    await page.setInputFiles("#file", both.map((name) => join(folder, name)));
    const why = refused("import", ...both);
    assert.equal(await refusal(page, why), why);
    await page.selectOption("[data-trace=task_by]", "marker");
    await page.waitForFunction(() => lastOpened?.trace?.formats.length === 2);
    await check(page, ...both, "--task-by", "marker");
    await page.setInputFiles("#file", join(folder, "perf.txt"));
    await page.waitForFunction(() => lastOpened.trace?.formats.length === 1);
    await type(page, "[data-trace=threads]", "^(control|plan)");
    await page.waitForFunction(() => lastOpened.trace.tasks.length === 2);
    await page.selectOption("[data-trace=task_by]", "thread");
    await type(page, "[data-trace=from]", "2s");
    await type(page, "[data-trace=to]", "4s");
    await type(page, "[data-trace=cores]", "4");
    await page.waitForFunction(() => state.keys.cores === 4);
    await check(page, "perf.txt", "--threads", "^(control|plan)", "--task-by", "thread", "--from", "2s", "--to", "4s", "--cores", "4");
    const before = await shownTrace(page);
    await type(page, "[data-trace=threads]", "(");
    assert.match(await refusal(page, "regular expression"), /^names "\(" is no regular expression/);
    await page.selectOption("[data-trace=task_by]", "callback");
    await type(page, "[data-trace=threads]", "");
    const said = await refusal(page, "callback_start");
    assert.equal(said, refused("import", "perf.txt", "--task-by", "callback"));
    assert.deepEqual(await shownTrace(page), before, "a refusal leaves everything as it is");
    for (const [name, text] of [["letter.txt", "Dear all,\n"], ["empty.json", ""], ["list.json", "[1, 2]"], ["cut.json", '{"traceEvents": [{"ph": "X"'], ["zip.gz", "\x1f\x8b"]]) {
      writeFileSync(join(folder, name), text);
      await openFile(page, name, text);
      const expected = refused("compare", name);
      assert.equal(await refusal(page, expected.split("\n")[0].slice(0, 60)), expected.split("\n")[0], name);
    }
    await page.selectOption("#built-in", "rosace");
    await page.waitForFunction(() => state.name === "rosace");
    assert.equal(await page.locator("#trace").isVisible(), false);
  });
});

test("a folder that is dropped is read as a trace of CTF, and another one is refused", async () => {
  mkdirSync(join(folder, "letters"), { recursive: true });
  writeFileSync(join(folder, "letters/a.txt"), "Dear all,\n");
  await withLab(async (page) => {
    const drop = async (path) => {
      const session = await page.context().newCDPSession(page);
      const data = { items: [], files: [path], dragOperationsMask: 1 };
      for (const kind of ["dragEnter", "dragOver", "drop"]) await session.send("Input.dispatchDragEvent", { type: kind, x: 300, y: 300, data });
    };
    await drop(join(folder, "session"));
    await page.waitForFunction(() => state.name === "session");
    await check(page, "session");
    await drop(join(folder, "letters"));
    assert.equal(await refusal(page, "letters"), refused("import", "letters"));
    await drop(join(folder, "trace"));
    await page.waitForFunction(() => state.name === "trace");
    await check(page, "trace");
  });
});

test("100 MB of a trace are read in pieces, with progress, and reading can be cancelled", async () => {
  await withLab(async (page) => {
    await page.evaluate(() => {
      const parts = [];
      let size = 0;
      for (let k = 0; size < 100e6; k++) {
        const date = (us) => ((1e12 + 10_000 * k + us) / 1e6).toFixed(6);
        const part =
          `  app 7 [000] ${date(0)}: sched:sched_waking: comm=control pid=7 prio=49 target_cpu=000\n` +
          `  app 7 [000] ${date(0)}: sched:sched_switch: swapper/0:0 [120] R ==> control:7 [49]\n` +
          `  app 7 [000] ${date(2000)}: sched:sched_switch: control:7 [49] S ==> swapper/0:0 [120]\n`;
        parts.push(part);
        size += part.length;
      }
      window.large = chosen([new File(parts, "large.txt")]);
      open(async () => readHeld(window.large));
    });
    await page.locator("#reading").waitFor();
    await page.waitForFunction(() => document.querySelector("#reading progress").value > 0.1);
    const began = Date.now();
    await page.evaluate(() => 1);
    assert.ok(Date.now() - began < 2000, "the page answers meanwhile");
    await page.click("#reading button");
    await page.locator("#reading").waitFor({ state: "hidden" });
    assert.deepEqual(await page.evaluate(() => [state.name, document.getElementById("alert").textContent]), ["robot", ""]);
    await page.evaluate(() => void open(async () => readHeld(window.large)));
    await page.waitForFunction(() => state.name === "large");
    const { trace } = await shownTrace(page);
    assert.ok(trace.bytes >= 100e6, `${trace.bytes}`);
    assert.deepEqual(trace.tasks.map(({ name, period_ns, max_ns }) => [name, period_ns, max_ns]), [["control", 10_000_000, 2_000_000]]);
  });
});
