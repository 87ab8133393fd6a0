// The module, in a thread of its own: it may read parts of files and wait for them.
// @ts-check
import init, { bytes_read, lend, run } from "./hoist.js";

/** @typedef {{ hoistRead: (file: number, at: number, into: Uint8Array) => boolean, hoistLines: (lines: string) => void }} Hooks */

/** @type {File[]} */
let files = [];
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

const ready = init({ module_or_path: new URL("hoist_bg.wasm", import.meta.url) });

addEventListener("message", async ({ data }) => {
  await ready;
  if (data.files) {
    files = data.files.map((/** @type {{ file: File }} */ one) => one.file);
    data.files.forEach((/** @type {{ name: string, file: File }} */ one, /** @type {number} */ index) => lend(one.name, index, one.file.size));
    return;
  }
  id = data.id;
  try {
    postMessage({ id, error: run(data.words), read: bytes_read() });
  } catch (error) {
    // what the module cannot go on after: memory that is not to be had
    postMessage({ id, error: `the module has ended: ${error}`, ended: true });
  }
});
