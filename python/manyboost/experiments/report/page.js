"use strict";
// Every heading of a table becomes a button that sorts by its column; missing values stay last.
for (const table of document.querySelectorAll("table.data")) {
  const heads = [...table.querySelectorAll("th[data-column]")];
  const body = table.tBodies[0];
  for (const head of heads) {
    const column = Number(head.dataset.column);
    const numeric = head.classList.contains("number");
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);

    const key = (row) => {
      const value = row.cells[column].dataset.value;
      return value === undefined || !numeric ? value : Number(value);
    };
    const compare = (a, b) => (numeric ? a - b : a.localeCompare(b, "en", { numeric: true }));

    button.addEventListener("click", () => {
      const first = numeric ? "descending" : "ascending";
      const other = numeric ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      const sign = order === "ascending" ? 1 : -1;
      const rows = [...body.rows];
      const present = rows.filter((row) => key(row) !== undefined);
      const missing = rows.filter((row) => key(row) === undefined);
      present.sort((a, b) => sign * compare(key(a), key(b)));
      body.append(...present, ...missing);
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order);
    });
  }
}
