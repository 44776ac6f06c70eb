// What one does in the lab, by clicking and typing.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { address, choose, compared, openFile, refusal, type, withLab } from "./browser.mjs";

const cell = (page, label) => page.getByRole("textbox", { name: label, exact: true });
const alertText = (page) => page.locator("#alert").textContent();
const keysOf = (page) => page.evaluate(() => state.keys);
const saved = async (page, what) => {
  const [download] = await Promise.all([page.waitForEvent("download"), page.selectOption("#save", what)]);
  return { name: download.suggestedFilename(), content: readFileSync(await download.path()) };
};

test("a cell is edited in place, what is wrong stands under it in the words of the command line, and undo takes it back", async () => {
  await withLab(async (page) => {
    await compared(page);
    const wcet = cell(page, "wcet of state_estimate");
    await wcet.fill("-4ms");
    await wcet.blur();
    const said = page.locator("#task-table .cell-error");
    await said.waitFor();
    assert.equal(await said.textContent(), 'wcet = "-4ms" is negative');
    await page.waitForFunction(() => document.getElementById("verdict").textContent === "Not compared. What stands below is of the set as it was before.");
    assert.equal(await wcet.getAttribute("aria-invalid"), "true");
    assert.equal(await wcet.getAttribute("aria-describedby"), await said.getAttribute("id"));
    await wcet.fill("1.5ms");
    await compared(page, () => wcet.blur());
    assert.equal(await said.count(), 0);
    assert.equal((await keysOf(page)).task[1].wcet, "1.5ms");
    await type(page, "[data-key=cores]", "0");
    await page.locator("#settings .cell-error").waitFor();
    assert.match(await page.locator("#settings .cell-error").textContent(), /cores = 0 must be a whole number/);
    for (const earlier of ["1.5ms", "-4ms", "1.2ms"]) {
      await compared(page, () => page.click("#undo"));
      assert.equal((await keysOf(page)).task[1].wcet, earlier);
    }
    await page.click("#add-task");
    assert.equal((await keysOf(page)).task.length, 13);
    await compared(page, () => page.getByRole("button", { name: "Remove task_13" }).click());
    assert.equal((await keysOf(page)).task.length, 12);
    await type(page, "[data-run=horizon]", "5 parsecs");
    await page.locator("#settings .cell-error").waitFor();
    assert.match(await page.locator("#settings .cell-error").textContent(), /^horizon "5 parsecs": /);
  });
});

/** Two tasks, one of which comes after the other, and one that an edit of them does not touch. */
const FOLLOWED = '[[task]]\nname = "src"\nperiod = "10ms"\nwcet = "2ms"\n[[task]]\nname = "dst"\nafter = "src"\nwcet = "3ms"\n[[task]]\nname = "bg"\nperiod = "40ms"\nwcet = "1ns"\nmk = [1, 2]\n';
const opened = async (page, name, text) => {
  await openFile(page, name, text);
  await page.waitForFunction((of) => state.name === of, name.split(".")[0]);
};

test("the last column takes and gives back keys without a column, and no others", async () => {
  await withLab(async (page) => {
    await choose(page, ["edf"]);
    await opened(page, "mine.toml", FOLLOWED);
    const more = cell(page, "further keys of src, as JSON"), said = page.locator("#task-table .cell-error");
    const put = (words) => compared(page, () => more.fill(words).then(() => more.blur()));
    const src = async () => (await keysOf(page)).task[0];
    const plain = await src();
    await put('{"priority": 3}');
    await put('{"mk": [3, 2]}');
    assert.deepEqual(await src(), { ...plain, mk: [3, 2] });
    assert.equal(await said.count(), 1);
    await put("");
    assert.deepEqual(await src(), plain);
    assert.equal(await said.count(), 0);
    for (const [words, why] of [['{"mk":', "is no JSON object"], ["hello", "is no JSON object"], ["[1]", "is no JSON object"], ["null", "is no JSON object"], ['{"wcet": "1ms"}', "wcet has a column of its own"], ['{"mk": [1, 2], "deadline": {}}', ""]]) {
      await put(words);
      const now = await said.allTextContents();
      if (why) {
        assert.ok(now.length === 1 && now[0].startsWith(why), `${words}: ${now}`);
        assert.deepEqual(await src(), plain, words);
      }
      await put("");
      assert.deepEqual([await src(), await said.count()], [plain, 0], words);
    }
    await put("hello");
    await cell(page, "wcet of bg").fill("1ms");
    await compared(page, () => cell(page, "wcet of bg").blur());
    assert.equal(await said.count(), 1, "what was refused is still there, and said to be wrong");
  });
});

