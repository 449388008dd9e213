// Sorting: a press on a column's head sorts its rows, a second press turns them round.
// Numbers sort downwards first, text upwards; cells without a value stay last either way.
document.querySelectorAll("table.sortable").forEach((table) => {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const numeric = head.classList.contains("num");
      const before = head.getAttribute("aria-sort");
      const first = numeric ? "descending" : "ascending";
      const second = numeric ? "ascending" : "descending";
      const next = before === first ? second : first;
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", next);
      const sign = next === "ascending" ? 1 : -1;
      const key = (row) => row.cells[column].dataset.sort;
      const compare = (a, b) => {
        const x = key(a), y = key(b);
        if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
        const order = numeric ? x - y : x.localeCompare(y, "en", { numeric: true });
        return sign * order;
      };
      body.append(...[...body.rows].sort(compare));
    });
  });
});

// Filtering: rows that have every word that was typed.
document.querySelectorAll(".filter input").forEach((input) => {
  const block = input.closest(".block"), told = block.querySelector(".filter [role=status]");
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...block.querySelectorAll("tbody tr")];
    rows.forEach((row) => {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    });
    const shown = rows.filter((row) => !row.hidden).length;
    told.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  });
});

// Where a number comes from: one that is pressed, or reached by the arrow keys inside its table,
// shows the command that leads to its rows.
const bar = document.getElementById("trace");
const [copy, close] = bar.querySelectorAll("button");
const show = (command) => {
  bar.firstChild.textContent = command;
  copy.textContent = "Copy";
  bar.hidden = false;
};
const trace = (cell) => {
  const told = `${cell.dataset.trace} `, place = told.indexOf(" "), number = told.slice(0, place);
  const where = `${told.slice(place)} --run ${document.body.dataset.run}`;
  // a negative number looks like an option
  show(number.startsWith("-") ? `kgprobe trace${where} -- ${number}` : `kgprobe trace ${number}${where}`);
};
close.addEventListener("click", () => { bar.hidden = true; });
copy.addEventListener("click", () => {
  getSelection().selectAllChildren(bar.firstChild);
  copy.textContent = document.execCommand("copy") ? "Copied" : "Marked";
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-command]"), cell = event.target.closest("[data-trace]");
  if (button) show(button.dataset.command);
  else if (cell && !event.target.closest("a")) trace(cell);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") bar.hidden = true;
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  const cell = event.target.closest?.("tbody td, tbody th");
  if (!step || !cell) return;
  const rows = [...cell.closest("tbody").rows].filter((row) => !row.hidden);
  const next = rows[rows.indexOf(cell.parentElement) + step[0]]?.cells[cell.cellIndex + step[1]];
  if (!next) return;
  event.preventDefault();
  cell.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});
document.addEventListener("focusin", (event) => {
  const cell = event.target.closest("[data-trace]");
  if (cell && event.target.matches("td, th")) trace(cell);
});
document.querySelectorAll("tbody").forEach((body) => {
  const first = body.querySelector("[data-trace]");
  if (first) first.tabIndex = 0;
});

// A link into something folded opens it; everything is open on paper.
const reach = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let place = target; place; place = place.parentElement) if (place.open === false) place.open = true;
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", reach);
reach();
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
