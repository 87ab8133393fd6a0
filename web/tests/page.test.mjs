// The page in a browser: `cargo xtask web --test` serves it, and runs this with PAGE, FIXTURES and PICTURES set.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { closeSync, ftruncateSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "playwright-core";
import { alike } from "./pictures.mjs";

const { PAGE = "", FIXTURES = "", PICTURES = "" } = process.env;
const CHROMIUM = execFileSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).trim();
const fixture = (name) => join(FIXTURES, name);
const [LIBRARY, CUBIN, OLD, NEW] = ["fatbin/libt.so", "cuda/kernels-13.5-sm_90a.cubin", "cuda/arrays-13.5-sm_80.cubin", "cuda/kernels-13.5-sm_80.cubin"].map(fixture);
const folder = mkdtempSync(join(tmpdir(), "hoist-web-"));

let browser;
before(async () => {
  const quiet = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
  browser = await chromium.launch({ executablePath: CHROMIUM, args: quiet });
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true });
});

/** The page; whatever it complains of, or asks of others, ends the test. */
async function visit(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  context.on("request", (request) => request.url().startsWith(PAGE) || request.url().startsWith("blob:") || faults.push(request.url()));
  await page.goto(PAGE);
  const done = async () => {
    await context.close();
    assert.deepEqual(faults, []);
  };
  return { page, done };
}

/** Opens files, and waits until the first view is there. */
async function open(page, ...files) {
  await page.setInputFiles("#files", files);
  await opened(page, files.map((file) => basename(file)).join("/"));
}

const opened = async (page, names) => {
  await page.waitForFunction((wanted) => document.body.dataset.opened === wanted, names);
  await idle(page);
};
const idle = (page) => page.waitForFunction(() => document.body.dataset.busy === "0");

/** A picture of the page, kept, and compared with what was looked at when it was recorded. */
async function picture(page, name) {
  const png = await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
  await alike(browser, name, png.toString("base64"));
}

/** Goes to a view by its button. */
async function go(page, view) {
  await page.click(`#view-${view}`);
  await page.waitForSelector(`#view-${view}[aria-current=page]`);
  await idle(page);
}

const texts = (page, selector) => page.locator(selector).allInnerTexts();
const faults = (page) => texts(page, "#faults li");

test("by button: a file chooser, and every view of a library", async () => {
  const { page, done } = await visit();
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.click("#open")]);
  await chooser.setFiles(LIBRARY);
  await opened(page, "libt.so");
  assert.deepEqual(await faults(page), []);
  assert.equal(await page.locator("#title").innerText(), "libt.so");
  assert.ok((await page.locator("#map svg > g").count()) > 0);
  assert.match(await page.locator("#count").innerText(), /^(\d+) of \1$/);
  for (const view of ["sizes", "entries", "cubins", "elf"]) {
    await go(page, view);
    assert.ok((await page.locator(`#${view} .row`).count()) > 0, view);
    await picture(page, view);
  }
  assert.deepEqual(await faults(page), []);
  await page.waitForFunction(() => document.querySelector("#elf-map img")?.naturalWidth > 0);
  assert.ok((await texts(page, "#elf-sections .cell:nth-child(2)")).includes(".nv_fatbin"));
  await go(page, "cubins");
  await page.click("#cubins-table .row >> nth=0");
  await page.waitForFunction(() => document.querySelector("#cubin-detail img")?.naturalWidth > 0);
  await picture(page, "kernel");
  await done();
});

