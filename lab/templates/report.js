"use strict";
// Everything is in the page already; this chooses what is shown, sorts tables and copies
// them. Without it all of it is shown.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const say = (text) => { document.getElementById("said").textContent = text; };
  document.documentElement.classList.add("scripting");

  // A section that has nothing of the machine shown says so.
  const empty = all("main > section").filter((section) => all("[data-run]", section).length > 0)
    .map((section) => {
      const note = document.createElement("p");
      note.className = "note nothing";
      note.textContent = "There are no such rows of the machine shown.";
      section.append(note);
      return { note, views: all("[data-run]", section) };
    });

  const chosen = { run: "0", layout: null, phase: "cold" };
  const show = () => {
    for (const view of all("[data-run]")) {
      view.hidden = view.dataset.run !== chosen.run;
      const charts = all(".chart", view);
      for (const chart of charts) {
        const layout = chosen.layout === null || chart.dataset.layout === chosen.layout;
        chart.hidden = !(layout && chart.dataset.phase === chosen.phase);
      }
      for (const note of all(".absent", view)) {
        note.hidden = charts.length === 0 || charts.some((chart) => !chart.hidden);
      }
    }
    for (const { note, views } of empty) note.hidden = views.some((view) => !view.hidden);
  };
  for (const name of ["layout", "phase"]) {
    for (const radio of all(`input[name="${name}"]`)) {
      if (radio.checked) chosen[name] = radio.value;
      radio.addEventListener("change", () => { chosen[name] = radio.value; show(); });
    }
  }
  const run = document.getElementById("run");
  if (run) {
    chosen.run = run.value;
    run.addEventListener("change", () => { chosen.run = run.value; show(); });
  }
  show();

  const value = (cell) => cell.dataset.v ?? cell.textContent.trim();
  const compare = (a, b) => {
    const [x, y] = [Number(a), Number(b)];
    const numbers = a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y);
    return numbers ? x - y : a.localeCompare(b, "en", { numeric: true });
  };
  const sort = (table, index, heading) => {
    const up = heading.getAttribute("aria-sort") !== "ascending";
    const body = table.tBodies[0];
    const key = (row) => value(row.cells[index]);
    const rows = [...body.rows].sort((a, b) => (up ? 1 : -1) * compare(key(a), key(b)));
    for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    body.append(...rows);
    say(`Sorted by ${heading.textContent}, ${up ? "ascending" : "descending"}`);
  };
  for (const table of all("table.data")) {
    for (const [index, heading] of all("thead th", table).entries()) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sort(table, index, heading));
    }
  }

  const field = (text) => /[",\r\n#]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const csv = (table) => {
    const rows = [table.tHead, ...table.tBodies].flatMap((part) => [...part.rows]);
    return rows.map((row) => [...row.cells].map((cell) => field(value(cell))).join(",") + "\n").join("");
  };
  const byHand = (text) => {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  };
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return byHand(text);
    }
  };
  for (const table of all("table.data")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy as CSV";
    button.addEventListener("click", async () => {
      const copied = await copy(csv(table));
      say(copied ? "Copied as CSV" : "Copying is not allowed here");
      button.textContent = copied ? "Copied" : "Not allowed";
      setTimeout(() => { button.textContent = "Copy as CSV"; }, 1500);
    });
    table.closest(".scroll").before(button);
  }

  // Paper shows what is behind switches, too.
  let open = [];
  addEventListener("beforeprint", () => {
    for (const hidden of all("[data-run], .chart")) hidden.hidden = false;
    for (const { note } of empty) note.hidden = true;
    open = all("details:not([open])");
    for (const details of open) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of open) details.open = false;
    show();
  });
})();
