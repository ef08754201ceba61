// Drives a report in headless Chromium: every switch by mouse and by keyboard, sorting, copying,
// printing, no script, a phone, dark mode; axe-core finds no violation; nothing leaves the page.
//
//     npm ci && npm test
//
// COWITNESS_LAB is the program (target/release/cowitness-lab), CHROMIUM the browser
// (/usr/bin/chromium), REPORT_FILES more inputs for the page of several machines. Screenshots
// are left in shots/, to be looked at.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const root = resolve(import.meta.dirname, "../..");
const lab = process.env.COWITNESS_LAB ?? join(root, "target/release/cowitness-lab");
const data = join(root, "lab/tests/data");
const more = (process.env.REPORT_FILES ?? "").split(" ").filter(Boolean);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const shots = join(import.meta.dirname, "shots");
const desk = { width: 1200, height: 900 };
const phone = { width: 390, height: 844 };

let browser;
let scratch;
const pages = {};

const make = (name, files) => {
  const out = join(scratch, `${name}.html`);
  execFileSync(lab, ["report", "-o", out, ...files], { cwd: data, stdio: "pipe" });
  pages[name] = pathToFileURL(out).href;
};

before(async () => {
  scratch = mkdtempSync(join(tmpdir(), "cowitness-browser-"));
  mkdirSync(shots, { recursive: true });
  make("one", ["two-layouts.csv", "probe.csv"]);
  make("several", ["two-layouts.csv", "probe.csv", "published.csv", "console.log", ...more]);
  make("markup", ["markup.csv"]);
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
});

after(async () => {
  await browser?.close();
  rmSync(scratch, { recursive: true, force: true });
});

// Opens a page that must stay silent: no message on the console, no error, no request but
// the page's own.
const visit = async (t, name, options = {}) => {
  const context = await browser.newContext({ viewport: desk, ...options });
  const page = await context.newPage();
  const heard = [];
  page.on("console", (message) => heard.push(message.text()));
  page.on("pageerror", (error) => heard.push(String(error)));
  page.on("dialog", (dialog) => { heard.push(dialog.message()); dialog.dismiss(); });
  page.on("request", (request) => {
    if (request.url() !== pages[name] && !request.url().startsWith("data:")) heard.push(request.url());
  });
  await page.goto(pages[name]);
  t.after(async () => {
    await context.close();
    assert.deepEqual(heard, []);
  });
  return page;
};

const shown = (page) => page.locator(".chart:visible").evaluateAll(
  (charts) => charts.map((chart) => `${chart.dataset.layout}, ${chart.dataset.phase}`));

