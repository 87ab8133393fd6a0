// Command lines to the module, and what it prints.
// @ts-check
"use strict";

/** @typedef {{ name: string, file: File }} Chosen */
/** @typedef {{ lines: string[], error: string, read: number }} Answer */
/** @typedef {{ lines: string[], resolve: (answer: Answer) => void }} Waiting */

/** The module in a thread of its own, with files. */
class Hand {
  /** @param {Chosen[]} files */
  constructor(files) {
    /** @type {Map<number, Waiting>} */
    this.waiting = new Map();
    this.next = 1;
    // a worker from here keeps to the policy of the page
    const source = `import ${JSON.stringify(new URL("worker.js", document.baseURI).href)};`;
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    /** @type {Worker | null} */
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

  /** Whoever waits is told why. @param {string} why */
  end(why) {
    this.worker?.terminate();
    this.worker = null;
    for (const { lines, resolve } of this.waiting.values()) resolve({ lines, error: why, read: 0 });
    this.waiting.clear();
  }
}

/** Below this many bytes one is as quick as several. */
const ALONE = 32e6;
/** The most memory that several may take together, each of which has what it looks at. */
const TOGETHER = 2.4e9;
const HANDS = 4;

class Engine {
  constructor() {
    /** @type {Hand | null} */
    this.first = null;
    /** Those that take shares, while they do. @type {Hand[]} */
    this.others = [];
    /** @type {Chosen[]} */
    this.files = [];
  }

  /** Other files: the module begins anew, without the memory of those before. @param {Chosen[]} files */
  open(files) {
    this.end("other files were opened");
    this.files = files;
    this.first = new Hand(files);
  }

  /** Runs a command line. @param {string[]} words @returns {Promise<Answer>} */
  run(words) {
    // one that has ended begins anew
    if (!this.first?.worker) this.first = new Hand(this.files);
    return this.first.run(words);
  }

  /** Runs a command line that takes shares, on as many as is worth it: what each prints. @param {(share: string) => string[]} words @returns {Promise<Answer[]>} */
  async share(words) {
    const { files } = this;
    const count = await this.hands();
    // of files that are gone nothing is wanted
    if (files !== this.files) return [];
    this.others = Array.from({ length: count - 1 }, () => new Hand(files));
    const others = this.others;
    const answers = await Promise.all([this.run(words(`1/${count}`)), ...others.map((hand, index) => hand.run(words(`${index + 2}/${count}`)))]);
    for (const hand of others) hand.end("");
    return answers;
  }

  /** How many are worth it. @returns {Promise<number>} */
  async hands() {
    const all = this.files.reduce((sum, one) => sum + one.file.size, 0);
    if (all < ALONE) return 1;
    // what is compressed as a whole would be unpacked by each
    const heads = await Promise.all(this.files.map((one) => one.file.slice(0, 4).text().catch(() => "")));
    if (!heads.every((head) => head === "\x7fELF" || head === "!<ar")) return 1;
    // one core reads for each that works
    return Math.max(1, Math.min(HANDS, Math.floor(navigator.hardwareConcurrency / 2), Math.floor(TOGETHER / all)));
  }

  /** @param {string} why */
  end(why) {
    for (const hand of [this.first, ...this.others]) hand?.end(why);
    [this.first, this.others] = [null, []];
  }
}

/** Lines of what came in pieces, each of which ends with a line. @param {string[]} pieces */
function* linesOf(pieces) {
  for (const piece of pieces) yield* piece.split("\n");
}

/** What went wrong for some of several, as one would say it. @param {string[]} errors */
function joined(errors) {
  const said = errors.filter((error) => error !== "");
  const more = / \(and (\d+) more errors\)$/;
  const count = said.reduce((sum, error) => sum + 1 + Number(more.exec(error)?.[1] ?? 0), 0);
  return count > 1 && said[0] !== undefined ? `${said[0].replace(more, "")} (and ${count - 1} more errors)` : (said[0] ?? "");
}

/** Numbers of things, each once. @template T */
class Numbers {
  /** @param {T[]} all @param {(one: T) => any} key */
  constructor(all, key = (one) => one) {
    this.all = all;
    this.key = key;
    /** @type {Map<any, number>} */
    this.known = new Map();
  }

  /** The number of each thing that another list has, found when it is asked for. @param {T[]} list @returns {(number: number) => number} */
  of(list) {
    /** @type {number[]} */
    const found = [];
    return (number) => (found[number] ??= this.number(/** @type {T} */ (list[number])));
  }

  /** @param {T} one */
  number(one) {
    const key = this.key(one);
    const known = this.known.get(key);
    if (known !== undefined) return known;
    this.known.set(key, this.all.length);
    return this.all.push(one) - 1;
  }
}

/** What several told of their shares, as one would tell it: file by file, in order. @param {Data[]} shares @returns {Data} */
function together(shares) {
  const [first] = shares;
  if (!first || shares.length === 1) return first ?? nothing();
  // all of them name all files
  const all = { ...nothing(), title: first.title, files: first.files };
  const [archs, names, families] = [new Numbers(all.archs), new Numbers(all.names), new Numbers(all.families)];
  const curves = new Numbers(all.curves, (curve) => JSON.stringify(curve));
  const left = shares.map((share) => ({
    share, image: 0, kernel: 0, archs: archs.of(share.archs), names: names.of(share.names), families: families.of(share.families), curves: curves.of(share.curves),
  }));
  /** @type {Map<string, ImageSum>} */
  const sums = new Map();
  for (let file = 0; file < all.files.length; file += 1) {
    for (const one of left) {
      const { images, kernels } = one.share;
      for (let image = images[one.image]; image?.file === file; image = images[++one.image]) {
        const key = `${file} ${image.kind} ${one.archs(image.arch)}`;
        const sum = sums.get(key);
        if (sum) {
          sum.images += image.images;
          sum.stored += image.stored;
          sum.unpacked += image.unpacked;
        } else {
          const added = { ...image, arch: one.archs(image.arch) };
          sums.set(key, added);
          all.images.push(added);
        }
      }
      for (let kernel = kernels[one.kernel]; kernel?.file === file; kernel = kernels[++one.kernel]) {
        kernel.arch = one.archs(kernel.arch);
        kernel.name = one.names(kernel.name);
        kernel.family = one.families(kernel.family);
        kernel.curve = kernel.curve === null ? null : one.curves(kernel.curve);
        all.kernels.push(kernel);
      }
    }
  }
  return all;
}
