// The map of space: a treemap that is walked through.
// @ts-check
"use strict";

const ORDERS = ["file, architecture, kernel", "architecture, kernel, file", "kernel, architecture, file"];
const KEYS = [[0, 1, 2], [1, 2, 0], [2, 1, 0]];

/** What the map is made of: stored bytes of every file, architecture and family. @returns {Leaf[]} */
function leaves() {
  /** @type {Map<string, Map<number, number>>} */
  const code = new Map();
  for (const kernel of data.kernels) {
    const key = `${kernel.file} ${kernel.arch}`;
    const families = code.get(key) ?? new Map();
    code.set(key, families);
    families.set(kernel.family, (families.get(kernel.family) ?? 0) + kernel.code);
  }
  /** @type {Leaf[]} */
  const found = [];
  for (const image of data.images) {
    const file = shortFiles[image.file] ?? "";
    const arch = data.archs[image.arch] || "any";
    const families = image.kind === "elf" ? code.get(`${image.file} ${image.arch}`) : undefined;
    const all = families ? [...families.values()].reduce((sum, one) => sum + one, 0) : 0;
    if (!families || all === 0) {
      found.push({ keys: [file, `${arch} ${image.kind}`, `(${image.kind})`], size: image.stored });
      continue;
    }
    for (const [family, bytes] of families) {
      const share = (image.stored * bytes) / all;
      found.push({ keys: [file, `${arch} ${image.kind}`, data.families[family] ?? ""], size: share });
    }
  }
  return found;
}

/** Leaves in groups by a key, the largest first. @param {Leaf[]} from @param {number} key @returns {Branch[]} */
function grouped(from, key) {
  /** @type {Map<string, Branch>} */
  const nodes = new Map();
  for (const leaf of from) {
    const name = leaf.keys[key] ?? "";
    /** @type {Branch} */
    const node = nodes.get(name) ?? { name, size: 0, leaves: [] };
    nodes.set(name, node);
    node.size += leaf.size;
    node.leaves.push(leaf);
  }
  return [...nodes.values()].sort((one, other) => other.size - one.size);
}

/**
 * Areas for sizes in descending order, as square as can be (Bruls, Huizing, van Wijk: Squarified Treemaps).
 * @param {number[]} sizes @param {Area} area @returns {Area[]}
 */
function squarified(sizes, area) {
  const all = sizes.reduce((sum, one) => sum + one, 0);
  const scale = all > 0 ? (area.width * area.height) / all : 0;
  /** @type {Area[]} */
  const areas = [];
  let { x, y, width, height } = area;
  for (let from = 0; from < sizes.length; ) {
    const side = Math.min(width, height);
    let to = from;
    let sum = 0;
    let worst = Infinity;
    while (to < sizes.length) {
      const next = sum + (sizes[to] ?? 0) * scale;
      const largest = (sizes[from] ?? 0) * scale;
      const least = (sizes[to] ?? 0) * scale;
      const ratio = Math.max((side * side * largest) / (next * next), (next * next) / (side * side * least));
      if (to > from && !(ratio <= worst)) break;
      [sum, worst] = [next, ratio];
      to += 1;
    }
    const depth = side > 0 ? sum / side : 0;
    let along = 0;
    for (let index = from; index < to; index += 1) {
      const length = sum > 0 ? (((sizes[index] ?? 0) * scale) / sum) * side : 0;
      areas.push(
        width >= height
          ? { x, y: y + along, width: depth, height: length }
          : { x: x + along, y, width: length, height: depth },
      );
      along += length;
    }
    if (width >= height) [x, width] = [x + depth, Math.max(0, width - depth)];
    else [y, height] = [y + depth, Math.max(0, height - depth)];
    from = to;
  }
  return areas;
}

/** The colour of a name. @param {string} name @param {number} depth */
function colour(name, depth) {
  let hash = 0;
  for (const one of name) hash = (hash * 31 + (one.codePointAt(0) ?? 0)) % 360;
  const dark = document.documentElement.dataset["theme"] === "dark";
  const light = dark ? 30 + depth * 8 : 78 + depth * 6;
  return `hsl(${hash} 45% ${light}%)`;
}

/** As much of a name as there is room for. @param {string} name @param {number} width */
function fitting(name, width) {
  const letters = Math.floor((width - 8) / 6.2);
  if (letters < 3) return "";
  return name.length <= letters ? name : `${name.slice(0, letters - 1)}\u2026`;
}