test("by drop: a cubin, and then two files, which are compared", async () => {
  const { page, done } = await visit();
  const drop = async (files) => {
    const all = files.map((file) => [basename(file), readFileSync(file).toString("base64")]);
    await page.evaluate((all) => {
      const transfer = new DataTransfer();
      for (const [name, text] of all) transfer.items.add(new File([Uint8Array.from(atob(text), (one) => one.charCodeAt(0))], name));
      document.body.dispatchEvent(new DragEvent("dragover", { dataTransfer: transfer, bubbles: true, cancelable: true }));
      document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }, all);
    await opened(page, files.map((file) => basename(file)).join("/"));
  };
  await drop([CUBIN]);
  assert.ok((await page.locator("#kernels .row").count()) > 0);
  assert.equal(await page.locator("#view-compare").isVisible(), false);
  await drop([OLD, NEW]);
  assert.equal(await page.locator("#compare").isVisible(), true);
  assert.match(await page.locator("#changes-sum").innerText(), /kernels added, .* gone, .* changed/);
  assert.ok((await page.locator("#changes .row").count()) > 0);
  await picture(page, "compare");
  await page.selectOption("#new", "0");
  await idle(page);
  assert.match(await page.locator("#changes-sum").innerText(), /^0 kernels added, 0 gone, 0 changed/);
  assert.deepEqual(await faults(page), []);
  await done();
});

test("search, sort and filter", async () => {
  const { page, done } = await visit();
  await open(page, NEW, CUBIN);
  await go(page, "space");
  const all = await page.locator("#count").innerText();
  await page.fill("#search", "scale");
  await page.waitForFunction((all) => document.querySelector("#count").value !== all, all);
  for (const name of await texts(page, "#kernels .row .cell:first-child")) assert.match(name, /scale/i);
  await page.fill("#search", "");
  await page.waitForFunction((all) => document.querySelector("#count").value === all, all);
  await page.selectOption("#arch", "sm_80");
  for (const arch of await texts(page, "#kernels .row .cell:nth-child(2)")) assert.equal(arch, "sm_80");
  await page.click("#kernels .head >> text=registers");
  const numbers = (await texts(page, "#kernels .row .cell:nth-child(3)")).map(Number);
  assert.deepEqual(numbers, numbers.toSorted((one, other) => other - one));
  await go(page, "elf");
  await page.fill("#symbols-search", "scale");
  await page.waitForFunction(() => {
    const [left, all] = document.querySelector("#symbols-count").value.split(" of ").map(Number);
    return left < all;
  });
  for (const name of await texts(page, "#elf-symbols .row .cell:first-child")) assert.match(name, /scale/i);
  await page.selectOption("#elf-file", "1");
  await idle(page);
  assert.match(await page.locator("#elf-header").innerText(), /sm_90a/);
  await done();
});

test("what has no device code is shown as the ELF file that it is", async () => {
  const { page, done } = await visit();
  await open(page, fixture("x86_64/elftest.o"));
  assert.equal(await page.locator("#elf").isVisible(), true);
  assert.deepEqual(await faults(page), []);
  assert.match(await page.locator("#totals").innerText(), /without device code/);
  assert.ok((await texts(page, "#elf-sections .cell:nth-child(2)")).includes(".symtab"));
  assert.match(await page.locator("#elf-header").innerText(), /EM_X86_64/);
  // the image that the command line draws of it
  await page.waitForFunction(() => document.querySelector("#elf-layout img")?.naturalWidth > 0);
  await done();
});

/** What stands before and behind the only member of a zip file, which is stored. Nobody looks at its checksum. */
function zipped(name, size) {
  const common = Buffer.alloc(26);
  common.writeUInt16LE(20, 0);
  common.writeUInt32LE(size, 14);
  common.writeUInt32LE(size, 18);
  common.writeUInt16LE(name.length, 22);
  const local = Buffer.concat([Buffer.from("PK\x03\x04"), common, Buffer.from(name)]);
  const central = Buffer.concat([Buffer.from("PK\x01\x02\x14\0"), common, Buffer.alloc(14), Buffer.from(name)]);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06");
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(local.length + size, 16);
  return [local, Buffer.concat([central, end])];
}

test("a wheel is what is in it", async () => {
  const path = join(folder, "t-1.0-py3-none-any.whl");
  const library = readFileSync(LIBRARY);
  const [before, after] = zipped("t/libt.so", library.length);
  writeFileSync(path, Buffer.concat([before, library, after]));
  const { page, done } = await visit();
  await open(page, path);
  assert.deepEqual(await faults(page), []);
  assert.ok((await page.locator("#kernels .row").count()) > 0);
  await go(page, "entries");
  assert.ok((await texts(page, "#entries-table .cell:last-child")).every((name) => name.endsWith("t/libt.so")));
  await done();
});

