"use strict";
/** Guided tours: five steps each, with words beside the pictures. A step is a state of the page; what it leaves out stays as it is. */

const task = (name, period, wcet, more = {}) => ({ name, period, wcet, ...more });
const setOf = (name, tasks, more = {}) => ({ name, keys: { cores: 1, ...more, task: tasks } });

const domino = (slow, more = {}) => setOf("domino", [task("fast", "20ms", "7ms"), task("middle", "30ms", "10ms"), task("slow", "50ms", slow)], { on_miss: "continue", ...more });
const pathfinder = (protocol) => ({ builtIn: protocol === undefined ? "mars-pathfinder" : null, protocol });
const dhall = (tasks) => setOf("dhall", tasks, { cores: 2 });
const LIGHT = [task("light_1", "10ms", "2ms"), task("light_2", "10ms", "2ms")];
const HEAVY = task("heavy", "11ms", "10ms");
const levels = (more = []) => setOf("levels", [task("brake", "30ms", "12ms", { criticality: 1 }), task("radio", "10ms", "4ms"), task("display", "20ms", "6ms"), ...more]);
const blocking = (preemption) => setOf("blocking", [task("control", "10ms", "2ms"), task("image", "60ms", "24ms", preemption === undefined ? {} : { preemption }), task("log", "100ms", "15ms")]);

