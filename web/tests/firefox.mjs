// The page in Firefox: `cargo xtask web --firefox` serves it, and runs this with PAGE, FIXTURES and PICTURES set.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import puppeteer from "puppeteer-core";

const { PAGE = "", FIXTURES = "", PICTURES = "" } = process.env;
const FIREFOX = execFileSync("sh", ["-c", "command -v firefox || command -v firefox-esr"], { encoding: "utf8" }).trim();
const fixture = (name) => join(FIXTURES, name);
const LIBRARY = fixture("fatbin/libt.so");
const [OLD, NEW] = ["cuda/arrays-13.5-sm_80.cubin", "cuda/kernels-13.5-sm_80.cubin"].map(fixture);

let browser;
before(async () => {
  browser = await puppeteer.launch({ browser: "firefox", executablePath: FIREFOX, headless: true });
});
after(async () => await browser?.close());

async function visit() {
  const page = await browser.newPage();
  await page.setViewport({ width: 1200, height: 900 });
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  await page.goto(PAGE);
  const done = async () => {
    await page.close();
    assert.deepEqual(faults, []);
  };
  return { page, done };
}

const idle = (page, names) =>
  page.waitForFunction((wanted) => document.body.dataset.opened === wanted && document.body.dataset.busy === "0", {}, names);

async function open(page, ...files) {
  const input = await page.$("#files");
  await input.uploadFile(...files);
  await idle(page, files.map((file) => file.split("/").at(-1)).join("/"));
}

const count = (page, selector) => page.$$eval(selector, (all) => all.length);
const faults = (page) => page.$$eval("#faults li", (all) => all.map((one) => one.textContent));

test("every view of a library", async () => {
  const { page, done } = await visit();
  await open(page, LIBRARY);
  assert.deepEqual(await faults(page), []);
  assert.ok((await count(page, "#map svg > g")) > 0);
  for (const view of ["sizes", "entries", "cubins", "elf"]) {
    await page.click(`#view-${view}`);
    await page.waitForSelector(`#view-${view}[aria-current=page]`);
    await idle(page, "libt.so");
    assert.ok((await count(page, `#${view} .row`)) > 0, view);
    await page.screenshot({ path: join(PICTURES, `firefox-${view}.png`), fullPage: true });
  }
  await done();
});

test("two files are compared", async () => {
  const { page, done } = await visit();
  await open(page, OLD, NEW);
  await page.click("#view-compare");
  await page.waitForSelector("#view-compare[aria-current=page]");
  assert.ok((await count(page, "#compare .row")) > 0);
  await done();
});

test("files are dropped", async () => {
  const { page, done } = await visit();
  const bytes = readFileSync(LIBRARY).toString("base64");
  await page.evaluate((bytes) => {
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(atob(bytes), (one) => one.charCodeAt(0))], "libt.so"));
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
  }, bytes);
  await idle(page, "libt.so");
  assert.ok((await count(page, "#kernels .row")) > 0);
  await done();
});
