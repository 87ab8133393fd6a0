// Pictures of the page beside those that a person has looked at: of each, how bright it is in a grid of few cells. Fonts and versions of a
// browser change little of that; a view that is empty, cut or in the wrong place changes much.
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const { RECORD = "", PICTURES_SEEN = "" } = process.env;
const COLUMNS = 24;
/** The most that a cell may differ by, on average, of 255; and by how many hundredths the height. */
const [MEAN, HEIGHT] = [8, 6];

/** Brightness in a grid over a picture, a byte a cell, row by row; and how tall it is for its width, in hundredths. */
async function grid(browser, png) {
  const page = await browser.newPage();
  const found = await page.evaluate(async ([png, columns]) => {
    const image = new Image();
    image.src = `data:image/png;base64,${png}`;
    await image.decode();
    const rows = Math.max(1, Math.round((columns * image.height) / image.width));
    const canvas = Object.assign(document.createElement("canvas"), { width: columns, height: rows });
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, columns, rows);
    const { data } = context.getImageData(0, 0, columns, rows);
    const cells = Array.from({ length: columns * rows }, (_, cell) => Math.round((data[4 * cell] + data[4 * cell + 1] + data[4 * cell + 2]) / 3));
    return { tall: Math.round((100 * image.height) / image.width), cells };
  }, [png, COLUMNS]);
  await page.close();
  return found;
}

/** Whether a picture is as it was when it was recorded; with RECORD set, records it. */
export async function alike(browser, name, png) {
  const now = await grid(browser, png);
  const seen = existsSync(PICTURES_SEEN) ? JSON.parse(readFileSync(PICTURES_SEEN, "utf8")) : {};
  if (RECORD) {
    seen[name] = { tall: now.tall, cells: Buffer.from(now.cells).toString("base64") };
    writeFileSync(PICTURES_SEEN, `${JSON.stringify(seen, Object.keys(seen).sort().concat("tall", "cells"), 1)}\n`);
    return;
  }
  const then = seen[name];
  assert.ok(then, `${name} is not among the pictures that were seen`);
  assert.ok(Math.abs(now.tall - then.tall) * 100 <= HEIGHT * then.tall, `${name} is ${now.tall} hundredths tall, and was ${then.tall}`);
  const cells = Buffer.from(then.cells, "base64");
  const common = Math.min(cells.length, now.cells.length);
  const sum = now.cells.slice(0, common).reduce((sum, cell, at) => sum + Math.abs(cell - cells[at]), 0);
  assert.ok(sum / common <= MEAN, `${name} differs by ${(sum / common).toFixed(1)} of 255 on average`);
}
