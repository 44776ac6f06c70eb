"use strict";
/** The worker: it runs the module. The first message is the module's bytes; each further one is a request with its number and the files that it names. */
let module, files = [];
const decoder = new TextDecoder(), encoder = new TextEncoder();
/** Returns a stretch of the module's memory. Its addresses have 32 bits and come as signed numbers. */
const memory = (at, length) => new Uint8Array(module.memory.buffer, at >>> 0, length >>> 0);
const text = (at, length) => decoder.decode(memory(at, length));

/** Least time between two reports of progress, in milliseconds. */
const PAUSE = 60;
let reported = 0, hasPanicked = false;
const page = {
  progressed(share, words, length) {
    const now = performance.now();
    if (now - reported < PAUSE) return;
    reported = now;
    postMessage({ progress: share, words: text(words, length) });
  },
  failed(words, length) {
    hasPanicked = true;
    postMessage({ failed: text(words, length) });
  },
  /** Writes a piece of a file into memory. The file stays where it is. */
  read(file, offset, to, length) {
    try {
      const piece = new FileReaderSync().readAsArrayBuffer(files[file].slice(offset, offset + (length >>> 0)));
      memory(to, piece.byteLength).set(new Uint8Array(piece));
      return piece.byteLength;
    } catch {
      return -1;
    }
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
    files = data.files;
    const request = encoder.encode(data.request);
    // Memory may grow in each call, and has another buffer then.
    const room = module.room(request.length);
    memory(room, request.length).set(request);
    const at = module.call();
    postMessage({ number: data.number, answer: text(at, module.length()) });
  } catch (error) {
    // The module is in the middle of something and cannot be used again. It ends without a word where memory does.
    const isMemory = error instanceof WebAssembly.RuntimeError && !hasPanicked;
    postMessage({ failed: isMemory ? "this needs more memory than a page has" : String(error) });
  }
};