/** What the page holds of kernels and images, in words. */
const rows = (page) =>
  page.evaluate(() => ({
    images: data.images.map((one) => ({ ...one, file: data.files[one.file], arch: data.archs[one.arch] })),
    kernels: data.kernels.map((one) => ({
      ...one, file: data.files[one.file], arch: data.archs[one.arch], name: data.names[one.name], family: data.families[one.family],
      curve: one.curve === null ? null : data.curves[one.curve],
    })),
    totals: document.querySelector("#totals").textContent,
  }));

test("several workers find what one finds, and say what one says", async () => {
  const { page, done } = await visit();
  const damaged = join(folder, "damaged.so");
  const library = readFileSync(LIBRARY);
  // the payloads of some entries
  library.fill(0x5a, library.indexOf("\x28\xb5\x2f\xfd", 0, "latin1") + 8, library.indexOf("\x28\xb5\x2f\xfd", 0, "latin1") + 24);
  writeFileSync(damaged, library);
  const files = [LIBRARY, CUBIN, damaged, NEW];
  await page.evaluate(() => (engine.hands = async () => 1));
  await open(page, ...files);
  const [alone, said] = [await rows(page), await faults(page)];
  assert.ok(alone.kernels.length > 10 && alone.images.length > 3);
  for (const count of [2, 3, 7]) {
    await page.evaluate((count) => (engine.hands = async () => count), count);
    await page.evaluate(() => delete document.body.dataset.opened);
    await open(page, ...files);
    assert.deepEqual(await rows(page), alone);
    assert.deepEqual(await faults(page), said);
    assert.equal(page.workers().length, 1);
  }
  await done();
});

test("files that are dropped meanwhile take the place of those before", async () => {
  const { page, done } = await visit();
  await page.evaluate(() => (engine.hands = async () => 3));
  await page.setInputFiles("#files", [LIBRARY]);
  await page.setInputFiles("#files", [OLD, NEW]);
  await page.setInputFiles("#files", [fixture("x86_64/elftest.o")]);
  await page.setInputFiles("#files", [CUBIN]);
  await opened(page, basename(CUBIN));
  assert.deepEqual(await faults(page), []);
  assert.equal(await page.locator("#title").innerText(), basename(CUBIN));
  assert.ok((await rows(page)).kernels.every((one) => one.file === basename(CUBIN)));
  await go(page, "space");
  assert.ok((await page.locator("#kernels .row").count()) > 0);
  assert.equal(page.workers().length, 1);
  await done();
});

