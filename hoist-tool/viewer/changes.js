// What is other than before.
// @ts-check
"use strict";

/** @typedef {{ change: Change, what: string }} ChangeRow */

/** @param {(needs: Needs) => number | null} of @param {string} name @returns {Column<ChangeRow>} */
function beforeAndAfter(of, name) {
  /** @param {Needs | null} needs */
  const side = (needs) => (needs ? of(needs) : null);
  return {
    name, width: "150px",
    text: ({ change }) => {
      const [old, now] = [side(change.old), side(change.new)];
      return old === now || old === null || now === null ? number(now ?? old) : `${number(old)} \u2192 ${number(now)}`;
    },
    value: ({ change }) => (side(change.new) ?? 0) - (side(change.old) ?? 0),
  };
}

/** @param {Changes} changes */
function showChanges(changes) {
  element("changes-section", HTMLElement).hidden = false;
  const { added, gone, changed, same, code_before: before, code_after: after } = changes;
  element("changes-sum", HTMLParagraphElement).textContent =
    `${several(added.length, "kernel")} added, ${whole.format(gone.length)} gone, ${whole.format(changed.length)} changed, ` +
    `${whole.format(same)} the same; code ${size(before)} \u2192 ${size(after)}.`;
  const rows = [["added", added], ["gone", gone], ["changed", changed]].flatMap(([what, list]) =>
    /** @type {Change[]} */ (list).map((change) => ({ change, what: String(what) })));
  /** @param {ChangeRow} row */
  const name = (row) => row.change.demangled ?? row.change.name;
  const table = new Table(element("changes", HTMLDivElement), "Changes", /** @type {Column<ChangeRow>[]} */ ([
    { name: "kernel", words: true, width: "minmax(240px, 1fr)", text: name, value: name },
    { name: "what", words: true, width: "84px", text: (row) => row.what, value: (row) => row.what },
    { name: "arch", words: true, width: "84px", text: (row) => row.change.arch, value: (row) => row.change.arch },
    beforeAndAfter((needs) => needs.registers, "registers"),
    beforeAndAfter((needs) => needs.shared, "shared"),
    beforeAndAfter((needs) => needs.stack, "stack"),
    beforeAndAfter((needs) => needs.code_size, "code"),
    { name: "file", words: true, width: "minmax(140px, .5fr)", text: (row) => row.change.file, value: (row) => row.change.file },
  ]), () => {});
  table.show(rows);
  return table;
}
