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
    const each = block.querySelectorAll("tbody").length;
    const shown = rows.filter((row) => !row.hidden).length / each;
    told.textContent = words.length ? `${shown} of ${rows.length / each} rows` : "";
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

// Figures are drawn again, as they stand, by the script that filters them when a name of a legend is
// pressed; a point that is pressed shows its trace.
// For those who press keys the names of a legend are boxes below the figure, seen when one is reached.
const boxes = (place, label, chart, view) => {
  const pressed = (chart.params ?? []).find((one) => one.name === "pressed");
  if (!pressed) return;
  const fields = [{ type: "E", field: pressed.select.fields[0] }];
  let names = [];
  JSON.stringify(chart, (_, part) => {
    // what is in no group has no name, and no box
    if (part?.field === fields[0].field && part.scale?.domain) names = part.scale.domain.filter((name) => name !== "");
    return part;
  });
  const set = document.createElement("fieldset"), title = document.createElement("legend");
  set.className = "keys unseen";
  title.textContent = `Show alone in ${label}`;
  set.append(title);
  const made = names.map((name) => {
    const told = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    told.append(box, ` ${name}`);
    set.append(told);
    return box;
  });
  set.addEventListener("change", () => {
    const chosen = names.filter((_, i) => made[i].checked);
    view.data("pressed_store", chosen.map((name) => ({ fields, values: [name] }))).runAsync();
  });
  // what the pointer pressed is checked, too
  view.addDataListener("pressed_store", (_, rows) => {
    made.forEach((box, i) => { box.checked = rows.some((row) => row.values[0] === names[i]); });
  });
  place.after(set);
};
const draw = (place) => {
  const chart = JSON.parse(place.querySelector("script").textContent), label = place.getAttribute("aria-label");
  // errors alone: a figure may have no interval, which is no fault
  const options = { mode: "vega-lite", renderer: "svg", actions: false, logLevel: 1 };
  // drawn here it may be wider, with the same letters
  const still = place.querySelector("svg"), least = parseFloat(still.style.minWidth) / still.viewBox.baseVal.width;
  vegaEmbed(place, { description: label, ...chart }, options).then(({ view }) => {
    const svg = place.querySelector("svg");
    svg.style.minWidth = `${Math.ceil(least * svg.viewBox.baseVal.width)}px`;
    boxes(place, label, chart, view);
    view.addEventListener("click", (event, item) => { if (item?.datum?.trace) trace({ dataset: item.datum }); });
  });
};
if (window.vegaEmbed) document.querySelectorAll(".drawn").forEach(draw);