/** @type {Leaf[]} */
let parts = [];
const HEIGHT = 420;
/** Areas below this are drawn together. */
const LEAST = 30;
/** @type {string[]} */
let path = [];
let order = 0;

function map() {
  const keys = KEYS[order] ?? [0, 1, 2];
  let inside = parts;
  for (const [depth, name] of path.entries()) {
    inside = inside.filter((leaf) => leaf.keys[keys[depth] ?? 0] === name);
  }
  const holder = element("map", HTMLDivElement);
  const width = Math.max(300, holder.clientWidth);
  const picture = draw("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "group", "aria-label": "Map of space" });
  const sum = inside.reduce((all, leaf) => all + leaf.size, 0);
  const depth = path.length;
  const isLast = depth >= keys.length - 1;
  const nodes = merged(grouped(inside, keys[depth] ?? 0), sum, width * HEIGHT);
  const areas = squarified(nodes.map((node) => node.size), { x: 0, y: 0, width, height: HEIGHT });
  nodes.forEach((node, index) => {
    const area = areas[index];
    if (!area) return;
    const words = `${node.name}: ${size(node.size)}, ${percent(node.size, sum)}`;
    const group = draw("g", {}, draw("title", {}, words), cell(node.name, area, 0));
    const head = 16;
    const opens = !isLast && node.leaves.length > 0;
    if (opens && area.height > 3 * head && area.width > 40) {
      const inner = { x: area.x + 2, y: area.y + head, width: area.width - 4, height: area.height - head - 2 };
      const below = merged(grouped(node.leaves, keys[depth + 1] ?? 0), node.size, inner.width * inner.height);
      squarified(below.map((one) => one.size), inner).forEach((place, number) => {
        const one = below[number];
        if (!one) return;
        const title = `${node.name} / ${one.name}: ${size(one.size)}, ${percent(one.size, sum)}`;
        group.append(draw("g", { "aria-hidden": "true" }, draw("title", {}, title), cell(one.name, place, 1), label(one.name, place)));
      });
    }
    group.append(label(node.name, { ...area, height: Math.max(area.height, 0) }));
    if (opens) {
      group.setAttribute("tabindex", "0");
      group.setAttribute("role", "button");
      const enter = () => {
        path = [...path, node.name];
        map();
      };
      group.addEventListener("click", enter);
      group.addEventListener("keydown", (event) => {
        if (event instanceof KeyboardEvent && (event.key === "Enter" || event.key === " ")) {
          event.preventDefault();
          enter();
          focusFirst();
        }
      });
    }
    picture.append(group);
  });
  holder.replaceChildren(picture);
  const steps = ["all", ...path].map((name, index) => {
    const step = make("button", { type: "button" }, index === 0 ? "All" : name);
    step.addEventListener("click", () => {
      path = path.slice(0, index);
      map();
    });
    return step;
  });
  element("path", HTMLSpanElement).replaceChildren(...steps.flatMap((step, index) => (index ? [" / ", step] : [step])));
}

function focusFirst() {
  const first = document.querySelector("#map g[role=button]") ?? document.querySelector("#path button:last-of-type");
  if (first instanceof HTMLElement || first instanceof SVGElement) first.focus();
}

/** What is too small to be seen becomes one. @param {Branch[]} nodes @param {number} sum @param {number} pixels @returns {Branch[]} */
function merged(nodes, sum, pixels) {
  const least = pixels > 0 ? (LEAST * sum) / pixels : 0;
  const shown = nodes.filter((node) => node.size >= least && node.size > 0);
  const rest = nodes.slice(shown.length);
  const left = rest.reduce((all, node) => all + node.size, 0);
  return left > 0 ? [...shown, { name: `${rest.length} others`, size: left, leaves: [] }] : shown;
}

/** @param {string} name @param {Area} area @param {number} depth */
function cell(name, area, depth) {
  const { x, y, width, height } = area;
  return draw("rect", { x, y, width: Math.max(0, width), height: Math.max(0, height), fill: colour(name, depth) });
}

/** @param {string} name @param {Area} area */
function label(name, area) {
  const words = area.height >= 14 ? fitting(name, area.width) : "";
  return draw("text", { x: area.x + 4, y: area.y + 12, fill: "currentColor", "aria-hidden": "true" }, words);
}