const TOURS = [
  {
    title: "The domino effect in overload",
    steps: [
      { ...domino("15ms"), schedulers: ["edf", "rm", "mh-edf"], charts: ["edf", "rm", null], horizon: "3s", words: "Three tasks need 98% of one core. EDF, which runs the job with the earliest deadline, meets every deadline; it always does up to 100%. RM, which prefers short periods, misses some of the slow ones." },
      { ...domino("18ms"), schedulers: ["edf", "rm", "mh-edf"], charts: ["edf", "rm", null], view: [0, 1.2e9], words: "The slow task now takes 18 ms in place of 15: 104%. Late jobs go on. Look along EDF's schedule: the first miss comes after a while, and from then on more and more jobs are late." },
      { ...domino("18ms"), schedulers: ["edf", "rm", "mh-edf"], charts: ["edf", "rm", null], view: [1.5e9, 2.4e9], words: "This is the domino effect. A late job has the earliest deadline of all, so EDF finishes it first, and makes the next one late. Soon nearly every job is finished too late, although only 4% of the work is too much." },
      { ...domino("18ms"), schedulers: ["edf", "mh-edf", "edf-skip", "d-over"], charts: ["edf", "mh-edf", null], view: [1.5e9, 2.4e9], words: "MH-EDF (Moore–Hodgson) gives up as few jobs as it can and runs the others by EDF. It sacrifices some jobs of the longer tasks, and the rest is in time." },
      { ...domino("18ms"), schedulers: ["edf", "mh-edf", "edf-skip", "d-over", "temponet"], charts: ["edf", "mh-edf", "temponet"], view: [1.5e9, 2.4e9], goto: "ranking-section", words: "The ranking says how much there was to win: the clairvoyant optimum, which knows all jobs beforehand, also has to give some up. Simple schedulers that drop what cannot be done reach it here." },
    ],
  },
  {
    title: "Mars Pathfinder",
    steps: [
      { ...pathfinder("none"), schedulers: ["fp"], charts: ["fp", null, null], view: [0, 2.5e8], words: "In 1997 the lander kept resetting itself. Tasks with fixed priorities share one resource, the data of the bus. Dotted boxes are jobs that wait for it, and the stripes in the bars say who holds it." },
      { ...pathfinder("none"), schedulers: ["fp"], charts: ["fp", null, null], view: [6e7, 1.6e8], moment: 1.15e8, goto: "moment-section", words: "Priority inversion, at 115 ms: the weather task holds the data when the important distribution of data wants them. Radio and camera, which lie between the two in priority, run meanwhile, so that the distribution waits for tasks that have nothing to do with it." },
      { ...pathfinder("none"), schedulers: ["fp", "edf"], charts: ["fp", "edf", null], view: [0, 2.5e8], words: "Without a protocol another scheduler does not cure it: EDF has the same resource to wait for." },
      { ...pathfinder("inheritance"), schedulers: ["fp"], charts: ["fp", null, null], view: [0, 2.5e8], words: "The cure that was sent to Mars: priority inheritance. Whoever holds what an important task waits for runs in its place, until the data are free." },
      { ...pathfinder("ceiling"), schedulers: ["fp", "edf"], charts: ["fp", "edf", null], view: [0, 2.5e8], goto: "analysis-section", analyze: true, words: "With the ceiling protocol a job starts only when all that it may need is free: it waits at most once. The analysis below says what is proved." },
    ],
  },
  {
    title: "Dhall's effect",
    steps: [
      { ...dhall([...LIGHT]), schedulers: ["edf", "rm", "edzl", "llf"], charts: ["edf", "edzl", null], horizon: "1s", words: "Two cores and two light tasks that need 20% of a core each. There is room for much more." },
      { ...dhall([...LIGHT, HEAVY]), schedulers: ["edf", "rm", "edzl", "llf"], charts: ["edf", "rm", null], view: [0, 5e7], words: "A heavy task comes, with 10 ms of work in each 11. All three need 1.31 of two cores. Yet global EDF and global RM miss deadlines of the heavy task." },
      { ...dhall([...LIGHT, HEAVY]), schedulers: ["edf", "rm", "edzl", "llf"], charts: ["edf", "edzl", null], view: [0, 2.5e7], moment: 1e6, goto: "moment-section", words: "Dhall and Liu saw why in 1978: at time 0 both light jobs are due earlier, so they take both cores. The heavy job begins 2 ms later, and its slack is only 1 ms. The table shows the slack of each job." },
      { ...dhall([...LIGHT, HEAVY]), schedulers: ["edf", "rm", "edzl", "llf"], charts: ["edzl", "llf", null], view: [0, 5e7], words: "EDZL is EDF that runs a job with no slack left at once. LLF runs the least slack first. Both give the heavy job its core in time." },
      { ...dhall([...LIGHT, HEAVY]), schedulers: ["edf", "rm", "edzl", "llf", "tuned", "temponet"], charts: ["edf", "edzl", "temponet"], view: [0, 5e7], goto: "ranking-section", words: "On several cores, a low load says little about global EDF. The ranking has the learned scheduler and the tuned one too." },
    ],
  },
  {
    title: "Criticality and the shield",
    steps: [
      { ...levels(), schedulers: ["edf", "srpt", "shield:srpt"], charts: ["edf", "srpt", null], horizon: "3s", words: "The brake is critical, radio and display are not, and together they need 110% of the core. Bars of critical tasks have an outline." },
      { ...levels(), schedulers: ["edf", "srpt", "shield:srpt"], charts: ["srpt", null, null], view: [0, 4e8], goto: "ranking-section", words: "SRPT, which runs the shortest job first, knows of no criticality. The brake takes longest, so it is late again and again. The ranking counts critical jobs first." },
      { ...levels(), schedulers: ["edf", "srpt", "shield:srpt"], charts: ["srpt", "shield:srpt", null], view: [0, 4e8], words: "A shield stands around any scheduler. It keeps enough time for the critical jobs, and overrules the scheduler where its choice could cost one of them." },
      { ...levels([task("burst", "100ms", "30ms")]), schedulers: ["edf", "srpt", "shield:srpt"], charts: ["srpt", "shield:srpt", null], view: [0, 4e8], words: "More work comes: 140% of the core. Now EDF lets the brake be late, too. Behind the shield the brake is still never late. That is a theorem, not a measurement." },
      { ...levels([task("burst", "100ms", "30ms")]), schedulers: ["edf", "shield:srpt", "temponet", "temponet-unshielded"], charts: ["edf", "shield:srpt", "temponet"], view: [0, 4e8], goto: "ranking-section", words: "The learned scheduler is behind the shield, too. Whatever its weights say, critical jobs are safe; without the shield nothing of that is promised." },
    ],
  },
  {
    title: "Non-preemptive blocking",
    steps: [
      { ...blocking(), schedulers: ["edf", "rm"], charts: ["edf", null, null], horizon: "3s", view: [0, 1.5e8], words: "A control task of 2 ms every 10 ms, a long image task, and a log. Jobs can be preempted anywhere, and EDF meets every deadline." },
      { ...blocking("none"), schedulers: ["edf", "rm"], charts: ["edf", null, null], view: [0, 1.5e8], words: "Now the image is computed on an accelerator that cannot be interrupted: preemption = \"none\". While it runs, control waits, and misses its deadlines, although the load is the same." },
      { ...blocking("none"), schedulers: ["edf", "rm"], charts: ["edf", "rm", null], view: [0, 1.5e8], moment: 1.3e7, goto: "moment-section", words: "No order of jobs helps: once the image has the core, it holds it for 24 ms, and control has only 10. This is blocking." },
      { ...blocking({ every: "4ms" }), schedulers: ["edf", "rm"], charts: ["edf", null, null], view: [0, 1.5e8], words: "Cut the image into pieces of 4 ms, with a preemption point after each. Control waits for at most one piece, and nothing is missed." },
      { ...blocking({ every: "4ms" }), schedulers: ["edf", "rm"], charts: ["edf", "rm", null], view: [0, 1.5e8], goto: "analysis-section", analyze: true, words: "The analysis proves it. Drag the wcet of control in \"What if\" to see how much room the pieces leave." },
    ],
  },
  {
    title: "The learned scheduler against EDF",
    steps: [
      { builtIn: "robot", schedulers: ["edf", "muf", "tuned", "temponet"], charts: ["edf", null, null], horizon: "2s", words: "A mobile robot: 12 tasks on 3 cores, uncertain execution times, three levels of criticality, and more work than time. EDF loses jobs of every kind." },
      { builtIn: "robot", schedulers: ["edf", "muf", "tuned", "temponet"], charts: ["edf", "temponet", null], horizon: "2s", words: "TempoNet sees the same jobs. The first line says where the two part. First it simulates the set, and follows whichever candidate serves it best: a simple scheduler or its network. Its name says whom." },
      { builtIn: "robot", schedulers: ["edf", "muf", "tuned", "temponet"], charts: ["edf", "temponet", null], horizon: "2s", moment: 1.2e8, goto: "moment-section", words: "One decision: every ready job with its slack, the network's score for it, and what the shield did. A higher score is better." },
      { builtIn: "robot", schedulers: ["edf", "muf", "tuned", "temponet"], charts: ["edf", "temponet", null], horizon: "2s", goto: "ranking-section", words: "The ranking over ten runs, with intervals. Read it with the simple schedulers in mind: what the learned one adds is its distance from tuned, and on this set that may be nothing." },
      { builtIn: "standard-125", schedulers: ["edf", "mh-edf", "tuned", "temponet"], charts: ["edf", "temponet", null], horizon: "2s", goto: "ranking-section", words: "One core, known execution times, 25% too much work: here a simple rule, Moore–Hodgson, leaves nothing to learn. The learned scheduler should do as well, not better." },
    ],
  },
];

