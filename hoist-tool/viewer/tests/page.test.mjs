// The page in a browser: `cargo xtask viewer` writes one of the fixtures' code, and runs this with PAGE and PICTURES set.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "playwright-core";

const { PAGE = "", PICTURES = "" } = process.env;
const CHROMIUM = execFileSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).trim();
const html = readFileSync(PAGE, "utf8");
const [, head, json, tail] = /^(.*id="data">)(.*?)(<\/script>.*)$/s.exec(html) ?? [];
const data = { title: "", files: [], archs: [], names: [], families: [], images: [], kernels: [], curves: [], changes: null };
for (const line of json.trim().split("\n")) {
  for (const [key, value] of Object.entries(JSON.parse(line))) {
    if (Array.isArray(data[key])) data[key].push(value);
    else data[key] = value;
  }
}

/** The same page with other data. */
function variant(name, change) {
  const other = structuredClone(data);
  change(other);
  const path = join(PICTURES, `${name}.html`);
  const lines = Object.entries(other).flatMap(([key, value]) => (Array.isArray(value) ? value : [value]).map((one) => JSON.stringify({ [key]: one })));
  writeFileSync(path, head + lines.join("\n").replaceAll("<", "\\u003c") + tail);
  return path;
}

let browser;
before(async () => {
  const quiet = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
  browser = await chromium.launch({ executablePath: CHROMIUM, args: quiet });
});
after(() => browser?.close());

/** Opens a page; whatever it complains of, or asks of others, ends the test. */
async function open(path, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("request", (request) => request.url().startsWith("file:") || faults.push(request.url()));
  await page.goto(pathToFileURL(path).href);
  const done = async () => {
    await context.close();
    assert.deepEqual(faults, []);
  };
  return { page, done };
}

const texts = (page, selector) => page.locator(selector).allInnerTexts();
const column = async (page, index) => (await texts(page, `#kernels .row .cell:nth-child(${index})`));

test("all kernels are there, by name, architecture and number", async () => {
  const { page, done } = await open(PAGE);
  const all = data.kernels.length.toLocaleString("en");
  assert.equal(await page.locator("#count").innerText(), `${all} of ${all}`);
  await page.fill("#search", "scale");
  await page.waitForFunction((whole) => !document.querySelector("#count").value.startsWith(whole), all);
  for (const name of await column(page, 1)) assert.match(name, /scale/i);
  await page.fill("#search", "/^(scale|add).*$/");
  await page.waitForFunction(() => document.querySelector("#search").getAttribute("aria-invalid") === "false");
  await page.fill("#search", "/(/");
  await page.waitForSelector("#search[aria-invalid=true]");
  await page.fill("#search", "");
  await page.waitForFunction((words) => document.querySelector("#count").value === words, `${all} of ${all}`);
  const arch = data.archs[data.kernels[0].arch];
  await page.selectOption("#arch", arch);
  for (const found of await column(page, 2)) assert.equal(found, arch);
  await done();
});

test("columns are sorted, downwards and upwards", async () => {
  const { page, done } = await open(PAGE);
  const numbers = async () => (await column(page, 3)).map((text) => (text === "-" ? -1 : Number(text.replaceAll(",", ""))));
  await page.click("#kernels .head >> text=registers");
  const falling = await numbers();
  assert.deepEqual(falling, falling.toSorted((one, other) => other - one));
  assert.equal(await page.locator("#kernels [aria-sort=descending]").count(), 1);
  await page.click("#kernels .head >> text=registers");
  const rising = await numbers();
  assert.deepEqual(rising, rising.toSorted((one, other) => one - other));
  await done();
});

test("by keyboard alone", async () => {
  const { page, done } = await open(PAGE);
  await page.focus("#kernels .scroller");
  for (const key of ["ArrowDown", "ArrowDown", "End", "Home", "PageDown"]) await page.keyboard.press(key);
  assert.equal(await page.locator("#kernels [aria-selected=true]").count(), 1);
  const name = await page.locator("#kernels [aria-selected=true] .cell").first().innerText();
  assert.equal(await page.locator("#detail h3").innerText(), name);
  assert.equal(await page.locator("#detail svg polyline").count(), 1);
  const boxes = page.locator("#map g[role=button]");
  await boxes.first().focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("#path button").count(), 2);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#path button").count(), 1);
  await done();
});

