// How many kernels need how much.
// @ts-check
"use strict";

/** @param {string} title @param {[string, number][]} bars */
function chart(title, bars) {
  const [width, line, left] = [320, 18, 108];
  const most = Math.max(1, ...bars.map(([, count]) => count));
  const words = bars.map(([name, count]) => `${name}: ${count}`).join(", ");
  const picture = draw("svg", { viewBox: `0 0 ${width} ${Math.max(1, bars.length) * line}`, role: "img", "aria-label": `${title}: ${words}` });
  bars.forEach(([name, count], index) => {
    const long = (count / most) * (width - left - 60);
    picture.append(
      draw("text", { x: left - 6, y: index * line + 13, "text-anchor": "end" }, name),
      draw("rect", { class: "bar", x: left, y: index * line + 3, width: long, height: line - 6 }),
      draw("text", { x: left + long + 4, y: index * line + 13 }, whole.format(count)),
    );
  });
  return make("figure", {}, /** @type {any} */ (make("figcaption", {}, title)), /** @type {any} */ (picture));
}

/** How many kernels are in each bin. @param {Kernel[]} rows @param {(row: Kernel) => string | null} bin @param {string[]} names */
function counted(rows, bin, names) {
  /** @type {Map<string, number>} */
  const counts = new Map(names.map((name) => [name, 0]));
  for (const row of rows) {
    const name = bin(row);
    if (name !== null) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts];
}

/** @param {number[]} edges @param {(edge: number) => string} name */
function bins(edges, name) {
  const names = edges.map((edge, index) => {
    const before = index === 0 ? -1 : (edges[index - 1] ?? 0);
    return before + 1 === edge ? name(edge) : `${name(before + 1)}\u2013${name(edge)}`;
  });
  const of = (/** @type {number | null} */ value) => {
    const at = value === null ? -1 : edges.findIndex((edge) => value <= edge);
    return names[at] ?? null;
  };
  return { names, of };
}

/** @param {Kernel[]} rows */
function charts(rows) {
  const registers = bins([16, 32, 48, 64, 96, 128, 168, 255], String);
  const shared = bins([0, 1024, 4096, 16384, 49152, 102400, 262144], (bytes) => (bytes >= 1024 ? `${Math.floor(bytes / 1024)} K` : String(bytes)));
  const stack = bins([0, 64, 256, 1024, 4096, 1 << 20], String);
  const running = bins([12, 25, 37, 50, 75, 100], (share) => String(share));
  element("charts", HTMLDivElement).replaceChildren(
    chart("Registers", counted(rows, (row) => registers.of(row.registers), registers.names)),
    chart("Static shared memory, bytes", counted(rows, (row) => shared.of(row.shared), shared.names)),
    chart("Stack, bytes", counted(rows, (row) => stack.of(row.stack), stack.names)),
    chart("Occupancy, %", counted(rows, (row) => { const found = occupancy(row); return found ? running.of(Math.ceil((found.warps * 100) / found.of)) : null; }, running.names)),
    chart("Limited by", counted(rows, (row) => occupancy(row)?.limiter ?? null, []).sort(([, one], [, other]) => other - one)),
  );
}
