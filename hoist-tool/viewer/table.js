// Tables of any length.
// @ts-check
"use strict";

/**
 * A table of any length: only the rows that are seen are there.
 * @template Row
 * @typedef {{ name: string, words?: boolean, width: string, text: (row: Row) => string, value: (row: Row) => number | string }} Column
 */

/** Tables that were made: rows have names of their own. */
let tables = 0;

/** @template Row */
class Table {
  /** @param {HTMLElement} holder @param {string} label @param {Column<Row>[]} columns @param {(row: Row) => void} chosen */
  constructor(holder, label, columns, chosen) {
    this.columns = columns;
    this.chosen = chosen;
    tables += 1;
    this.name = `table-${tables}`;
    /** @type {Row[]} */
    this.rows = [];
    this.selected = -1;
    this.by = -1;
    this.falling = false;
    this.head = make("div", { class: "head", role: "row" });
    columns.forEach((column, index) => {
      const button = make("button", { type: "button", class: column.words ? "words" : "" }, column.name);
      button.addEventListener("click", () => this.sort(index, this.by === index ? !this.falling : !column.words));
      this.head.append(make("div", { role: "columnheader", "aria-sort": "none" }, /** @type {any} */ (button)));
      button.parentElement?.classList.add("header");
    });
    this.space = make("div", { role: "presentation" });
    this.scroller = make("div", { class: "scroller", tabindex: "0", role: "rowgroup", "aria-label": `${label}: rows` }, /** @type {any} */ (this.space));
    const inner = make("div", { class: "inner" }, /** @type {any} */ (this.head), /** @type {any} */ (this.scroller));
    this.table = make("div", { class: "table", role: "grid", "aria-label": label }, /** @type {any} */ (inner));
    this.table.style.setProperty("--columns", columns.map((column) => column.width).join(" "));
    this.scroller.addEventListener("scroll", () => this.draw());
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    this.scroller.addEventListener("click", (event) => {
      const row = event.target instanceof Element ? event.target.closest(".row") : null;
      if (row instanceof HTMLElement) this.select(Number(row.dataset["index"]));
    });
    holder.replaceChildren(this.table);
  }

  /** @param {Row[]} rows */
  show(rows) {
    this.rows = rows;
    this.selected = -1;
    this.table.setAttribute("aria-rowcount", String(rows.length + 1));
    if (this.by >= 0) this.sort(this.by, this.falling);
    else this.settle();
  }

  /** @param {number} by @param {boolean} falling */
  sort(by, falling) {
    this.by = by;
    this.falling = falling;
    const column = this.columns[by];
    if (!column) return;
    const keyed = this.rows.map((row) => /** @type {const} */ ([column.value(row), row]));
    const sign = falling ? -1 : 1;
    keyed.sort(([one], [other]) => (one < other ? -sign : one > other ? sign : 0));
    this.rows = keyed.map(([, row]) => row);
    [...this.head.children].forEach((head, index) => {
      head.setAttribute("aria-sort", index !== by ? "none" : falling ? "descending" : "ascending");
      const button = head.firstElementChild;
      const name = this.columns[index]?.name ?? "";
      if (button) button.textContent = index !== by ? name : `${name} ${falling ? "\u2193" : "\u2191"}`;
    });
    this.selected = -1;
    this.settle();
  }

  settle() {
    this.space.style.height = `${this.rows.length * ROW}px`;
    this.scroller.style.height = this.rows.length * ROW < 540 ? `${Math.max(this.rows.length, 1) * ROW + 2}px` : "";
    this.scroller.scrollTop = 0;
    this.draw();
  }

  /** @param {number} [most] rows from the first, instead of those that are seen */
  draw(most) {
    const first = most ? 0 : Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - 4);
    const count = most ?? Math.ceil(this.scroller.clientHeight / ROW) + 8;
    const rows = this.rows.slice(first, first + count).map((row, offset) => {
      const index = first + offset;
      const line = make("div", {
        class: "row", role: "row", "aria-rowindex": String(index + 2), "data-index": String(index),
        "aria-selected": String(index === this.selected), id: `${this.name}-row-${index}`,
      });
      line.style.top = `${index * ROW}px`;
      for (const column of this.columns) {
        const text = column.text(row);
        const cell = make("div", { class: column.words ? "cell words" : "cell", role: "gridcell" }, text);
        if (column.words) cell.title = text;
        line.append(cell);
      }
      return line;
    });
    this.space.replaceChildren(...rows);
  }

  /** @param {number} index */
  select(index) {
    const row = this.rows[index];
    if (row === undefined) return;
    this.selected = index;
    const top = index * ROW;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    const below = top + 2 * ROW - this.scroller.clientHeight;
    if (below > this.scroller.scrollTop) this.scroller.scrollTop = below;
    this.draw();
    this.scroller.setAttribute("aria-activedescendant", `${this.name}-row-${index}`);
    this.chosen(row);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 1);
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    this.select(Math.min(Math.max(this.selected + step, 0), this.rows.length - 1));
  }
}

const ROW = 24;
