"use strict";
/** A new element at the end of another one, with text. */
const make = (name, parent, text) => {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
};

/** The value that a cell is sorted by: a number where it has one, else its text. */
const sortValue = (row, column) => {
  const cell = row.cells[column];
  if (cell.dataset.v !== undefined) return +cell.dataset.v;
  const text = cell.textContent.trim();
  return text === "–" || text === "" ? null : text;
};

/** Text against text, number against number; what is missing comes last in either order. */
const compareValues = (a, b, sign) => {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * String(a).localeCompare(String(b), "en", { numeric: true });
};

/** Makes the headers of a table sort it: figures from the greatest, words from A, then the other way round. */
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
      // Sorting is stable, so equal rows keep the order that they had.
      rows.sort((a, b) => compareValues(sortValue(a, column), sortValue(b, column), sign));
      body.append(...rows);
    })
  );
}

document.querySelectorAll("table.sortable").forEach(sortable);
