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
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { crc32 } from "node:zlib";
import { chromium } from "playwright-core";

const root = resolve(import.meta.dirname, "../..");
const lab = process.env.COWITNESS_LAB ?? join(root, "target/release/cowitness-lab");
const data = join(root, "lab/tests/data");
const more = (process.env.REPORT_FILES ?? "").split(" ").filter(Boolean);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const shots = join(import.meta.dirname, "shots");
const desk = { width: 1200, height: 900 };
const phone = { width: 390, height: 844 };

// As many kinds and readers as `probe` may know, on two kernels that know different ones: the
// rows of probe.csv under other names, sealed anew.
const kinds = () => {
  const lines = readFileSync(join(data, "probe.csv"), "utf8").trimEnd().split("\n");
  const start = lines.findIndex((line) => line.startsWith("record,"));
  const row = lines.find((line) => line.includes(",prot-none,proc,"));
  const stream = (kernel, count, readers) => {
    const rows = Array.from({ length: count }, (_, kind) => readers.map((reader) => row
      .replace(",prot-none,proc,", `,a-kind-with-a-name-${kind},${reader},`)
      .replace("6.1.0-test", kernel)
      .replace(",4096,4096,,ok,", kind % 3 === count % 3 ? ",4096,,EIO,," : ",4096,4096,,ok,"))).flat();
    const body = [lines[start], ...rows].map((line) => `${line}\n`).join("");
    const head = ["#cowitness 1", "#command=probe", `#rows=${rows.length}`].join("\n");
    return `${head}\n${body}#end rows=${rows.length} crc32=${crc32(body).toString(16).padStart(8, "0")}\n`;
  };
  const readers = ["proc", "proc-seek", "vmread", "vmread-batch", "ptrace", "kcore", "map-files", "hybrid"];
  const file = join(scratch, "kinds.csv");
  writeFileSync(file, stream("6.1.0-test", 45, readers) + stream("5.10.0-test", 31, readers.slice(0, 5)));
  return file;
};

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
  make("others", ["bench.csv", "survey.csv", "audit.csv", "memmap.csv", "sharing.csv", "startup.csv", "slope.csv",
    "sizes.csv", "published.csv"]);
  make("odd", ["markup-others.csv"]);
  make("kinds", [kinds()]);
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
  assert.equal(lines[1], "contiguous,4096,warm,vmread,6,3125.00,3125.00,3125.00,3125.00,3125.00,3125.00,0");
});

