// How long the page takes: `cargo xtask web --times FILE...` serves it, and runs this with PAGE set and the files as arguments.
import { execFileSync } from "node:child_process";
import { basename } from "node:path";
import { chromium } from "playwright-core";

const { PAGE = "" } = process.env;
const CHROMIUM = execFileSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).trim();
const quiet = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
const browser = await chromium.launch({ executablePath: CHROMIUM, args: quiet });

/** A new page, and milliseconds until something is painted. */
async function visit() {
  const page = await (await browser.newContext({ viewport: { width: 1200, height: 900 } })).newPage();
  page.setDefaultTimeout(600_000);
  await page.goto(PAGE);
  const paint = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
  const painted = await page.waitForFunction(paint);
  return { page, painted: await painted.jsonValue() };
}

/** The middle of several measurements. */
const middle = (all) => all.toSorted((one, other) => one - other)[Math.floor(all.length / 2)];

const paints = [];
for (let round = 0; round < 5; round += 1) {
  const { page, painted } = await visit();
  paints.push(painted);
  await page.context().close();
}
console.log(`first paint: ${Math.round(middle(paints))} ms`);
for (const file of process.argv.slice(2)) {
  const { page } = await visit();
  const start = performance.now();
  await page.setInputFiles("#files", file);
  const shown = (name) => document.body.dataset.opened === name && document.body.dataset.busy === "0";
  await page.waitForFunction(shown, basename(file));
  const seconds = (performance.now() - start) / 1000;
  const areas = await page.locator("#map svg > g").count();
  const faults = await page.locator("#faults li").allInnerTexts();
  console.log(`${basename(file)}: ${seconds.toFixed(2)} s to a map of ${areas} areas; ${[await page.locator("#status").innerText(), ...faults].join("; ")}`);
  await page.context().close();
}
await browser.close();
