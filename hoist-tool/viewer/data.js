// @ts-check
// What the page holds, and how it becomes elements and words.
"use strict";

/**
 * What `hoist fatbin report --json-lines` prints, as one object.
 * @typedef {{ of: number, warps: number[], limiters: string[] }} Curve
 * @typedef {{ file: number, kind: string, arch: number, images: number, stored: number, unpacked: number }} ImageSum
 * @typedef {{ file: number, arch: number, name: number, family: number, registers: number | null, shared: number,
 *   stack: number | null, local: number, code: number, threads: number | null, curve: number | null }} Kernel
 * @typedef {{ registers: number | null, shared: number, stack: number | null, local: number, code_size: number }} Needs
 * @typedef {{ name: string, demangled: string | null, arch: string, file: string, old: Needs | null, new: Needs | null }} Change
 * @typedef {{ added: Change[], gone: Change[], changed: Change[], same: number, code_before: number, code_after: number }} Changes
 * @typedef {{ title: string, files: string[], archs: string[], names: string[], families: string[], images: ImageSum[],
 *   kernels: Kernel[], curves: Curve[], changes: Changes | null }} Data
 * @typedef {{ keys: string[], size: number }} Leaf
 * @typedef {{ name: string, size: number, leaves: Leaf[] }} Branch
 * @typedef {{ x: number, y: number, width: number, height: number }} Area
 */

/** @template {Element} T @param {string} id @param {new () => T} type @returns {T} */
function element(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`no ${id}`);
  return found;
}

/**
 * An element with text or other elements inside. Text never becomes HTML.
 * @param {string} tag @param {Record<string, string>} attributes @param {(Node | string)[]} children
 */
function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(.../** @type {any[]} */ (children));
  return made;
}

/** The same for pictures. @param {string} tag @param {Record<string, string | number>} attributes @param {any[]} children */
function draw(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/** Nothing yet. @returns {Data} */
const nothing = () => ({ title: "", files: [], archs: [], names: [], families: [], images: [], kernels: [], curves: [], changes: null });
let data = nothing();
/** Names of files without the folder that all are in. @type {string[]} */
let shortFiles = [];

/** Takes JSON Lines: elements of lists, and other values. @template {object} T @param {T} into @param {Iterable<string>} lines */
function collect(into, lines) {
  const found = /** @type {Record<string, any>} */ (into);
  for (const line of lines) {
    if (line === "") continue;
    for (const [key, value] of Object.entries(JSON.parse(line))) {
      if (Array.isArray(found[key])) found[key].push(value);
      else found[key] = value;
    }
  }
  return into;
}

/** Has the page hold other data. @param {Data} found */
function show(found) {
  data = found;
  shortFiles = shortened(data.files);
}

const whole = new Intl.NumberFormat("en");

/** @param {number} bytes */
function size(bytes) {
  for (const [unit, factor] of /** @type {const} */ ([["GB", 1e9], ["MB", 1e6], ["kB", 1e3]])) {
    if (bytes >= factor) return `${(bytes / factor).toFixed(1)} ${unit}`;
  }
  return `${bytes} B`;
}

/** @param {number} part @param {number} of */
const percent = (part, of) => (of === 0 ? "-" : `${((part * 100) / of).toFixed(1)} %`);

/** @param {number | null} value */
const number = (value) => (value === null ? "-" : whole.format(value));

/** A number of things in words. @param {number} count @param {string} what */
const several = (count, what) => `${whole.format(count)} ${what}${count === 1 ? "" : "s"}`;

/** @param {string[]} files */
function shortened(files) {
  const folder = (/** @type {string} */ name) => name.slice(0, name.lastIndexOf("/") + 1);
  let common = folder(files[0] ?? "");
  while (common && !files.every((name) => name.startsWith(common))) common = folder(common.slice(0, -1));
  return files.map((name) => name.slice(common.length));
}