test("500 MB are read in slices, alone and in a wheel", async () => {
  const path = join(folder, "large.so");
  // sections that nobody looks at between the first bytes of a library and its tables
  const library = readFileSync(LIBRARY);
  const size = 500 * 1024 * 1024;
  const headers = Number(library.readBigUInt64LE(0x28));
  const count = library.readUInt16LE(0x3c);
  const moved = size - 64 * (count + 1);
  library.writeBigUInt64LE(BigInt(moved), 0x28);
  library.writeUInt16LE(count + 1, 0x3c);
  const file = openSync(path, "w");
  writeSync(file, library);
  const extra = Buffer.alloc(64);
  // `.text`, code: by the name of the library's own
  const names = library.readUInt16LE(0x3e);
  const strings = Number(library.readBigUInt64LE(headers + names * 64 + 0x18));
  extra.writeUInt32LE(library.indexOf(".text\0", strings) - strings, 0);
  extra.writeUInt32LE(1, 4);
  extra.writeBigUInt64LE(6n, 8);
  extra.writeBigUInt64LE(1n << 20n, 0x18);
  extra.writeBigUInt64LE(BigInt(moved - (1 << 20)), 0x20);
  const table = Buffer.concat([library.subarray(headers, headers + count * 64), extra]);
  writeSync(file, table, 0, table.length, moved);
  ftruncateSync(file, size);
  closeSync(file);
  // the same, stored in a wheel: what is around it, and the file in between, with holes where it has them
  const inWheel = join(folder, "large-1.0-py3-none-any.whl");
  const [before, after] = zipped("t/large.so", size);
  const copy = openSync(inWheel, "w");
  for (const [bytes, at] of [[before, 0], [library, before.length], [table, before.length + moved], [after, before.length + size]]) {
    writeSync(copy, bytes, 0, bytes.length, at);
  }
  closeSync(copy);
  const { page, done } = await visit();
  await open(page, inWheel);
  assert.deepEqual(await faults(page), []);
  assert.ok((await page.locator("#kernels .row").count()) > 0);
  // what tells what it is, and where members are, comes in a few megabytes
  const inSlices = /^([\d.]+) (kB|MB) of 524.3 MB read$/.exec(await page.locator("#status").innerText());
  assert.ok(inSlices && (inSlices[2] === "kB" || Number(inSlices[1]) < 10), await page.locator("#status").innerText());
  await go(page, "elf");
  assert.match(await page.locator("#elf-header").innerText(), /ELF\s+no/);
  await open(page, path);
  assert.deepEqual(await faults(page), []);
  assert.ok((await page.locator("#kernels .row").count()) > 0);
  const [, read, unit] = /^([\d.]+) (\w+) of 524.3 MB read$/.exec(await page.locator("#status").innerText());
  assert.equal(unit, "kB", `${read} ${unit}`);
  await go(page, "elf");
  await page.$eval("#elf-sections .scroller", (scroller) => (scroller.scrollTop = scroller.scrollHeight));
  await page.waitForTimeout(200);
  assert.ok((await texts(page, "#elf-sections .cell:nth-child(7)")).some((words) => Number(words.replaceAll(",", "")) > 5e8));
  await done();
});

test("a damaged file is refused in words, and the next one is shown", async () => {
  const path = join(folder, "damaged.so");
  const library = readFileSync(LIBRARY);
  writeFileSync(path, library.subarray(0, library.length / 2));
  const { page, done } = await visit();
  await open(page, path);
  assert.ok((await faults(page)).some((words) => words.startsWith("damaged.so: ")), String(await faults(page)));
  for (const view of ["sizes", "entries", "cubins", "elf"]) await go(page, view);
  await open(page, CUBIN);
  assert.deepEqual(await faults(page), []);
  assert.ok((await page.locator("#kernels .row").count()) > 0);
  await done();
});

test("by keyboard alone", async () => {
  const { page, done } = await visit();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "open");
  const chosen = page.waitForEvent("filechooser");
  // what catches the chooser is on its way
  await page.waitForTimeout(500);
  await page.keyboard.press("Enter");
  const chooser = await chosen;
  await chooser.setFiles(CUBIN);
  await opened(page, basename(CUBIN));
  const reach = async (id) => {
    for (let step = 0; step < 60; step += 1) {
      if ((await page.evaluate(() => document.activeElement.id)) === id) return;
      await page.keyboard.press("Tab");
    }
    assert.fail(`${id} cannot be reached`);
  };
  await reach("view-cubins");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#cubins-table .row");
  await idle(page);
  await reach("cubins-search");
  for (let step = 0; step < 12; step += 1) {
    await page.keyboard.press("Tab");
    if ((await page.evaluate(() => document.activeElement.className)) === "scroller") break;
  }
  assert.equal(await page.evaluate(() => document.activeElement.className), "scroller");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("End");
  await page.waitForSelector("#cubin-detail img");
  assert.equal(await page.locator("#cubins-table [aria-selected=true]").count(), 1);
  await done();
});