test("a deadline that a file does not state follows what is edited, and is shown", async () => {
  await withLab(async (page) => {
    await choose(page, ["edf"]);
    await opened(page, "mine.toml", FOLLOWED);
    const deadline = cell(page, "deadline of dst"), shown = async () => [await deadline.inputValue(), await deadline.getAttribute("placeholder")];
    assert.deepEqual(await shown(), ["", "10ms"]);
    await cell(page, "period of src").fill("80ms");
    await compared(page, () => cell(page, "period of src").blur());
    assert.deepEqual(await shown(), ["", "80ms"]);
    assert.match((await saved(page, "toml")).content.toString(), /name = "dst"\nafter = \["src"\]\nwcet = "3ms"\ndeadline = "80ms"/);
    await page.selectOption("#what-task", { label: "dst" });
    await page.locator("[data-what=wcet]").focus();
    await compared(page, () => page.keyboard.press("ArrowRight"));
    assert.equal((await keysOf(page)).task[1].deadline, undefined);
    await page.locator("[data-what=deadline]").focus();
    await compared(page, () => page.keyboard.press("ArrowLeft"));
    assert.match((await shown())[0], /ms$/);
    await compared(page, () => page.keyboard.press("ArrowRight"));
    assert.deepEqual(await shown(), ["", "80ms"], "back where it was, it is not stated");
  });
});

test("files of all kinds are opened, and a refusal leaves the set as it is", async () => {
  await withLab(async (page) => {
    const open = (name, text) => page.setInputFiles("#file", { name, mimeType: "text/plain", buffer: Buffer.from(text) });
    const names = async () => (await keysOf(page)).task.map(({ name }) => name);
    const files = {
      "a.toml": '[[task]]\nname = "toml_task"\nperiod = 10\nwcet = 2\n',
      "b.csv": "name,period,wcet\ncsv_task,10ms,2ms\n",
      "c.json": '{"task": [{"name": "json_task", "period": "10ms", "wcet": "2ms"}]}',
      "d.json": '{"tasks": {"rtapp_task": {"loop": -1, "run": 2000, "timer": {"ref": "unique", "period": 10000}}}}',
      "e.xml": '<simulation duration="100000000" cycles_per_ms="1000000"><sched className="simso.schedulers.EDF"/><processors><processor name="p" id="1"/></processors><tasks><task name="simso_task" id="1" period="10" activationDate="0.0" WCET="2" deadline="10" task_type="Periodic" abort_on_miss="yes"/></tasks></simulation>',
    };
    for (const [name, text] of Object.entries(files)) {
      await compared(page, () => open(name, text).then(() => page.waitForFunction((of) => state.name === of, name.split(".")[0])));
      assert.equal((await names()).length, 1, name);
      assert.equal(await alertText(page), "", name);
    }
    assert.deepEqual(await names(), ["simso_task"]);
    await open("broken.csv", "name,period,wcet\na,10ms,x\n");
    await page.locator("#alert:not([hidden])").waitFor();
    assert.match(await alertText(page), /^broken\.csv:2: wcet = x is not a time/);
    await open("picture.png", "x");
    await page.waitForFunction(() => document.getElementById("alert").textContent.includes("unknown kind of file"));
    await page.setInputFiles("#file", { name: "bytes.toml", mimeType: "text/plain", buffer: Buffer.from([0xff, 0xfe, 0x80]) });
    assert.equal(await refusal(page, "bytes.toml"), "bytes.toml:1: is not UTF-8 text");
    assert.deepEqual(await names(), ["simso_task"]);
    const dropped = await page.evaluateHandle(() => {
      const data = new DataTransfer();
      data.items.add(new File(["name,period,wcet\ndropped,10ms,2ms\n"], "drop.csv"));
      return data;
    });
    await page.dispatchEvent("body", "drop", { dataTransfer: dropped });
    await page.waitForFunction(() => state.name === "drop");
  });
});

test("schedulers are chosen from the list, or named with options; a wrong name is refused", async () => {
  await withLab(async (page) => {
    await choose(page, ["edf"]);
    await compared(page, () => type(page, "#own-schedulers", "shield:srpt llf:quantum=500us"));
    assert.deepEqual(await page.evaluate(() => comparison.results.map(({ scheduler }) => scheduler).sort()), ["edf", "llf:quantum=500us", "shield:srpt"]);
    await compared(page, () => type(page, "#own-schedulers", "edg"));
    assert.match(await alertText(page), /there is no scheduler "edg"/);
    await compared(page, () => type(page, "#own-schedulers", ""));
    assert.equal(await alertText(page), "");
  });
});

