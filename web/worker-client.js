"use strict";
/** Work that was given up, because the reader cancelled it or because something newer took its place. */
class Cancelled extends Error {}
/** What is wrong with a request, in the words of the command line; `line` is that of the set's text; of a trace, other options may help. */
class Refused extends Error {
  constructor(message, line, isOfTrace = false) {
    super(message);
    this.line = line ?? null;
    this.isOfTrace = isOfTrace;
  }
}

/** Returns the bytes of Base64. */
function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at++) bytes[at] = letters.charCodeAt(at);
  return bytes;
}

/** The module's bytes, unpacked once. */
const moduleBytes = (async () => {
  const stream = new Blob([fromBase64(document.getElementById("module").textContent.trim())]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
})();

/** A worker with the module. Requests run one after the other. To cancel is to end the worker; the next request starts another one. */
class Helper {
  constructor(hearsProgress = () => {}) {
    this.hearsProgress = hearsProgress;
    this.waiting = new Map();
    this.number = 0;
  }

  start(bytes) {
    const source = new Blob([document.getElementById("worker").textContent], { type: "text/javascript" });
    const address = URL.createObjectURL(source);
    const worker = new Worker(address);
    worker.onmessage = ({ data }) => this.hear(data);
    worker.onerror = (event) => this.end(new Refused(`the lab stopped: ${event.message}`));
    worker.postMessage({ bytes });
    this.worker = worker;
  }

  /** Sends a request with the files that it names, and returns its result; a refusal is thrown. */
  async ask(request, files = []) {
    const bytes = await moduleBytes;
    if (!this.worker) this.start(bytes);
    const number = ++this.number;
    return new Promise((resolve, reject) => {
      this.waiting.set(number, { resolve, reject });
      this.worker.postMessage({ number, request: JSON.stringify(request), files });
    });
  }

  /** Sends a request in place of those that have not begun. While one is running, only the latest one waits. */
  async latest(request) {
    if (this.next) this.next.reject(new Cancelled());
    if (this.waiting.size) {
      const turn = Promise.withResolvers?.() ?? deferred();
      this.next = turn;
      await turn.promise;
    }
    return this.ask(request);
  }

  hear(data) {
    if (data.progress !== undefined) return this.hearsProgress(data.progress, data.words);
    if (data.failed !== undefined) return this.end(new Refused(`the lab stopped: ${data.failed.split("\n").slice(0, 2).join(" ")}`));
    const { resolve, reject } = this.waiting.get(data.number) ?? {};
    this.waiting.delete(data.number);
    const { result, error, line, trace } = JSON.parse(data.answer);
    if (error === undefined) resolve?.(result);
    else reject?.(new Refused(error, line, trace));
    this.goOn();
  }

  goOn() {
    const next = this.next;
    this.next = null;
    next?.resolve();
  }

  /** Ends the worker, unless it has nothing to do; all that waits for it fails. */
  end(why = new Cancelled()) {
    if (!this.waiting.size && !this.next) return;
    this.worker?.terminate();
    this.worker = null;
    const all = [...this.waiting.values()];
    this.waiting.clear();
    all.forEach(({ reject }) => reject(why));
    const next = this.next;
    this.next = null;
    next?.reject(why);
  }

  /** Ends the worker in any case, so that its memory is free. */
  close() {
    this.end();
    this.worker?.terminate();
    this.worker = null;
  }
}

/** A promise with its functions, for browsers without `Promise.withResolvers`. */
function deferred() {
  const turn = {};
  turn.promise = new Promise((resolve, reject) => Object.assign(turn, { resolve, reject }));
  return turn;
}
