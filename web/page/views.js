// What each view asks the module, and shows of the answer.
// @ts-check
"use strict";

/** @typedef {Record<string, any>} Row */

/** A column of numbers, or of words. @param {string} name @param {(row: Row) => any} of @param {string} [width] @returns {Column<Row>} */
const numbers = (name, of, width = "104px") => ({
  name, width, text: (row) => number(of(row) ?? null), value: (row) => of(row) ?? -1,
});
/** @param {string} name @param {(row: Row) => any} of @param {string} [width] @returns {Column<Row>} */
const words = (name, of, width = "minmax(120px, 1fr)") => ({
  name, width, words: true, text: (row) => String(of(row) ?? "-"), value: (row) => String(of(row) ?? ""),
});
/** @param {string} name @param {(row: Row) => any} of @returns {Column<Row>} */
const addresses = (name, of) => ({
  name, width: "130px", text: (row) => { const value = of(row); return value === null || value === undefined ? "-" : `0x${value.toString(16)}`; },
  value: (row) => of(row) ?? -1,
});

/** All tables that are shown, for paper. @type {Map<string, Table<Row>>} */
const shown = new Map();

/** A table in the place of one before. @param {string} place @param {string} label @param {Column<Row>[]} columns @param {Row[]} rows @param {(row: Row) => void} chosen */
function table(place, label, columns, rows, chosen = () => {}) {
  const made = new Table(element(place, HTMLDivElement), label, columns, chosen);
  made.show(rows);
  shown.set(place, made);
  return made;
}

/** Shows the rows of a table that have the words of a search field in them. @param {string} field @param {string} count @param {() => [Table<Row> | undefined, Row[], (row: Row) => string]} of */
function searched(field, count, of) {
  const search = element(field, HTMLInputElement);
  const show = () => {
    const [found, rows, name] = of();
    const matches = matcher(search.value.trim());
    search.setAttribute("aria-invalid", String(matches === null));
    const left = matches === null || search.value.trim() === "" ? rows : rows.filter((row) => matches(name(row)));
    element(count, HTMLOutputElement).value = `${whole.format(left.length)} of ${whole.format(rows.length)}`;
    found?.show(left);
  };
  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(show, 120);
  });
  return show;
}

/** A picture that the module drew: as an image it runs nothing and loads nothing. @param {string[]} pieces @param {string} words */
function picture(pieces, words) {
  const address = URL.createObjectURL(new Blob(pieces, { type: "image/svg+xml" }));
  const image = make("img", { class: "picture", src: address, alt: words });
  image.addEventListener("load", () => URL.revokeObjectURL(address));
  return image;
}

/** @param {[string, any][]} facts */
function facts(facts) {
  return facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, [value ?? []].flat().join(", ") || "-")]);
}

// Sizes ---------------------------------------------------------------------------------------------------------------------------

/** @param {Iterable<string>} lines */
function showSizes(lines) {
  const found = collect({ archs: /** @type {Row[]} */ ([]), families: /** @type {Row[]} */ ([]), sections: /** @type {Record<string, number>} */ ({}) }, lines);
  const stored = found.archs.reduce((sum, row) => sum + row["bytes"].stored, 0);
  table("sizes-archs", "Kinds and architectures", [
    words("kind", (row) => row["kind"]), words("arch", (row) => row["arch"]),
    numbers("images", (row) => row["bytes"].images), numbers("stored", (row) => row["bytes"].stored, "130px"),
    numbers("unpacked", (row) => row["bytes"].unpacked, "130px"),
    { name: "share", width: "90px", text: (row) => percent(row["bytes"].stored, stored), value: (row) => row["bytes"].stored },
  ], found.archs).sort(3, true);
  const sections = Object.entries(found.sections).map(([name, bytes]) => ({ name, bytes }));
  table("sizes-sections", "In cubins", [words("what", (row) => row["name"]), numbers("unpacked", (row) => row["bytes"], "130px")], sections).sort(1, true);
  table("sizes-families", "Kernels, all of a template", [
    words("kernel", (row) => row["family"], "minmax(240px, 1fr)"), numbers("kernels", (row) => row["kernels"]), numbers("code", (row) => row["code"], "130px"),
  ], found.families).sort(2, true);
}

