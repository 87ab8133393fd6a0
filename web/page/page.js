// Files in, views out.
// @ts-check
"use strict";

const engine = new Engine();
const busy = new Set();

/** Runs a command line on the open files; what goes wrong is shown. @param {string[]} line @param {(line: string[]) => Promise<Answer>} run */
async function ask(line, run = (line) => engine.run(line)) {
  const files = engine.files;
  const said = `hoist ${line.join(" ")}`;
  busy.add(said);
  tell();
  const answer = await run(line);
  // of files that are gone nothing is said
  if (files !== engine.files) return null;
  busy.delete(said);
  tell(answer.read);
  // that there is nothing to show is no fault, and is seen
  if (answer.error !== "" && !/: (holds no device code( of NVIDIA's)?|has no kernel|holds no cubin)$/.test(answer.error)) fault(answer.error);
  return answer;
}

/** @param {number} [read] */
function tell(read) {
  const all = engine.files.reduce((sum, one) => sum + one.file.size, 0);
  const done = read === undefined ? "" : `${size(read)} of ${size(all)} read`;
  element("status", HTMLParagraphElement).textContent = busy.size > 0 ? `${[...busy][0]} \u2026` : done;
  document.body.dataset["busy"] = String(busy.size);
}

/** @param {string} words */
function fault(words) {
  const faults = element("faults", HTMLUListElement);
  if ([...faults.children].some((one) => one.textContent === words)) return;
  faults.append(make("li", {}, words));
  faults.hidden = false;
}

const names = () => engine.files.map((one) => one.name);

/** @typedef {{ id: string, name: string, show: () => Promise<void> }} View */

/** @type {View[]} */
const VIEWS = [
  {
    id: "space", name: "Space", show: async () => {
      /** @type {Data[]} */
      let shares = [];
      const answer = await ask(["fatbin", "report", "--json-lines", "--output", "-", "--", ...names()], async ([command = "", what = "", ...words]) => {
        const answers = await engine.share((share) => [command, what, "--share", share, ...words]);
        shares = answers.map((one) => collect(nothing(), linesOf(one.lines)));
        return { lines: [], error: joined(answers.map((one) => one.error)), read: Math.max(0, ...answers.map((one) => one.read)) };
      });
      if (!answer) return;
      show(together(shares));
      present();
    },
  },
  {
    id: "sizes", name: "Sizes", show: async () => {
      const answer = await ask(["fatbin", "size", "--json-lines", "--", ...names()]);
      if (answer) showSizes(linesOf(answer.lines));
    },
  },
  {
    id: "entries", name: "Entries", show: async () => {
      const answer = await ask(["fatbin", "list", "--json-lines", "--", ...names()]);
      if (answer) showEntries(linesOf(answer.lines));
    },
  },
  {
    id: "cubins", name: "Cubins", show: async () => {
      /** @type {string[]} */
      const lines = [];
      for (const name of names()) {
        const answer = await ask(["cubin", "show", "--json-lines", "--", name]);
        if (!answer) return;
        lines.push(...answer.lines);
      }
      showCubins(linesOf(lines), async (row, holder) => {
        const answer = await ask(["cubin", "show", "--svg", "--limit", "8", "--", row["of"], row["name"]]);
        if (answer && answer.lines.length > 0 && holder.firstElementChild?.textContent === (row["demangled"] ?? row["name"])) {
          holder.append(picture(answer.lines, `Resources of ${row["name"]}, and its occupancy by the size of blocks`));
        }
      });
    },
  },
  { id: "elf", name: "ELF", show: elf },
  { id: "compare", name: "Compare", show: compare },
];

/** ELF files that are shown: files, and members of archives. @type {Row[]} */
let elves = [];

async function elf() {
  elves = [];
  for (const name of names()) {
    const answer = await ask(["show", "--json-lines", "--header", "--segments", "--sections", "--dynamic", "--symbols", "--notes", "--", name]);
    if (!answer) return;
    elves.push(...collect({ files: /** @type {Row[]} */ ([]) }, linesOf(answer.lines)).files);
  }
  const select = element("elf-file", HTMLSelectElement);
  select.replaceChildren(...elves.map((file, index) => make("option", { value: String(index) }, file["member"] ? `${file["file"]}(${file["member"]})` : file["file"])));
  await chooseElf();
}

async function chooseElf() {
  const file = elves[Number(element("elf-file", HTMLSelectElement).value)];
  showElf(file ?? { file: names().join(", "), size: engine.files.reduce((sum, one) => sum + one.file.size, 0) });
  const holder = element("elf-map", HTMLDivElement);
  const image = element("elf-layout", HTMLDivElement);
  holder.replaceChildren();
  image.replaceChildren();
  if (!file) return;
  const answer = await ask(["show", "--svg", "--", file["file"]]);
  if (answer && answer.lines.length > 0) holder.replaceChildren(picture(answer.lines, `Map of ${file["file"]}: its segments and sections to scale`));
  // an object has a place in memory once it is laid out
  if (file["header"]?.type_name !== "ET_REL" || file["header"].machine_name === "EM_CUDA" || file["member"]) return;
  const { files } = engine;
  const laid = await engine.run(["layout", "--svg", "--", file["file"]]);
  if (files !== engine.files || elves[Number(element("elf-file", HTMLSelectElement).value)] !== file) return;
  image.replaceChildren(make("h3", {}, "As it is loaded"), laid.error === ""
    ? picture(laid.lines, `Image of ${file["file"]}: where its sections go, to scale`)
    : make("p", {}, laid.error));
}

async function compare() {
  const [old, now] = [element("old", HTMLSelectElement).value, element("new", HTMLSelectElement).value];
  const [before, after] = [engine.files[Number(old)], engine.files[Number(now)]];
  if (!before || !after) return;
  const answer = await ask(["fatbin", "diff", "--json-lines", "--", before.name, after.name]);
  if (!answer) return;
  /** @type {Changes} */
  const found = { added: [], gone: [], changed: [], same: 0, code_before: 0, code_after: 0 };
  changes = showChanges(collect(found, linesOf(answer.lines)));
}

let current = "space";
/** Views that show the files that are open. @type {Set<string>} */
const fresh = new Set();

/** @param {string} id */
async function go(id) {
  current = id;
  for (const view of VIEWS) {
    element(view.id, HTMLElement).hidden = view.id !== id;
    const button = element(`view-${view.id}`, HTMLButtonElement);
    if (view.id === id) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
  }
  if (!fresh.has(id)) {
    fresh.add(id);
    await VIEWS.find((view) => view.id === id)?.show();
  }
  if (id === "space") map();
  for (const one of shown.values()) one.draw();
  kernels.draw();
}

/** Files that have one name get another. @param {File[]} files @returns {Chosen[]} */
function named(files) {
  const seen = new Set();
  return files.map((file, index) => {
    const name = seen.has(file.name) ? `${index + 1}/${file.name}` : file.name;
    seen.add(file.name);
    return { name, file };
  });
}

/** @param {File[]} files */
async function openFiles(files) {
  if (files.length === 0) return;
  engine.open(named(files));
  const opened = engine.files;
  fresh.clear();
  busy.clear();
  const faults = element("faults", HTMLUListElement);
  faults.replaceChildren();
  faults.hidden = true;
  show(nothing());
  present();
  document.body.classList.add("has-files");
  element("views", HTMLElement).hidden = false;
  element("title", HTMLHeadingElement).textContent = names().join(", ");
  for (const [id, chosen] of /** @type {[string, number][]} */ ([["old", 0], ["new", 1]])) {
    const select = element(id, HTMLSelectElement);
    select.replaceChildren(...names().map((name, index) => make("option", { value: String(index) }, name)));
    select.value = String(Math.min(chosen, files.length - 1));
  }
  element("view-compare", HTMLButtonElement).hidden = files.length < 2;
  delete document.body.dataset["opened"];
  await go("space");
  if (opened !== engine.files) return;
  const isDevice = data.images.length > 0;
  if (files.length === 2 && isDevice && current === "space") await go("compare");
  // what has no device code is shown as what it is
  else if (!isDevice && current === "space") {
    const all = engine.files.reduce((sum, one) => sum + one.file.size, 0);
    element("totals", HTMLParagraphElement).textContent = `${size(all)}, without device code that can be read`;
    await go("elf");
  }
  // others may have been dropped meanwhile
  if (opened !== engine.files) return;
  document.body.dataset["opened"] = names().join("/");
}

const views = element("views", HTMLElement);
for (const view of VIEWS) {
  const button = make("button", { type: "button", id: `view-${view.id}` }, view.name);
  button.addEventListener("click", () => go(view.id));
  views.append(button);
}
// what changed is a view of its own here
element("compare", HTMLElement).append(element("changes-section", HTMLElement));
element("elf-file", HTMLSelectElement).addEventListener("change", chooseElf);
for (const id of ["old", "new"]) element(id, HTMLSelectElement).addEventListener("change", compare);
const input = element("files", HTMLInputElement);
element("open", HTMLButtonElement).addEventListener("click", () => input.click());
input.addEventListener("change", () => {
  openFiles([...(input.files ?? [])]);
  input.value = "";
});
addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dragging");
});
addEventListener("dragleave", () => document.body.classList.remove("dragging"));
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dragging");
  openFiles([...(event.dataTransfer?.files ?? [])]);
});
prepare();
addEventListener("beforeprint", () => {
  for (const one of shown.values()) one.draw(PRINTED);
});
addEventListener("afterprint", () => {
  for (const one of shown.values()) one.draw();
});
