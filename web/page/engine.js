// Command lines to the module, and what it prints.
// @ts-check
"use strict";

/** @typedef {{ name: string, file: File }} Chosen */
/** @typedef {{ lines: string[], error: string, read: number }} Answer */
/** @typedef {{ lines: string[], resolve: (answer: Answer) => void }} Waiting */

class Engine {
  constructor() {
    /** @type {Worker | null} */
    this.worker = null;
    /** @type {Chosen[]} */
    this.files = [];
    /** @type {Map<number, Waiting>} */
    this.waiting = new Map();
    this.next = 1;
  }

  /** Other files: the module begins anew, without the memory of those before. @param {Chosen[]} files */
  open(files) {
    this.end("other files were opened");
    this.files = files;
    // a worker from here keeps to the policy of the page
    const source = `import ${JSON.stringify(new URL("worker.js", document.baseURI).href)};`;
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.worker = new Worker(address, { type: "module" });
    this.worker.addEventListener("message", ({ data }) => this.take(data));
    // it is loaded when it answers
    this.worker.addEventListener("message", () => URL.revokeObjectURL(address), { once: true });
    this.worker.addEventListener("error", (event) => this.end(event.message || "the module could not be loaded"));
    this.worker.postMessage({ files });
  }

  /** Runs a command line. @param {string[]} words @returns {Promise<Answer>} */
  run(words) {
    const id = this.next++;
    if (!this.worker) this.open(this.files);
    return new Promise((resolve) => {
      this.waiting.set(id, { lines: [], resolve });
      this.worker?.postMessage({ id, words });
    });
  }

  /** @param {{ id: number, lines?: string, error?: string, read?: number, ended?: boolean }} said */
  take(said) {
    const waiting = this.waiting.get(said.id);
    if (!waiting) return;
    if (said.lines !== undefined) {
      waiting.lines.push(said.lines);
      return;
    }
    this.waiting.delete(said.id);
    waiting.resolve({ lines: waiting.lines, error: said.error ?? "", read: said.read ?? 0 });
    if (said.ended) this.end(said.error ?? "");
  }

  /** @param {string} why */
  end(why) {
    this.worker?.terminate();
    this.worker = null;
    for (const { lines, resolve } of this.waiting.values()) resolve({ lines, error: why, read: 0 });
    this.waiting.clear();
  }
}

/** Lines of what came in pieces, each of which ends with a line. @param {string[]} pieces */
function* linesOf(pieces) {
  for (const piece of pieces) yield* piece.split("\n");
}
