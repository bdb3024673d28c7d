// Links open dialogs through the URL fragment, so that back, reload and links to a cell work.
"use strict";
let opened = null;
let origin = null; // the followed link, which regains the focus when the dialog closes
addEventListener("click", (event) => {
  const link = event.target.closest("main a");
  if (link) origin = link;
});
function follow() {
  const wanted = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (opened && opened !== wanted) opened.close();
  if (wanted instanceof HTMLDialogElement && !wanted.open) {
    opened = wanted;
    wanted.showModal();
    wanted.querySelector(".body").scrollTop = 0;
  }
}
for (const dialog of document.querySelectorAll("dialog")) {
  dialog.addEventListener("close", () => {
    if (opened === dialog) opened = null;
    if (location.hash === "#" + dialog.id) history.replaceState(null, "", location.pathname + location.search);
    if (origin && !opened) origin.focus({ preventScroll: true });
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest(".close")) {
      event.preventDefault();
      dialog.close();
    }
  });
}
addEventListener("hashchange", follow);
follow();

// The matrix is one Tab stop; arrow keys move within it.
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
for (const table of document.querySelectorAll(".matrix")) {
  const cells = [...table.querySelectorAll("a.cell")];
  for (const cell of cells.slice(1)) cell.tabIndex = -1;
  table.addEventListener("focusin", (event) => {
    for (const cell of cells) cell.tabIndex = cell === event.target ? 0 : -1;
  });
  table.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    const at = event.target.closest("td");
    if (!step || !at) return;
    event.preventDefault();
    let row = at.parentElement;
    let column = at.cellIndex;
    for (;;) {
      if (step[0] > 0) row = row.nextElementSibling;
      else if (step[0] < 0) row = row.previousElementSibling;
      column += step[1];
      const next = row && row.cells[column];
      if (!next) return;
      const link = next.querySelector("a.cell");
      if (link && link.offsetParent) return link.focus();
    }
  });
}