// Entries -------------------------------------------------------------------------------------------------------------------------

/** @type {Row[]} */
let entries = [];
const searchEntries = searched("entries-search", "entries-count", () => [
  shown.get("entries-table"), entries,
  (row) => [row["kind"], row["arch"], row["section"], row["member"], row["identifier"], row["file"]].join(" "),
]);

/** @param {Iterable<string>} lines */
function showEntries(lines) {
  const { files } = collect({ files: /** @type {Row[]} */ ([]) }, lines);
  entries = files.flatMap((file) => file["regions"].flatMap((/** @type {Row} */ region) => region["entries"].map((/** @type {Row} */ entry) => ({
    ...entry, region: region["index"], container: region["container"], section: region["section"], member: region["member"], file: file["file"],
  }))));
  table("entries-table", "Entries", [
    numbers("region", (row) => row["region"], "76px"), numbers("entry", (row) => row["index"], "76px"),
    words("kind", (row) => row["kind"], "76px"), words("arch", (row) => row["arch"], "110px"), addresses("offset", (row) => row["offset"]),
    numbers("stored", (row) => row["stored_size"]), numbers("unpacked", (row) => row["unpacked_size"]),
    words("compression", (row) => row["compression"], "118px"), words("section", (row) => row["section"] ?? row["container"], "124px"),
    words("name", (row) => row["identifier"]), words("file", (row) => row["file"]),
  ], entries);
  searchEntries();
}

// Cubins --------------------------------------------------------------------------------------------------------------------------

/** @type {Row[]} */
let cubinKernels = [];
const searchCubins = searched("cubins-search", "cubins-count", () => [
  shown.get("cubins-table"), cubinKernels, (row) => `${row["name"]} ${row["demangled"] ?? ""}`,
]);

/** @param {Iterable<string>} lines @param {(row: Row, holder: HTMLElement) => void} draw */
function showCubins(lines, draw) {
  const { files } = collect({ files: /** @type {Row[]} */ ([]) }, lines);
  const place = (/** @type {Row} */ file) => (file["image"] ? `${file["file"]} region ${file["image"].region} entry ${file["image"].entry}` : file["file"]);
  cubinKernels = files.flatMap((file) => file["kernels"].map((/** @type {Row} */ kernel) => ({ ...kernel, arch: file["module"]?.architecture, place: place(file), of: file["file"] })));
  table("modules", "Modules", [
    words("module", place, "minmax(240px, 1fr)"), words("arch", (row) => row["module"]?.architecture, "90px"), words("toolkit", (row) => row["module"]?.toolkit, "90px"),
    words("stage", (row) => row["module"]?.stage, "104px"), numbers("kernels", (row) => row["kernels"].length, "84px"),
    numbers("variables", (row) => row["module"]?.variables.length, "90px"), numbers("undefined", (row) => row["module"]?.undefined.length, "96px"),
  ], files);
  const readable = (/** @type {Row} */ row) => row["demangled"] ?? row["name"];
  table("cubins-table", "Kernels of cubins", [
    words("kernel", readable, "minmax(240px, 1fr)"), words("arch", (row) => row["arch"], "84px"), numbers("registers", (row) => row["registers"], "90px"),
    numbers("shared", (row) => row["shared"], "84px"), numbers("stack", (row) => row["stack"], "76px"), numbers("local", (row) => row["local"], "76px"),
    numbers("barriers", (row) => row["barriers"], "84px"), numbers("parameters", (row) => row["parameter_size"], "112px"), numbers("code", (row) => row["code_size"], "90px"),
    { name: "occupancy", width: "104px", text: (row) => (row["occupancy"] ? percent(row["occupancy"].warps, row["occupancy"].of_warps) : "-"),
      value: (row) => (row["occupancy"] ? row["occupancy"].warps / row["occupancy"].of_warps : -1) },
  ], cubinKernels, (row) => {
    const holder = element("cubin-detail", HTMLDivElement);
    const shownFacts = ["name", "arch", "place", "registers", "max_registers", "shared", "reserved_shared", "stack", "frame_size", "local", "barriers", "parameters",
      "parameter_size", "max_threads", "required_threads", "cluster", "code_size", "callees"].map((name) => /** @type {[string, any]} */ ([name.replaceAll("_", " "), row[name]]));
    holder.replaceChildren(make("h4", {}, readable(row)), make("dl", {}, ...facts(shownFacts)));
    holder.hidden = false;
    draw(row, holder);
  });
  element("cubin-detail", HTMLDivElement).hidden = true;
  searchCubins();
}

