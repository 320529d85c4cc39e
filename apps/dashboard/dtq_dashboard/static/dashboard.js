"use strict";
// Keeps the main part of a page as the server last drew it, shows times in the reader's zone, and takes keys.
// Task data comes as text that the server has escaped; nothing here runs, or makes markup of its own.

const main = document.querySelector("[data-live]");
const lost = document.getElementById("lost");
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const SHORT = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

function showTimes(root) {
  const today = new Date().toDateString();
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = new Date(element.getAttribute("datetime"));
    if (Number.isNaN(at.getTime())) continue;
    element.textContent = (at.toDateString() === today ? SHORT : FULL).format(at);
    element.title = FULL.format(at);
  }
}

// What the reader is doing must not be drawn over: a form that is open, or text that is selected.
function isBusy() {
  const inForm = main.contains(document.activeElement) && document.activeElement.closest("form");
  const open = main.querySelector("details.act[open]");
  return Boolean(inForm || open || String(window.getSelection()));
}

// Details that the reader has opened stay open: the same one is found by its place on the page.
function draw(text) {
  const opened = [...main.querySelectorAll("details")].map((each) => each.open);
  main.innerHTML = text;
  [...main.querySelectorAll("details")].forEach((each, index) => {
    each.open = Boolean(opened[index]);
  });
  showTimes(main);
}

function follow() {
  let newest = null;
  const source = new EventSource(location.href);
  source.onmessage = (event) => {
    lost.hidden = true;
    newest = event.data;
    if (!isBusy()) draw(newest);
  };
  source.onerror = () => {
    lost.hidden = false;
  };
  document.addEventListener("toggle", () => {
    if (newest !== null && !isBusy()) draw(newest);
  }, true);
  window.addEventListener("pagehide", () => source.close());
}

// g and a letter go to a page, / to the search, ? lists the keys; Escape closes what is open.
function takeKeys() {
  let after = "";
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      main.querySelectorAll("details.act[open]").forEach((each) => { each.open = false; });
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    const links = document.querySelectorAll("nav a");
    if (after === "g") {
      for (const link of links) {
        if (link.dataset.key === event.key) link.click();
      }
    } else if (event.key === "/") {
      const search = main.querySelector(".filters input");
      if (search) {
        event.preventDefault();
        search.focus();
      }
    }
    after = event.key;
  });
}

if (main) {
  showTimes(document);
  follow();
  takeKeys();
}
