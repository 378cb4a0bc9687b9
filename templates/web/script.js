"use strict";
(() => {
  let at = -1;
  const rows = () => [...document.querySelectorAll(".row")].filter((row) => row.offsetParent);
  const go = (step) => {
    const all = rows();
    if (!all.length) return;
    all.forEach((row) => row.classList.remove("here"));
    at = Math.max(0, Math.min(all.length - 1, at + step));
    const row = all[at];
    row.classList.add("here");
    row.scrollIntoView({ block: "nearest" });
    const link = row.matches("a") ? row : row.querySelector("a");
    if (link) link.focus({ preventScroll: true });
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select")) return;
    const find = document.querySelector("main input[type=search], input[type=search]");
    if (event.key === "/" && find) find.focus();
    else if (event.key === "j") go(1);
    else if (event.key === "k") go(-1);
    else if (event.key === "g") document.querySelector("header .name").click();
    else return;
    event.preventDefault();
  });
  if (document.body.dataset.live && window.EventSource) {
    const feed = new EventSource("/events");
    let seen = "";
    feed.onmessage = (event) => {
      if (seen && event.data !== seen && !document.querySelector(".news")) {
        const news = document.createElement("a");
        news.className = "news";
        news.href = location.href;
        news.setAttribute("role", "status");
        news.textContent = "Something changed. Show it";
        document.body.append(news);
      }
      seen = event.data;
    };
  }
})();
