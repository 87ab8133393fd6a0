// The kernels: search, numbers, occupancy.
// @ts-check
"use strict";

/** @param {Kernel} kernel */
const archOf = (kernel) => data.archs[kernel.arch] ?? "";
/** @param {Kernel} kernel */
const nameOf = (kernel) => data.names[kernel.name] ?? "";
/** @param {Kernel} kernel */
const fileOf = (kernel) => shortFiles[kernel.file] ?? "";

/** Threads of a block that occupancy is shown for; 0 for those that kernels name, or 256. */
let threads = 0;

/** Warps, of how many, and what limits them. @param {Kernel} kernel */
function occupancy(kernel) {
  const curve = kernel.curve === null ? undefined : data.curves[kernel.curve];
  if (!curve) return null;
  const block = threads || Math.min(kernel.threads ?? 256, 1024);
  const at = Math.max(0, Math.ceil(block / 32) - 1);
  return { warps: curve.warps[at] ?? 0, of: curve.of, limiter: curve.limiters[at] ?? "", block };
}

/** @type {Column<Kernel>[]} */
const KERNEL_COLUMNS = [
  { name: "kernel", words: true, width: "minmax(240px, 1fr)", text: nameOf, value: nameOf },
  { name: "arch", words: true, width: "84px", text: archOf, value: archOf },
  { name: "registers", width: "90px", text: (row) => number(row.registers), value: (row) => row.registers ?? -1 },
  { name: "shared", width: "84px", text: (row) => number(row.shared), value: (row) => row.shared },
  { name: "stack", width: "76px", text: (row) => number(row.stack), value: (row) => row.stack ?? -1 },
  { name: "local", width: "76px", text: (row) => number(row.local), value: (row) => row.local },
  { name: "code", width: "90px", text: (row) => number(row.code), value: (row) => row.code },
  {
    name: "occupancy", width: "104px",
    text: (row) => { const found = occupancy(row); return found ? percent(found.warps, found.of) : "-"; },
    value: (row) => { const found = occupancy(row); return found ? found.warps / found.of : -1; },
  },
  { name: "limited by", words: true, width: "116px", text: (row) => occupancy(row)?.limiter ?? "-", value: (row) => occupancy(row)?.limiter ?? "" },
  { name: "file", words: true, width: "minmax(140px, .5fr)", text: fileOf, value: fileOf },
];

const kernels = new Table(element("kernels", HTMLDivElement), "Kernels", KERNEL_COLUMNS, detail);

/** What is searched for. @param {string} words @returns {((name: string) => boolean) | null} */
function matcher(words) {
  const pattern = /^\/(.*)\/$/.exec(words)?.[1];
  if (pattern !== undefined) {
    try {
      const expression = new RegExp(pattern, "i");
      return (name) => expression.test(name);
    } catch {
      return null;
    }
  }
  const lower = words.toLowerCase();
  return (name) => name.toLowerCase().includes(lower);
}

function filter() {
  const search = element("search", HTMLInputElement);
  const matches = matcher(search.value.trim());
  search.setAttribute("aria-invalid", String(matches === null));
  const arch = element("arch", HTMLSelectElement).value;
  const wanted = data.names.map((name) => matches === null || matches(name));
  const rows = data.kernels.filter((kernel) => wanted[kernel.name] && (arch === "" || archOf(kernel) === arch));
  element("count", HTMLOutputElement).value =
    matches === null ? "no regular expression" : `${whole.format(rows.length)} of ${whole.format(data.kernels.length)}`;
  element("detail", HTMLDivElement).hidden = true;
  kernels.show(rows);
  charts(rows);
}

/** @param {Kernel} kernel */
function detail(kernel) {
  const found = occupancy(kernel);
  const numbers = [
    `${archOf(kernel)}`,
    `${number(kernel.registers)} registers`,
    `${number(kernel.shared)} bytes of shared memory`,
    `${number(kernel.stack)} bytes of stack`,
    `${number(kernel.code)} bytes of code`,
    data.files[kernel.file] ?? "",
  ];
  if (found) numbers.push(`${found.warps} of ${found.of} warps with ${found.block} threads a block, limited by ${found.limiter}`);
  const parts = [make("h3", {}, nameOf(kernel)), make("p", {}, numbers.join(" \u00b7 "))];
  const curve = kernel.curve === null ? undefined : data.curves[kernel.curve];
  const holder = element("detail", HTMLDivElement);
  holder.replaceChildren(...parts);
  if (curve) holder.append(curvePicture(curve, kernel));
  holder.hidden = false;
}

/** Warps by the size of blocks. @param {Curve} curve @param {Kernel} kernel */
function curvePicture(curve, kernel) {
  const [width, height, left, below] = [640, 160, 40, 22];
  const x = (/** @type {number} */ block) => left + ((block - 32) / 992) * (width - left - 10);
  const y = (/** @type {number} */ warps) => 8 + (1 - warps / curve.of) * (height - 8 - below);
  const points = curve.warps.map((warps, index) => `${x((index + 1) * 32).toFixed(1)},${y(warps).toFixed(1)}`);
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": "Occupancy by the size of blocks" });
  picture.append(
    draw("title", {}, "Warps that an SM runs at a time, by threads of a block"),
    draw("line", { class: "axis", x1: left, x2: width - 10, y1: y(0), y2: y(0) }),
    draw("line", { class: "axis", x1: left, x2: left, y1: y(0), y2: y(curve.of) }),
    draw("text", { x: 0, y: y(curve.of) + 8 }, String(curve.of)),
    draw("text", { x: 0, y: y(0) }, "0 warps"),
    draw("polyline", { class: "line", points: points.join(" ") }),
  );
  for (const block of [32, 256, 512, 768, 1024]) {
    picture.append(draw("text", { x: x(block) - 10, y: height - 6 }, String(block)));
  }
  if (kernel.threads !== null && kernel.threads <= 1024) {
    const at = x(Math.max(32, kernel.threads));
    picture.append(draw("line", { class: "limit", x1: at, x2: at, y1: y(0), y2: y(curve.of) }));
  }
  return picture;
}