const guide = { tour: null, step: 0 };
const guideBox = document.getElementById("guide");

function listTours() {
  const list = document.getElementById("tour");
  TOURS.forEach(({ title }, at) => (make("option", list, title).value = at));
}

/** Shows a step of the tour. */
async function showStep() {
  const { title, steps } = TOURS[guide.tour], step = steps[guide.step];
  guideBox.hidden = false;
  document.getElementById("guide-title").textContent = `${title}, ${guide.step + 1} of ${steps.length}`;
  document.getElementById("guide-words").textContent = step.words;
  document.getElementById("guide-back").disabled = guide.step === 0;
  document.getElementById("guide-next").disabled = guide.step + 1 === steps.length;
  const { builtIn, protocol, name, keys, schedulers, charts: names, view, moment } = step;
  const found = { name, keys, builtIn, schedulers, charts: names, view, run: { horizon: steps.find(({ horizon }) => horizon)?.horizon } };
  if (protocol !== undefined) {
    const { set } = await quick.ask({ do: "open", built_in: "mars-pathfinder" });
    Object.assign(found, { builtIn: null, name: "mars-pathfinder", keys: { ...set, protocol } });
  }
  if (!found.run.horizon) delete found.run.horizon;
  await takeState({ ...found, moment: null });
  await compareNow();
  if (moment !== undefined) await explainMoment(moment);
  if (step.analyze) document.getElementById("analyze").click();
  // The words stay in sight above it.
  document.getElementById(step.goto ?? "schedules-section").scrollIntoView({ block: "start" });
  document.body.dataset.step = `${guide.tour}.${guide.step}`;
}

function go(step) {
  guide.step = step;
  showStep().catch((error) => error instanceof Cancelled || alertOf(error.message));
}

document.getElementById("tour").addEventListener("change", ({ target }) => {
  if (target.value === "") return void (guideBox.hidden = true);
  guide.tour = +target.value;
  go(0);
  document.getElementById("guide-title").focus();
});
document.getElementById("guide-back").addEventListener("click", () => go(guide.step - 1));
document.getElementById("guide-next").addEventListener("click", () => go(guide.step + 1));
document.getElementById("guide-end").addEventListener("click", () => {
  guideBox.hidden = true;
  document.getElementById("tour").value = "";
});