test("light and dark, wide and narrow, on paper: nothing is cut, and nothing is wrong for who cannot see", async () => {
  for (const [name, options] of [["light", { colorScheme: "light" }], ["dark", { colorScheme: "dark" }], ["narrow", { viewport: { width: 375, height: 800 } }]]) {
    const { page, done } = await visit(options);
    const check = async (view) => {
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `${name}, ${view}: ${wide} pixels too wide`);
      const { violations } = await new AxeBuilder({ page }).analyze();
      assert.deepEqual(violations.map((one) => [view, one.id, one.nodes.map((node) => node.html)]), []);
    };
    await check("empty");
    await open(page, OLD, NEW);
    for (const view of ["compare", "space", "sizes", "entries", "cubins", "elf"]) {
      await go(page, view);
      await check(view);
      if (view === "space") await picture(page, name);
    }
    if (name === "dark") assert.equal(await page.getAttribute("html", "data-theme"), "dark");
    await page.click("#theme");
    assert.equal(await page.getAttribute("html", "data-theme"), name === "dark" ? "light" : "dark");
    await done();
  }
  const { page, done } = await visit();
  await open(page, CUBIN);
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.ok((await page.locator("#kernels .row").count()) > 0);
  assert.equal(await page.locator("#open").isVisible(), false);
  await picture(page, "print");
  // all rows and their headings are on it, and nothing is wider than a sheet
  const cut = await page.evaluate(() => {
    const box = (/** @type {string} */ selector) => document.querySelector(selector).getBoundingClientRect();
    const rows = [...document.querySelectorAll("#kernels .row")].map((row) => row.getBoundingClientRect());
    const end = box("#kernels .table").bottom + 1;
    return { rows: rows.length, below: rows.filter((row) => row.bottom > end || row.height < 8).length, head: box("#kernels .head button").height };
  });
  assert.ok(cut.rows === 5 && cut.below === 0 && cut.head > 8, JSON.stringify(cut));
  const pdf = await page.pdf({ format: "A4" });
  assert.ok(pdf.length > 10_000);
  await done();
});

test("names are text: of files, sections and symbols", async () => {
  const object = readFileSync(fixture("x86_64/elftest.o"));
  const markup = "<img src=x onerror=alert(1)>";
  // as many letters of a section's name as there are
  for (const name of [".note.GNU-stack", ".rela.text", ".shstrtab"]) {
    const at = object.indexOf(`${name}\0`);
    if (at > 0) object.write(markup.slice(0, name.length), at, "latin1");
  }
  const path = join(folder, "<img src=x onerror=alert(1)>.o");
  writeFileSync(path, object);
  const { page, done } = await visit();
  page.on("dialog", () => assert.fail("a script ran"));
  await open(page, path);
  await go(page, "elf");
  await page.waitForFunction(() => document.querySelector("#elf-map img")?.naturalWidth > 0);
  assert.equal(await page.locator("img:not(.picture)").count(), 0);
  assert.ok((await texts(page, "#elf-sections .cell:nth-child(2)")).some((name) => name.startsWith("<img")));
  assert.equal(await page.locator("#title").innerText(), basename(path));
  await done();
});

test("50,000 kernels are as many rows as are seen", async () => {
  const { page, done } = await visit();
  await open(page, CUBIN);
  await page.evaluate(() => {
    const [first] = data.kernels;
    data.names = Array.from({ length: 50_000 }, (_, index) => `kernel_${index}<float, ${index % 7}>`);
    data.kernels = data.names.map((_, index) => ({ ...first, name: index, code: (index * 7919) % 50_021 }));
    present();
  });
  assert.equal(await page.locator("#count").innerText(), "50,000 of 50,000");
  await page.$eval("#kernels .scroller", (scroller) => (scroller.scrollTop = scroller.scrollHeight));
  await page.waitForSelector("#kernels .row[aria-rowindex='50001']");
  assert.ok((await page.locator("#kernels .row").count()) < 60);
  await done();
});

test("nothing goes elsewhere: neither from the page nor from its worker", async () => {
  const { page, done } = await visit();
  await open(page, CUBIN);
  const page_ = await page.evaluate(async () => {
    const refused = new Promise((resolve) => addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective), { once: true }));
    await fetch("https://example.org/").catch(() => {});
    return refused;
  });
  assert.equal(page_, "connect-src");
  const [worker] = page.workers();
  const said = await worker.evaluate(async () => {
    const refused = new Promise((resolve) => addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective), { once: true }));
    await fetch("https://example.org/").catch(() => {});
    return refused;
  });
  assert.equal(said, "connect-src");
  await done().catch((error) => {
    // the refusals are told on the console, and nothing else is
    for (const fault of error.actual) assert.match(fault, /Content Security Policy|^https:\/\/example\.org\/$/);
  });
});