test("axe-core finds no violation, light and dark, on a desk and on a phone", async (t) => {
  for (const colorScheme of ["light", "dark"]) {
    for (const [size, viewport] of Object.entries({ desk, phone })) {
      for (const name of ["one", "several", "markup", "others", "odd", "kinds"]) {
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
      for (const name of ["several", "others", "kinds"]) {
        const page = await visit(t, name, { viewport, colorScheme });
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(width <= viewport.width, `${name}, ${size}: ${width}`);
        const path = join(shots, `${name}-${size}-${colorScheme}.png`);
        const picture = await page.screenshot({ path, fullPage: true });
        assert.ok(picture.length > 50_000, "a picture of something");
      }
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

test("sections that are drawn have marks, lines and a table beneath", async (t) => {
  const page = await visit(t, "others");
  for (const [id, lines, marks, table] of [
    ["sharing", 2, 8, "sharing"], ["startup", 4, 12, "startup-points"], ["sizes", 4, 24, "sizes"],
  ]) {
    const section = page.locator(`#${id}`);
    assert.equal(await section.locator(".plot polyline").count(), lines, id);
    assert.equal(await section.locator(".frame use").count(), marks, id);
    // Each series has its own mark and dashes: colour comes on top.
    const looks = await section.locator(".plot").first().locator(".keys use")
      .evaluateAll((all) => all.map((one) => one.getAttribute("href")));
    assert.equal(new Set(looks).size, looks.length, id);
    const [chart, rows] = [section.locator(".plot").last(), section.locator(`table[data-name="${table}"]`)];
    assert.ok((await chart.boundingBox()).y < (await rows.boundingBox()).y, id);
  }
  // A mark stands where its value is: 5200, 2800, 1600, 1000 KiB of an axis that ends at 6000.
  const frame = page.locator("#sharing .frame > svg").nth(1);
  const box = await frame.boundingBox();
  const marks = frame.locator("use.k-0");
  for (const [index, kib] of [5200, 2800, 1600, 1000].entries()) {
    const mark = await marks.nth(index).boundingBox();
    const [x, y] = [mark.x + mark.width / 2 - box.x, mark.y + mark.height / 2 - box.y];
    assert.ok(Math.abs(x / box.width - index / 3) < 0.01, `${index}: ${x / box.width}`);
    assert.ok(Math.abs(y / box.height - (1 - kib / 6000)) < 0.01, `${index}: ${y / box.height}`);
  }
});

test("a machine without rows of a section says so, and files stay", async (t) => {
  const page = await visit(t, "others");
  const notes = page.locator(".nothing:visible");
  assert.equal(await notes.count(), 0);
  await page.locator("#run").selectOption({ index: 1 });
  assert.equal(await notes.count(), 5);
  assert.ok(await page.locator("#sharing .nothing").isVisible());
  assert.ok(await page.locator("#sizes .plot").isVisible());
  await page.locator("#run").focus();
  await page.keyboard.press("ArrowUp");
  assert.equal(await notes.count(), 0);
});

test("tables of the new sections are sorted and copied", async (t) => {
  const page = await visit(t, "others", { permissions: ["clipboard-read", "clipboard-write"] });
  const table = page.locator('table[data-name="sharing"]');
  const medians = async () => (await table.locator("tbody tr td:nth-child(5)").allTextContents()).map(Number);
  await table.getByRole("button", { name: "median" }).focus();
  await page.keyboard.press("Enter");
  assert.deepEqual(await medians(), (await medians()).toSorted((a, b) => a - b));
  await page.locator("#memmap").getByRole("button", { name: "Copy as CSV" }).click();
  await page.getByText("Copied", { exact: true }).waitFor();
  const lines = (await page.evaluate(() => navigator.clipboard.readText())).trimEnd().split("\n");
  assert.equal(lines[1], "heap,none,67108864,16384,2,16384 to 16385,1.00,0,65536,0,,1,madvise,64 KiB,");
});

test("a large probe table keeps its headings in view, by mouse and by keyboard", async (t) => {
  for (const viewport of [desk, phone]) {
    const page = await visit(t, "kinds", { viewport });
    const region = page.getByRole("region", { name: /^Semantics/ }).first();
    const table = region.locator("table");
    assert.equal(await table.locator("tbody tr").count(), 45);
    await region.focus();
    for (let press = 0; press < 12; press += 1) await page.keyboard.press("PageDown");
    for (let press = 0; press < 10; press += 1) await page.keyboard.press("ArrowRight");
    await page.waitForFunction((one) => one.scrollTop > 200, await region.elementHandle());
    // In one go: the page may still be moving.
    const [box, heading, kind] = await region.evaluate((one) => {
      const kinds = [...one.querySelectorAll("tbody th:first-child")];
      return [one, one.querySelector("thead th"), kinds.at(-1)].map((element) => element.getBoundingClientRect().toJSON());
    });
    assert.ok(Math.abs(heading.y - box.y) < 3 && Math.abs(heading.x - box.x) < 3, JSON.stringify([box, heading]));
    assert.ok(Math.abs(kind.x - box.x) < 3, JSON.stringify([box, kind]));
    if (viewport === phone) assert.ok(await region.evaluate((one) => one.scrollLeft) > 0);
  }
});

test("machines that know different kinds are compared where both were asked", async (t) => {
  const page = await visit(t, "kinds");
  const rows = page.locator('table[data-name="differences"] tbody tr');
  // Of the 31 kinds that both know, every third is refused on one (0, 3, ...), and every third on
  // the other (1, 4, ...): 21 differ, by five readers each.
  assert.equal(await rows.count(), 21 * 5);
  assert.ok(await page.getByText("105 of 155 questions").isVisible());
});

test("the kernels table fits a desk", async (t) => {
  const page = await visit(t, "several", { viewport: { width: 1280, height: 900 } });
  const region = page.getByRole("region", { name: "Machines side by side" });
  const [inner, outer] = await region.evaluate((one) => [one.scrollWidth, one.clientWidth]);
  assert.ok(inner <= outer, `${inner} of ${outer}`);
});

test("names from other records are text", async (t) => {
  const page = await visit(t, "odd");
  assert.equal(await page.locator("script").count(), 1);
  assert.equal(await page.locator("img, main b, main i, main u").count(), 0);
  assert.ok(await page.getByText("<script>alert(1)</script>").first().isVisible());
});
