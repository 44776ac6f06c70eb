"use strict";
/** The worker: it runs the module. The first message is the module's bytes; each further one is a request with its number. */
let module;
const decoder = new TextDecoder(), encoder = new TextEncoder();
const text = (at, length) => decoder.decode(new Uint8Array(module.memory.buffer, at, length));

/** Least time between two reports of progress, in milliseconds. */
const PAUSE = 60;
let reported = 0;
const page = {
  progressed(share, words, length) {
    const now = performance.now();
    if (now - reported < PAUSE) return;
    reported = now;
    postMessage({ progress: share, words: text(words, length) });
  },
  failed(words, length) {
    postMessage({ failed: text(words, length) });
  },
};

let ready;
onmessage = async ({ data }) => {
  if (data.bytes) {
    ready = WebAssembly.instantiate(data.bytes, { page }).then(({ instance }) => (module = instance.exports));
    return;
  }
  await ready;
  reported = performance.now();
  try {
    const request = encoder.encode(data.request);
    // Memory may grow in each call, and has another buffer then.
    const room = module.room(request.length);
    new Uint8Array(module.memory.buffer, room, request.length).set(request);
    const at = module.call();
    postMessage({ number: data.number, answer: text(at, module.length()) });
  } catch (error) {
    // The module is in the middle of something and cannot be used again.
    postMessage({ failed: String(error) });
  }
};
