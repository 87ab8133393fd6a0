// The page as a whole: what it shows of code, and what can be done with it.
// @ts-check
"use strict";

/** @type {Table<ChangeRow> | null} */
let changes = null;

/** Shows what was taken. */
function present() {
  element("title", HTMLHeadingElement).textContent = data.title;
  const sum = (/** @type {(one: ImageSum) => number} */ of) => data.images.reduce((all, one) => all + of(one), 0);
  element("totals", HTMLParagraphElement).textContent =
    `${several(data.files.length, "file")}, ${several(sum((one) => one.images), "image")}, ${size(sum((one) => one.stored))} stored, ` +
    `${size(sum((one) => one.unpacked))} unpacked, ${several(data.kernels.length, "kernel")}`;
  const used = [...new Set(data.kernels.map(archOf))].sort();
  element("arch", HTMLSelectElement).replaceChildren(
    make("option", { value: "" }, "all"), ...used.map((name) => make("option", { value: name }, name)));
  parts = leaves();
  path = [];
  map();
  filter();
  element("changes-section", HTMLElement).hidden = data.changes === null;
  changes = data.changes ? showChanges(data.changes) : null;
}

/** Makes the page answer: once. */
function prepare() {
  const orders = element("order", HTMLSelectElement);
  orders.append(...ORDERS.map((name, index) => make("option", { value: String(index) }, name)));
  orders.addEventListener("change", () => {
    [order, path] = [Number(orders.value), []];
    map();
  });
  document.addEventListener("keydown", (event) => {
    const inMap = event.target instanceof Element && event.target.closest("#map, #path");
    if (event.key !== "Escape" || !inMap || path.length === 0) return;
    path = path.slice(0, -1);
    map();
    focusFirst();
  });

  element("arch", HTMLSelectElement).addEventListener("change", filter);
  const blocks = element("threads", HTMLSelectElement);
  blocks.append(make("option", { value: "0" }, "the kernel's, or 256"));
  blocks.append(...[32, 64, 128, 192, 256, 384, 512, 768, 1024].map((block) => make("option", { value: String(block) }, String(block))));
  blocks.addEventListener("change", () => {
    threads = Number(blocks.value);
    filter();
  });
  let waiting = 0;
  element("search", HTMLInputElement).addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 120);
  });

  const theme = element("theme", HTMLButtonElement);
  /** @param {boolean} dark */
  const dress = (dark) => {
    document.documentElement.dataset["theme"] = dark ? "dark" : "light";
    theme.setAttribute("aria-pressed", String(dark));
    map();
  };
  theme.addEventListener("click", () => dress(theme.getAttribute("aria-pressed") !== "true"));
  dress(matchMedia("(prefers-color-scheme: dark)").matches);
  addEventListener("resize", map);

  addEventListener("beforeprint", () => {
    kernels.draw(PRINTED);
    changes?.draw(PRINTED);
  });
  addEventListener("afterprint", () => {
    kernels.draw();
    changes?.draw();
  });
}

/** Rows of a table on paper. */
const PRINTED = 200;