const check = async (page, name) => {
  // The page's policy keeps scripts out; a tester's comes by the debugger, which may.
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  const told = found.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).slice(0, 3)}`);
  assert.deepEqual(told, [], name);
  assert.ok(found.passes.length > 20, "axe has looked at something");
};

test("switches work by mouse", async (t) => {
  const page = await visit(t, "one");
  assert.deepEqual(await shown(page), ["contiguous, cold"]);
  await page.getByRole("radio", { name: "warm (further reads)" }).click();
  assert.deepEqual(await shown(page), ["contiguous, warm"]);
  await page.getByRole("radio", { name: "vma S=16" }).click();
  assert.deepEqual(await shown(page), ["vma S=16, warm"]);
  await page.getByRole("radio", { name: "cold (first read)" }).click();
  assert.deepEqual(await shown(page), ["vma S=16, cold"]);
});

test("switches work by keyboard alone", async (t) => {
  const page = await visit(t, "several");
  const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.name);
  const reach = async (name) => {
    for (let step = 0; step < 40 && await focused() !== name; step += 1) await page.keyboard.press("Tab");
    assert.equal(await focused(), name);
  };
  await reach("run");
  const heading = () => page.locator("#copy-on-write h3:visible").innerText();
  const first = await heading();
  await page.keyboard.press("ArrowDown");
  assert.notEqual(await heading(), first);
  await page.keyboard.press("ArrowUp");
  assert.equal(await heading(), first);
  await reach("layout");
  await page.keyboard.press("ArrowRight");
  assert.deepEqual(await shown(page), ["vma S=16, cold"]);
  await reach("phase");
  await page.keyboard.press("ArrowRight");
  assert.deepEqual(await shown(page), ["vma S=16, warm"]);
});

test("every machine can be chosen, and all sections follow", async (t) => {
  const page = await visit(t, "several");
  const options = await page.locator("#run option").allTextContents();
  assert.ok(options.length >= 3, options.join());
  for (const [index, option] of options.entries()) {
    await page.locator("#run").selectOption({ index });
    const headings = await page.locator("[data-run] > h3:visible").allTextContents();
    assert.ok(headings.length > 0);
    assert.deepEqual([...new Set(headings)], [option]);
  }
  // Machine 2 has one layout only; the other says so.
  await page.locator("#run").selectOption({ index: 1 });
  await page.getByRole("radio", { name: "vma S=16" }).click();
  assert.deepEqual(await shown(page), []);
  assert.ok(await page.getByText("This layout was not measured here.").locator("visible=true").isVisible());
});

test("tables are sorted by their headings and copied as CSV", async (t) => {
  const page = await visit(t, "one", { permissions: ["clipboard-read", "clipboard-write"] });
  const table = page.locator('table[data-name="throughput"]');
  const medians = () => table.locator("tbody tr td:nth-child(8)").allTextContents();
  const numbers = async () => (await medians()).map(Number);
  const button = table.getByRole("button", { name: "median" });
  await button.click();
  assert.deepEqual(await numbers(), (await numbers()).toSorted((a, b) => a - b));
  assert.equal(await table.locator("th[aria-sort]").getAttribute("aria-sort"), "ascending");
  await button.focus();
  await page.keyboard.press("Enter");
  assert.deepEqual(await numbers(), (await numbers()).toSorted((a, b) => b - a));
  assert.equal(await page.getByRole("status").textContent(), "Sorted by median, descending");

  await page.locator("#throughput").getByRole("button", { name: "Copy as CSV" }).click();
  await page.getByText("Copied", { exact: true }).waitFor();
  const lines = (await page.evaluate(() => navigator.clipboard.readText())).trimEnd().split("\n");
  assert.equal(lines[0], "layout,block,pass,method,N,min,P25,median,P75,P95,max,outliers");
  assert.equal(lines.length, 1 + await table.locator("tbody tr").count());
  assert.equal(lines[1], "contiguous,4096,warm,vmread,6,3125,3125,3125,3125,3125,3125,0");
});

test("axe-core finds no violation, light and dark, on a desk and on a phone", async (t) => {
  for (const colorScheme of ["light", "dark"]) {
    for (const [size, viewport] of Object.entries({ desk, phone })) {
      for (const name of ["one", "several", "markup"]) {
        const page = await visit(t, name, { viewport, colorScheme });
        await page.locator("details").evaluateAll((all) => { for (const one of all) one.open = true; });
        await check(page, `${name}, ${colorScheme}, ${size}`);
      }
    }
  }
});

test("nothing is wider than the window, and the page is photographed", async (t) => {
  for (const colorScheme of ["light", "dark"]) {
    for (const [size, viewport] of Object.entries({ desk, phone })) {
      const page = await visit(t, "several", { viewport, colorScheme });
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= viewport.width, `${size}: ${width}`);
      const path = join(shots, `${size}-${colorScheme}.png`);
      const picture = await page.screenshot({ path, fullPage: true });
      assert.ok(picture.length > 50_000, "a picture of something");
    }
  }
});

test("without scripts everything is there", async (t) => {
  const page = await visit(t, "several", { javaScriptEnabled: false });
  assert.ok(await page.locator(".chart").count() > 4);
  assert.equal(await page.locator(".chart:visible").count(), await page.locator(".chart").count());
  assert.equal(await page.locator(".switches:visible").count(), 0);
});

test("paper shows what is behind switches", async (t) => {
  const page = await visit(t, "several");
  const pdf = await page.pdf();
  assert.ok(pdf.length > 30_000, `${pdf.length}`);
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.equal(await page.locator(".chart:visible").count(), await page.locator(".chart").count());
  assert.equal(await page.locator("nav:visible").count(), 0);
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  assert.deepEqual(await shown(page), ["contiguous, cold"]);
});

test("names from a file are text", async (t) => {
  const page = await visit(t, "markup");
  assert.equal(await page.locator("script").count(), 1);
  assert.equal(await page.locator("img, main b, main i, main u").count(), 0);
  await page.locator("details").evaluateAll((all) => { for (const one of all) one.open = true; });
  assert.ok(await page.getByText("<script>alert(1)</script>").first().isVisible());
});