// ELF -----------------------------------------------------------------------------------------------------------------------------

/** @type {Row[]} */
let symbols = [];
const searchSymbols = searched("symbols-search", "symbols-count", () => [shown.get("elf-symbols"), symbols, (row) => row["name"]]);

/** @param {Row} file */
function showElf(file) {
  const { header } = file;
  element("elf-header", HTMLElement).replaceChildren(...(header ? facts([
    ["file", file["member"] ? `${file["file"]}(${file["member"]})` : file["file"]], ["size", number(file["size"])], ["class", `${header.bits} bits, ${header.byte_order} endian`],
    ["machine", header.machine_name ?? header.machine], ["type", header.type_name ?? header.type], ["entry", `0x${header.entry.toString(16)}`],
    ["flags", [`0x${header.flags.toString(16)}`, ...header.flag_names].join(" ")],
  ]) : facts([["file", file["file"]], ["size", number(file["size"])], ["ELF", "no"]])));
  table("elf-segments", "Segments", [
    numbers("index", (row) => row["index"], "70px"), words("type", (row) => row["type_name"] ?? row["type"], "150px"),
    words("flags", (row) => row["flag_names"].join(" "), "130px"), addresses("offset", (row) => row["offset"]), addresses("address", (row) => row["address"]),
    numbers("in file", (row) => row["file_size"]), numbers("in memory", (row) => row["memory_size"]), numbers("alignment", (row) => row["alignment"], "104px"),
  ], file["segments"] ?? []);
  table("elf-sections", "Sections", [
    numbers("index", (row) => row["index"], "70px"), words("name", (row) => row["name"], "minmax(160px, 1fr)"), words("type", (row) => row["type_name"] ?? row["type"], "150px"),
    words("flags", (row) => row["flag_names"].join(" "), "minmax(170px, .8fr)"), addresses("address", (row) => row["address"]), addresses("offset", (row) => row["offset"]),
    numbers("size", (row) => row["size"]), numbers("link", (row) => row["link"], "64px"), numbers("info", (row) => row["info"], "64px"), numbers("alignment", (row) => row["alignment"], "104px"),
  ], file["sections"] ?? []);
  symbols = (file["symbol_tables"] ?? []).flatMap((/** @type {Row} */ all) => all["symbols"].map((/** @type {Row} */ symbol) => ({ ...symbol, table: all["section_name"] })));
  table("elf-symbols", "Symbols", [
    words("name", (row) => row["name"], "minmax(240px, 1fr)"), words("version", (row) => row["version"]?.name, "110px"), words("type", (row) => row["type_name"] ?? row["type"], "110px"),
    words("binding", (row) => row["binding_name"] ?? row["binding"], "110px"), words("section", (row) => row["section_name"], "130px"),
    addresses("value", (row) => row["value"]), numbers("size", (row) => row["size"]), words("table", (row) => row["table"], "90px"),
  ], symbols);
  searchSymbols();
  table("elf-dynamic", "Dynamic section", [
    words("tag", (row) => row["tag_name"] ?? row["tag"], "180px"), addresses("value", (row) => row["value"]), words("text", (row) => row["text"], "minmax(160px, 1fr)"),
  ], file["dynamic"] ?? []);
  table("elf-notes", "Notes", [
    words("section", (row) => row["section"], "160px"), words("owner", (row) => row["owner"], "110px"), words("type", (row) => row["type_name"] ?? row["type"], "200px"),
    numbers("size", (row) => row["size"], "84px"), words("description", (row) => row["description"], "minmax(160px, 1fr)"),
  ], (file["notes"] ?? []).flatMap((/** @type {Row} */ all) => all["notes"].map((/** @type {Row} */ note) => ({ ...note, section: all["section_name"] }))));
}
