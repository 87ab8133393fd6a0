// The module, in a thread of its own: it may read parts of files and wait for them.
// @ts-check
import init, { bytes_read, lend, put, run, wanted } from "./hoist.js";

/** @typedef {{ hoistRead: (file: number, at: number, into: Uint8Array) => boolean, hoistLines: (lines: string) => void }} Hooks */

/** @type {File[]} */
let files = [];
/** Whether the files are where commands look for them. */
let prepared = Promise.resolve();
let id = 0;
const reader = new FileReaderSync();

const hooks = /** @type {Hooks} */ (/** @type {unknown} */ (globalThis));
hooks.hoistRead = (file, at, into) => {
  try {
    const part = files[file]?.slice(at, at + into.length);
    if (part?.size !== into.length) return false;
    into.set(new Uint8Array(reader.readAsArrayBuffer(part)));
    return true;
  } catch {
    return false;
  }
};
hooks.hoistLines = (lines) => postMessage({ id, lines });

/** Bytes that come together, and how many parts are read at a time: one by one takes twice as long. */
const [TOGETHER, ATONCE] = [8 << 20, 2];

/** Reads what commands will look at. What cannot be read they ask for, and say so. @param {string} name @param {File} file */
async function prepare(name, file) {
  for (let parts = wanted(name); parts; parts = wanted(name)) {
    /** @type {[number, number][]} */
    const ranges = [];
    for (let index = 0; index < parts.length; index += 2) {
      const [start = 0, end = 0] = parts.subarray(index, index + 2);
      const size = Math.max(TOGETHER, Math.ceil((end - start) / ATONCE));
      for (let at = start; at < end; at += size) ranges.push([at, Math.min(end, at + size)]);
    }
    const left = ranges.values();
    const some = async () => {
      for (const range of left) await fill(name, file, range);
    };
    await Promise.all(Array.from({ length: ATONCE }, some));
  }
}

/** Puts a part of a file where it is wanted, through a buffer that is used again. @param {string} name @param {File} file @param {[number, number]} range */
async function fill(name, file, [start, end]) {
  const reader = file.slice(start, end).stream().getReader({ mode: "byob" });
  let buffer = new ArrayBuffer(TOGETHER);
  for (let at = start; at < end; ) {
    const { value } = await reader.read(new Uint8Array(buffer));
    if (!value?.length || !put(name, at, value)) throw new Error("a part is missing");
    at += value.length;
    buffer = value.buffer;
  }
}

const ready = init({ module_or_path: new URL("hoist_bg.wasm", import.meta.url) });

addEventListener("message", async ({ data }) => {
  if (data.files) {
    files = data.files.map((/** @type {{ file: File }} */ one) => one.file);
    prepared = ready.then(async () => {
      data.files.forEach((/** @type {{ name: string, file: File }} */ one, /** @type {number} */ index) => {
        lend(one.name, index, one.file.size);
      });
      for (const one of data.files) await prepare(one.name, one.file).catch(() => {});
    });
    return;
  }
  await prepared;
  id = data.id;
  try {
    postMessage({ id, error: run(data.words), read: bytes_read() });
  } catch (error) {
    // what the module cannot go on after: memory that is not to be had
    postMessage({ id, error: `the module has ended: ${error}`, ended: true });
  }
});