test("the map has all bytes", async () => {
  const { page, done } = await open(PAGE);
  for (const order of ["0", "1", "2"]) {
    await page.selectOption("#order", order);
    const area = await page.$$eval("#map svg > g > rect", (all) =>
      all.reduce((sum, one) => sum + Number(one.getAttribute("width")) * Number(one.getAttribute("height")), 0));
    const whole = await page.$eval("#map svg", (picture) => picture.viewBox.baseVal.width * picture.viewBox.baseVal.height);
    assert.ok(Math.abs(area / whole - 1) < 1e-6, `${area} of ${whole}`);
  }
  await done();
});

test("light and dark, wide and narrow, on paper: nothing is cut, and nothing is wrong for who cannot see", async () => {
  for (const [name, options] of [
    ["light", { colorScheme: "light" }],
    ["dark", { colorScheme: "dark" }],
    ["narrow", { viewport: { width: 375, height: 800 } }],
  ]) {
    const { page, done } = await open(PAGE, options);
    if (name === "dark") assert.equal(await page.getAttribute("html", "data-theme"), "dark");
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `${name}: ${wide} pixels too wide`);
    await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
    const { violations } = await new AxeBuilder({ page }).analyze();
    assert.deepEqual(violations.map((one) => [one.id, one.nodes.map((node) => node.html)]), []);
    await done();
  }
  const { page, done } = await open(PAGE);
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  const rows = await page.locator("#kernels .row").count();
  assert.equal(rows, Math.min(200, data.kernels.length));
  await page.screenshot({ path: join(PICTURES, "print.png"), fullPage: true });
  await done();
});

test("names are text", async () => {
  const name = "<img src=x onerror=\"document.title='bad'\"></script><script>document.title='bad'</script>&lt;";
  const path = variant("markup", (other) => {
    other.title = name;
    for (const list of ["files", "names", "families"]) other[list] = other[list].map((_, index) => `${name}${index}`);
  });
  const { page, done } = await open(path);
  await page.focus("#kernels .scroller");
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.locator("script").count(), 2);
  assert.notEqual(await page.title(), "bad");
  assert.equal(await page.locator("#title").innerText(), name);
  assert.ok((await page.locator("#detail h3").innerText()).startsWith(name));
  await done();
});

test("50,000 kernels are as many rows as are seen", async () => {
  const path = variant("many", (other) => {
    const [first] = other.kernels;
    other.names = Array.from({ length: 50_000 }, (_, index) => `kernel_${index}<float, ${index % 7}>`);
    other.kernels = other.names.map((_, index) => ({ ...first, name: index, code: (index * 7919) % 50_021 }));
  });
  const { page, done } = await open(path);
  assert.equal(await page.locator("#count").innerText(), "50,000 of 50,000");
  const rows = async () => page.locator("#kernels .row").count();
  assert.ok((await rows()) < 60);
  await page.click("#kernels .head >> text=code");
  await page.$eval("#kernels .scroller", (scroller) => (scroller.scrollTop = scroller.scrollHeight));
  await page.waitForSelector("#kernels .row[aria-rowindex='50001']");
  assert.ok((await rows()) < 60);
  await page.fill("#search", "kernel_4999<");
  await page.waitForFunction(() => document.querySelector("#count").value.startsWith("1 "));
  await done();
});

test("what changed is a table, too", async () => {
  const needs = { registers: 32, shared: 0, stack: 0, local: 0, code_size: 1000 };
  const path = variant("changes", (other) => {
    const change = { name: "k", demangled: "k<int>", arch: "sm_90", file: "a.so" };
    other.changes = {
      added: [{ ...change, old: null, new: needs }],
      gone: [{ ...change, old: needs, new: null }],
      changed: [{ ...change, old: needs, new: { ...needs, registers: 40 } }],
      same: 12, code_before: 2000, code_after: 2000,
    };
  });
  const { page, done } = await open(path);
  assert.match(await page.locator("#changes-sum").innerText(), /^1 kernel added, 1 gone, 1 changed, 12 the same/);
  assert.ok((await texts(page, "#changes .cell")).includes("32 \u2192 40"));
  await done();
});

test("a page without code says so", async () => {
  const path = variant("empty", (other) => Object.assign(other, { files: [], images: [], kernels: [], curves: [] }));
  const { page, done } = await open(path);
  assert.equal(await page.locator("#count").innerText(), "0 of 0");
  await done();
});
