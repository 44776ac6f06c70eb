"use strict";
/** Appends a new element, with text if there is any, to a parent element. */
const make = (name, parent, text) => {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
};

/** Returns the value by which a cell is sorted: its number if it has one, else its text; null if it is empty or a dash. */
const sortValue = (row, column) => {
  const cell = row.cells[column];
  if (cell.dataset.v !== undefined) return +cell.dataset.v;
  const text = cell.textContent.trim();
  return text === "–" || text === "" ? null : text;
};

/** Compares two sort values, numbers as numbers and all else as text. Missing values come last in either order. */
const compareValues = (a, b, sign) => {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * String(a).localeCompare(String(b), "en", { numeric: true });
};

/** Makes the headers of a table sort it. The first click sorts numbers from the greatest and text from A; each further click reverses the order. */
function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.querySelector("tbody.rows");
  heads.forEach((head, column) =>
    head.querySelector("button").addEventListener("click", () => {
      const rows = [...body.rows];
      const isNumeric = rows.some((row) => row.cells[column].dataset.v !== undefined);
      const now = head.getAttribute("aria-sort");
      const next = now === "none" ? (isNumeric ? "descending" : "ascending") : now === "ascending" ? "descending" : "ascending";
      heads.forEach((other) => other.setAttribute("aria-sort", other === head ? next : "none"));
      const sign = next === "ascending" ? 1 : -1;
      // Sorting is stable, so equal rows keep their previous order.
      rows.sort((a, b) => compareValues(sortValue(a, column), sortValue(b, column), sign));
      body.append(...rows);
    })
  );
}

document.querySelectorAll("table.sortable").forEach(sortable);