test("schedules share a time axis that moves and zooms by keys, and a moment is explained", async () => {
  await withLab(async (page) => {
    await choose(page, ["edf", "rm", "temponet"]);
    await compared(page);
    const first = page.locator("#charts canvas").first();
    const view = () => page.evaluate(() => [shown.from, shown.to]);
    await first.focus();
    await page.keyboard.press("Home");
    const before = await view();
    await page.keyboard.press("+");
    const zoomed = await view();
    assert.ok(zoomed[1] - zoomed[0] < before[1] - before[0]);
    await page.keyboard.press("ArrowRight");
    assert.ok((await view())[0] > zoomed[0]);
    await page.keyboard.press("0");
    assert.deepEqual(await view(), [0, await page.evaluate(() => page.until_ns)]);
    await page.keyboard.press("m");
    assert.match(await page.locator("#said").textContent(), /MISSED: /);
    await page.locator("#charts select").nth(2).selectOption({ label: "rm" });
    const box = await first.boundingBox();
    await page.mouse.click(box.x + box.width * 0.6, box.y + 40);
    await page.locator("#moment h3").first().waitFor();
    const words = await page.locator("#moment").textContent();
    assert.match(words, /Rule: earliest deadline first/);
    assert.match(words, /Runs \w+ #\d+/);
    assert.match(words, /network's score/);
    assert.match(words, /The shield/);
    assert.ok(Number.isFinite(await page.evaluate(() => page.moment_ns)));
    await page.locator("#moment").evaluate((box) => box.replaceChildren());
    await first.focus();
    await page.keyboard.press("n");
    await page.keyboard.press("e");
    await page.locator("#moment h3").first().waitFor();
  });
});

test("a moment is that of what was selected last, and speaks of the visible schedulers and of who decides", async () => {
  await withLab(async (page) => {
    await choose(page, ["edf", "rm", "temponet"]);
    await opened(page, "crit.toml", '[[task]]\nname = "x0"\nperiod = "7ms"\nwcet = "3ms"\ndeadline = "5ms"\n[[task]]\nname = "x1"\nperiod = "11ms"\nwcet = "4ms"\ncriticality = 1\n[[task]]\nname = "x5"\nperiod = "13ms"\nwcet = "5ms"\nbcet = "2ms"\ndeadline = "12ms"\ncriticality = 5\n');
    await compared(page);
    const put = async (place, name) => page.locator("#charts select").nth(place).selectOption(name ? String(await page.evaluate((of) => placeOf(of), name)) : "");
    for (const [place, name] of [[0, "edf"], [1, "rm"], [2, null]]) await put(place, name);
    const first = page.locator("#charts canvas").first();
    const moment = () => page.evaluate(() => state.moment);
    const speaksOf = (...names) => page.waitForFunction((names) => [...document.querySelectorAll("#moment h3")].map((of) => of.textContent).join() === names, names.join());
    await first.focus();
    await page.keyboard.press("m");
    await page.keyboard.press("e");
    await speaksOf("edf", "rm");
    const missed = await page.evaluate(() => charts[0].schedule.jobs[charts[0].schedule.missed[0]].deadline);
    assert.equal(await moment(), missed - 1);
    await page.keyboard.press("n");
    await page.keyboard.press("e");
    const start = await page.evaluate(() => charts[0].schedule.slices[charts[0].cursor].start);
    assert.equal(await moment(), start);
    await page.keyboard.press("+");
    await page.keyboard.press("End");
    await page.keyboard.press("e");
    assert.ok(await page.evaluate(() => shown.from <= state.moment && state.moment <= shown.to), "what cannot be seen is not explained");
    await put(2, "temponet");
    await speaksOf("edf", "rm", "temponet");
    assert.match(await page.locator("#moment").textContent(), /In temponet, .*The shield/);
  });
});

test("what if: a slider is dragged, and schedules follow; afterwards everything is compared", async () => {
  await withLab(async (page) => {
    await choose(page, ["edf", "rm"]);
    await compared(page);
    await page.selectOption("#what-task", { label: "camera" });
    const slider = page.locator("[data-what=wcet]"), pictures = () => page.evaluate(() => measured.pictures.length);
    const before = await pictures(), jobs = await page.evaluate(() => JSON.stringify(page.schedules));
    await slider.scrollIntoViewIfNeeded();
    const box = await slider.boundingBox();
    await page.mouse.move(box.x + box.width * 0.1, box.y + box.height / 2);
    await page.mouse.down();
    for (let step = 1; step <= 10; step++) {
      await page.mouse.move(box.x + box.width * (0.1 + 0.08 * step), box.y + box.height / 2);
      await page.waitForTimeout(60);
    }
    assert.ok((await pictures()) > before + 2, "pictures follow while the mouse is down");
    await page.waitForFunction((jobs) => JSON.stringify(page.schedules) !== jobs, jobs);
    await compared(page, () => page.mouse.up());
    const camera = (await keysOf(page)).task.find(({ name }) => name === "camera");
    assert.notEqual(camera.wcet, "18ms");
    assert.equal(await cell(page, "wcet of camera").inputValue(), camera.wcet);
    assert.match(await page.locator("#what-shares").textContent(), /edf \d/);
    await page.locator("[data-what=period]").focus();
    await compared(page, () => page.keyboard.press("ArrowLeft"));
    assert.notEqual((await keysOf(page)).task.find(({ name }) => name === "camera").period, "33ms");
  });
});

test("undo takes back one drag or key of a slider, and a slider makes no time that is refused", async () => {
  await withLab(async (page) => {
    await choose(page, ["edf"]);
    await opened(page, "mine.toml", FOLLOWED + 'bcet = "1ns"\n[[task]]\nname = "odd"\nperiod = "50ms"\nwcet = "2ms"\nbcet = "1.234411ms"\n');
    const task = async (at) => (await keysOf(page)).task[at];
    const press = (key) => compared(page, () => page.keyboard.press(key));
    await cell(page, "period of bg").fill("30ms");
    await compared(page, () => cell(page, "period of bg").blur());
    await page.selectOption("#what-task", { label: "bg" });
    await page.locator("[data-what=wcet]").focus();
    await press("End");
    await press("Home");
    assert.equal((await task(2)).wcet, "1ns");
    await page.selectOption("#what-task", { label: "odd" });
    await page.locator("[data-what=wcet]").focus();
    await press("PageUp");
    await press("Home");
    assert.equal((await task(3)).wcet, "1.234411ms", "the best case is not rounded");
    assert.equal(await page.locator("#task-table .cell-error").count(), 0);
    // What else cannot be is said beside the slider.
    await page.selectOption("#what-task", { label: "bg" });
    await page.evaluate(() => (state.keys.task[2].section = [{ resource: "r", at: "0ns", length: "2ns" }]));
    await page.locator("[data-what=wcet]").focus();
    await press("End");
    await press("Home");
    assert.equal(await page.locator("#what-shares").textContent(), await page.locator("#task-table .cell-error").textContent());
    for (let undone = 0; undone < 6; undone++) await compared(page, () => page.click("#undo"));
    const bg = await task(2);
    assert.deepEqual([await page.evaluate(() => state.name), bg.period, bg.wcet, (await task(3)).wcet], ["mine", "30ms", "1ns", "2ms"]);
    await compared(page, () => page.click("#undo"));
    assert.equal((await task(2)).period, "40ms");
  });
});

test("a curve draws itself and can be stopped, and deadlines are proved", async () => {
  await withLab(async (page) => {
    await page.selectOption("#built-in", "rosace");
    await choose(page, ["edf", "rm"]);
    await compared(page, () => type(page, "[data-run=horizon]", "1s"));
    await page.click("#draw-curve");
    await page.waitForFunction(() => !curve.isDrawing && curve.points.size === LOADS.length);
    assert.equal(await page.locator("#curve polyline").count(), 2);
    const shares = await page.evaluate(() => [...curve.points].sort(([a], [b]) => a - b).map(([, [of]]) => of.share));
    assert.equal(shares[0], 1);
    assert.ok(shares.at(-1) < 1);
    await page.click("#analyze");
    await page.locator("#analysis .verdict").waitFor();
    assert.match(await page.locator("#analysis").textContent(), /proved to be met/);
    assert.match(await page.locator("#analysis").textContent(), /Response times at most/);
    assert.match(await page.locator("#analysis").textContent(), /The shield guarantees every deadline .*Guaranteed by the shield/s);
    await page.selectOption("#built-in", "robot");
    await page.waitForFunction(() => state.name === "robot");
    await compared(page, () => type(page, "[data-run=horizon]", "100s"));
    await page.click("#draw-curve");
    await page.locator("#cancel").waitFor();
    await page.click("#cancel");
    await page.waitForFunction(() => !curve.isDrawing);
    assert.match(await page.locator("#curve-words").textContent(), /^Stopped after \d+ points\.$/);
  });
});

test("a link is a figure: another browser shows the same", async () => {
  const [url, report] = await withLab(async (page) => {
    await page.selectOption("#built-in", "standard-125");
    await choose(page, ["edf", "mh-edf"]);
    await cell(page, "wcet of slow").fill("33ms");
    await type(page, "[data-run=horizon]", "2s");
    await compared(page, () => type(page, "[data-run=seed]", "7"));
    await page.evaluate(() => show(1e8, 3e8));
    await page.click("#link");
    await page.waitForFunction(() => document.getElementById("link").textContent !== "Copy link");
    return [page.url(), await page.evaluate(() => JSON.stringify(comparison))];
  });
  await withLab(async (page) => {
    await compared(page);
    assert.equal(await page.evaluate(() => JSON.stringify(comparison)), report);
    assert.deepEqual(await page.evaluate(() => [shown.from, shown.to]), [1e8, 3e8]);
    assert.equal(await cell(page, "wcet of slow").inputValue(), "33ms");
  }, { url });
  await withLab(async (page) => assert.match(await alertText(page), /^the link cannot be read: /), { url: address + "#broken" });
  const strange = [{ schedulers: [], keys: { task: 5 } }, { schedulers: ["edf"], keys: [] }, { schedulers: [1], builtIn: "nothing" }, { schedulers: ["edf"], keys: { task: [] }, view: ["a", 2], charts: [{}], run: { seed: "x" }, moment: {} }];
  for (const state of strange) {
    const hash = deflateRawSync(JSON.stringify(state)).toString("base64url");
    await withLab(async (page) => {
      await page.locator("#alert:not([hidden])").waitFor();
      await compared(page, () => page.selectOption("#built-in", "rosace").then(() => choose(page, ["edf"])));
    }, { url: `${address}#${hash}` });
  }
});

test("the address has what the page chose, the moment with its schedulers, and the task under what if", async () => {
  const seen = (page) => page.evaluate(() => [charts.map(({ schedule }) => schedule?.name), [...document.querySelectorAll("#moment h3")].map((of) => of.textContent), state.moment, whatTask.value, page.by_task]);
  const addressOf = (page) =>
    page.evaluate(async () => {
      while (location.hash !== "#" + (await fragment())) await new Promise((resolve) => setTimeout(resolve, 50));
      return location.href;
    });
  const [url, before] = await withLab(async (page) => {
    await choose(page, ["edf", "rm", "look-ahead", "muf"]);
    await compared(page, () => type(page, "[data-run=horizon]", "1s"));
    const placeOf = (name) => page.evaluate((of) => String(placeOf(of)), name);
    await page.locator("#charts select").nth(1).selectOption(await placeOf("look-ahead"));
    await page.selectOption("#what-task", { label: "camera" });
    await page.uncheck("#by-task");
    await page.locator("#charts canvas").first().focus();
    await page.keyboard.press("e");
    await page.waitForFunction(() => document.querySelector("#moment h3"));
    return [await addressOf(page), await seen(page)];
  });
  assert.ok(before[0].includes("look-ahead") && before[1].includes("look-ahead"), String(before));
  await withLab(async (page) => {
    await compared(page);
    await page.waitForFunction((count) => document.querySelectorAll("#moment h3").length === count, before[1].length);
    assert.deepEqual(await seen(page), before);
  }, { url });
  // What the ranking chose is in the address, too, without a further touch.
  const [ranked, chosen] = await withLab(async (page) => {
    await compared(page);
    return [await addressOf(page), (await seen(page))[0]];
  });
  await withLab(async (page) => {
    await compared(page);
    assert.deepEqual((await seen(page))[0], chosen);
  }, { url: ranked });
});

test("seeds and runs out of range are refused at their fields", async () => {
  await withLab(async (page) => {
    await choose(page, ["edf"]);
    const said = async (field, text) => {
      await type(page, `[data-run=${field}]`, text);
      const error = page.locator(`label:has([data-run=${field}]) .cell-error`);
      await error.waitFor();
      return error.textContent();
    };
    assert.equal(await said("seed", "18446744073709551616"), "18446744073709551616 is above the greatest, 9007199254740991");
    assert.equal(await said("seed", "1.5"), "1.5 is no whole number");
    await type(page, "[data-run=seed]", "");
    assert.equal(await said("runs", "0"), "runs = 0 is not in 1..=1000000");
    assert.equal(await alertText(page), "");
  });
});

test("a trace that is refused gives its name to its options", async () => {
  await withLab(async (page) => {
    await openFile(page, "marks.txt", "# tracer: nop\napp-12 [000] ..... 5.000000: tracing_mark_write: B|12|draw\n");
    await page.locator("#trace").waitFor();
    assert.equal(await page.locator("#trace-words").textContent(), "Options of marks.txt, which is not opened");
    assert.match(await alertText(page), /^marks\.txt/);
  });
});

test("the set, pictures, jobs and the ranking are saved", async () => {
  await withLab(async (page) => {
    await choose(page, ["edf", "rm"]);
    await compared(page, () => type(page, "[data-run=horizon]", "500ms"));
    const toml = await saved(page, "toml");
    assert.equal(toml.name, "robot.toml");
    assert.match(toml.content.toString(), /\[\[task\]\]\nname = "motor_control"/);
    assert.equal(await page.locator("#saved").textContent(), "");
    const folder = mkdtempSync(join(tmpdir(), "lab-saved-"));
    const notes = spawnSync(process.env.TEMPONET_CLI, ["convert", "robot", "robot.json", "--to", "rt-app"], { cwd: folder, encoding: "utf8" }).stderr;
    rmSync(folder, { recursive: true });
    assert.match((await saved(page, "rt-app")).content.toString(), /"tasks"/);
    const said = await page.locator("#saved li").allTextContents();
    assert.ok(said.length > 3);
    assert.deepEqual(said, notes.split("\n").filter((line) => line.startsWith("note: ")).map((line) => line.replace("note: robot.json: ", "")));
    assert.match((await saved(page, "svg")).content.toString(), /^<svg[^]*motor_control/);
    assert.equal(await page.locator("#saved").textContent(), "", "notes are those of what was saved last");
    const png = (await saved(page, "png")).content;
    assert.deepEqual([...png.subarray(1, 4)], [...Buffer.from("PNG")]);
    const charts = await page.evaluate(() => charts.reduce((sum, { schedule, canvas }) => sum + (schedule ? canvas.height + 24 : 0), 0));
    assert.ok(png.readUInt32BE(20) > charts, "the legend stands below the schedules");
    assert.match((await saved(page, "jobs")).content.toString(), /^task,job,release_ns,/);
    const ranking = (await saved(page, "ranking")).content.toString().split("\n");
    assert.equal(ranking.length, 1 + 2 + 1);
    assert.match(ranking[1], /^(edf|rm),\d+,\d+,\d+,0\.\d+/);
  });
});

test("monstrous sets neither freeze nor end the page", async () => {
  await withLab(async (page) => {
    const open = (name, text) => page.setInputFiles("#file", { name, mimeType: "text/plain", buffer: Buffer.from(text) });
    await choose(page, ["edf"]);
    await open("burst.toml", '[[burst]]\nname = "peak"\njobs = 1000000\nevery = "1s"\nwcet = "1ns"\ndeadline = "500ms"\n');
    await page.waitForFunction(() => state.name === "burst");
    await open("long.toml", '[[task]]\nname = "a"\nperiod = "1000003us"\nwcet = "1us"\n[[task]]\nname = "b"\nperiod = "999983us"\nwcet = "1us"\n[[task]]\nname = "c"\nperiod = "7ns"\nwcet = "1ns"\n');
    await page.waitForFunction(() => state.name === "long");
    const began = Date.now();
    await page.evaluate(() => 1);
    assert.ok(Date.now() - began < 2000, "the page answers meanwhile");
    await type(page, "[data-run=horizon]", "100000s");
    await page.locator("#cancel").waitFor();
    await page.click("#cancel");
    await compared(page);
    assert.equal(await page.locator("#verdict").textContent(), "Cancelled.");
    await type(page, "[data-run=horizon]", "");
    await compared(page, () => page.selectOption("#built-in", "rosace").then(() => page.waitForFunction(() => state.name === "rosace")));
    assert.match(await page.locator("#verdict").textContent(), /edf/);
  });
});

test("a file of 100 MB is refused as the command line refuses it, and the page lives", async () => {
  const folder = mkdtempSync(join(tmpdir(), "lab-large-"));
  try {
    await withLab(async (page) => {
      for (const [name, line, count] of [["words.toml", "# ten words that are no task at all, as it seems to me", 2e6], ["zeros.toml", "\0".repeat(49), 2e6], ["last.csv", "name,period,wcet\n" + "x".repeat(30e6) + ",5ms,1ms\n" + "y".repeat(70e6), 1]]) {
        const text = (line + "\n").repeat(count);
        assert.ok(text.length >= 100e6, name);
        writeFileSync(join(folder, name), text);
        const said = spawnSync(process.env.TEMPONET_CLI, ["compare", name], { cwd: folder, encoding: "utf8" }).stderr;
        await page.setInputFiles("#file", join(folder, name));
        const own = await refusal(page, `${name}`);
        assert.ok(said.startsWith("error: " + own), `${own}\n${said.slice(0, 300)}`);
        rmSync(join(folder, name));
      }
      writeFileSync(join(folder, "tasks.csv"), "name,period,wcet\n" + Array.from({ length: 10_001 }, (_, at) => `t${at},10ms,1us\n`).join(""));
      await page.setInputFiles("#file", join(folder, "tasks.csv"));
      assert.equal(await refusal(page, "10 001 tasks"), "tasks.csv: has 10 001 tasks, and a page takes at most 10 000; the command line takes more");
      await compared(page, () => page.selectOption("#built-in", "rosace").then(() => page.waitForFunction(() => state.name === "rosace")));
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("the sentence on where schedules part speaks of the first two that are seen", async () => {
  await withLab(async (page) => {
    await choose(page, ["edf", "rm", "srpt", "mh-edf"]);
    await compared(page);
    const words = () => page.locator("#parting").textContent(), choices = page.locator("#charts select");
    const [first, second] = await page.evaluate(() => charts.slice(0, 2).map(({ schedule }) => schedule.name));
    assert.match(await words(), new RegExp(`^They part at .*: ${first} runs .*, ${second} runs `));
    await choices.nth(0).selectOption({ label: "srpt" });
    await choices.nth(1).selectOption({ label: "rm" });
    assert.match(await words(), /^They part at .*: srpt runs .*, rm runs /);
    // What it names is what the schedules show.
    const [at, running] = await page.evaluate(() => {
      const now = page.parts_ns, names = ({ schedule }) => schedule.slices.filter(({ start, end }) => start <= now && now < end).map(({ job }) => jobName(schedule.jobs[job]));
      return [now, charts.slice(0, 2).map(names)];
    });
    const [, one, other] = /srpt runs (.*), rm runs (.*?)\. /.exec((await words()) + " ");
    const only = (place) => running[place].filter((job) => !running[1 - place].includes(job));
    for (const [said, jobs] of [[one, only(0)], [other, only(1)]]) assert.deepEqual(said === "nothing instead" ? [] : said.split(", ").sort(), jobs.sort(), `at ${at}`);
    // So is the first job that only one of them misses.
    const alone = await page.evaluate(() => {
      const missed = charts.slice(0, 2).map(({ schedule }) => schedule.missed.map((job) => [schedule.jobs[job].deadline, jobName(schedule.jobs[job]), schedule.name]));
      const names = missed.map((list) => list.map(([, job]) => job));
      return missed.flatMap((list, which) => list.filter(([due, job]) => due > page.parts_ns && !names[1 - which].includes(job))).sort(([a], [b]) => a - b)[0];
    });
    assert.ok(alone && (await words()).includes(`${alone[2]} alone then misses ${alone[1]}, due `), await words());
    await choices.nth(0).selectOption({ label: "none" });
    assert.equal(await words(), "");
    await choices.nth(2).selectOption({ label: "edf" });
    assert.match(await words(), /: rm runs .*, edf runs /);
    await choices.nth(1).selectOption({ label: "edf" });
    assert.equal(await words(), "edf and edf run the same jobs at the same times, as far as they are recorded.");
  });
});

test("the learned scheduler follows a drag, and never holds up the others", async () => {
  await withLab(async (page) => {
    await page.selectOption("#built-in", "standard-125");
    await page.waitForFunction(() => state.name === "standard-125");
    await choose(page, ["edf", "rm", "temponet"]);
    await compared(page);
    for (const [place, of] of [[0, "edf"], [1, "temponet"]]) await page.locator("#charts select").nth(place).selectOption(String(await page.evaluate((of) => placeOf(of), of)));
    // The end of the picture may differ: a sketch ends there, and a comparison does not.
    const learned = () =>
      page.evaluate(() => {
        const { slices, jobs } = charts[1].schedule;
        return slices.filter(({ end }) => end < page.until_ns / 2).map(({ job, start, end }) => `${jobName(jobs[job])} ${start} ${end}`).join("\n");
      });
    const before = await learned(), slider = page.locator("[data-what=wcet]");
    await slider.scrollIntoViewIfNeeded();
    const box = await slider.boundingBox(), y = box.y + box.height / 2;
    await page.evaluate(() => Object.assign(measured, { pictures: [], followed: [] }));
    await page.mouse.move(box.x + 0.35 * box.width, y);
    await page.mouse.down();
    for (let step = 0; step < 40; step++) {
      await page.mouse.move(box.x + (0.35 + 0.005 * step) * box.width, y);
      await page.waitForTimeout(30);
    }
    // It catches up with the last position while the mouse is still down.
    await page.waitForFunction(() => measured.followed.at(-1) === sketched && !charts[1].canvas.classList.contains("behind"));
    const dragged = await learned();
    assert.ok(dragged !== before && dragged.length > 200, "another schedule is seen");
    assert.match(await page.evaluate(() => charts[1].schedule.name), /^temponet/);
    const [pictures, followed] = await page.evaluate(() => [measured.pictures.length, measured.followed.length]);
    assert.ok(pictures > followed, `${pictures} pictures, ${followed} of the learned scheduler`);
    assert.match(await page.locator("#what-shares").textContent(), /edf \d.*temponet/);
    await compared(page, () => page.mouse.up());
    assert.ok((await learned()) === dragged, "the whole comparison shows the same schedule");
    assert.match(await page.evaluate(() => charts[1].schedule.name), /^temponet/, "what the reader chose is still seen");
  });
});

test("cancelling ends the work and nothing else: set, choices and results so far are still there, and progress comes back", async () => {
  await withLab(async (page) => {
    await choose(page, ["edf", "rm", "temponet"]);
    await compared(page, () => type(page, "[data-run=horizon]", "1s"));
    await type(page, "[data-key=cores]", "2");
    await compared(page);
    await page.locator("#charts select").nth(2).selectOption({ label: "rm" });
    await page.locator("#charts canvas").first().focus();
    await page.keyboard.press("e");
    await page.locator("#moment h3").first().waitFor();
    await page.click("#analyze");
    await page.locator("#analysis .verdict").waitFor();
    const seen = () =>
      page.evaluate(() => ({
        keys: state.keys, schedulers: state.schedulers, run: state.run, earlier: earlier.length, comparison,
        charts: charts.map(({ schedule }) => schedule?.name), moment: document.getElementById("moment").textContent,
        analysis: document.getElementById("analysis").textContent, ranking: document.getElementById("ranking-table").textContent,
        points: curve.points.size,
      }));
    await page.click("#draw-curve");
    await page.waitForFunction(() => curve.points.size >= 2);
    const before = await seen();
    await page.click("#cancel");
    await page.waitForFunction(() => !curve.isDrawing);
    const { points, ...rest } = await seen();
    assert.ok(points >= before.points && (await page.locator("#curve polyline").count()) === 3, "the points so far stay");
    delete before.points;
    assert.deepEqual(rest, before);
    assert.match(await page.locator("#curve-words").textContent(), /^Stopped after \d+ points\.$/);
    await type(page, "[data-run=horizon]", "400s");
    await page.waitForFunction(() => document.getElementById("progress").value > 0 && !document.getElementById("work").hidden);
    await page.click("#cancel");
    await compared(page);
    const after = await seen();
    assert.deepEqual([after.keys, after.schedulers, after.earlier, after.comparison, after.ranking], [before.keys, before.schedulers, before.earlier, before.comparison, before.ranking]);
    assert.equal(await page.locator("#work").isVisible(), false);
    await type(page, "[data-run=horizon]", "401s");
    await page.waitForFunction(() => document.getElementById("progress").value > 0 && !document.getElementById("work").hidden);
    await type(page, "[data-run=horizon]", "1s");
    await compared(page);
    assert.deepEqual(await page.evaluate(() => comparison), before.comparison);
  });
});

test("temponet lab writes a page that begins with a set", async () => {
  const folder = mkdtempSync(join(tmpdir(), "lab-cli-"));
  try {
    const program = join(folder, "temponet"), out = join(folder, "out.html");
    copyFileSync(process.env.TEMPONET_CLI, program);
    copyFileSync(process.env.LAB_PAGE, join(folder, "temponet-lab.html"));
    writeFileSync(join(folder, "mine.csv"), "name,period,wcet\n</script><u id=evil>,10ms,4ms\nb,20ms,5ms\n");
    execFileSync(program, ["lab", join(folder, "mine.csv"), "--output", out], { stdio: "ignore" });
    await withLab(async (page) => {
      await compared(page);
      assert.deepEqual((await keysOf(page)).task.map(({ name }) => name), ["</script><u id=evil>", "b"]);
      await page.locator("#charts canvas").first().focus();
      await page.keyboard.press("e");
      await page.locator("#moment table").first().waitFor();
      await page.click("#analyze");
      await page.locator("#analysis .verdict").waitFor();
      assert.equal(await page.locator("#evil").count(), 0, "a name is text everywhere");
      assert.equal(await page.evaluate(() => state.name), "mine");
    }, { url: "file://" + out });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
