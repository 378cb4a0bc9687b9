"use strict";
(() => {
  const rows = () => [...document.querySelectorAll(".row")].filter((row) => row.offsetParent);
  const linkOf = (row) => (row.matches("a") ? row : row.querySelector("a"));
  const go = (step) => {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((row) => row.classList.contains("here"));
    all.forEach((row) => row.classList.remove("here"));
    const row = all[Math.max(0, Math.min(all.length - 1, at + step))];
    row.classList.add("here");
    row.scrollIntoView({ block: "nearest" });
    const link = linkOf(row);
    if (link) link.focus({ preventScroll: true });
  };
  // In a picture the arrow keys lead to the nearest box in their direction.
  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const middleOf = (box) => [box.x + box.width / 2, box.y + box.height / 2];
  const step = (picture, [right, down]) => {
    const [x, y] = middleOf(document.activeElement.getBoundingClientRect());
    const distances = [...picture.querySelectorAll("a[href]:not(.frame)")].map((link) => {
      const [otherX, otherY] = middleOf(link.getBoundingClientRect());
      const ahead = (otherX - x) * right + (otherY - y) * down;
      const aside = Math.abs((otherX - x) * down) + Math.abs((otherY - y) * right);
      return [ahead > 1 ? ahead + 2 * aside : Infinity, link];
    });
    const [distance, nearest] = distances.reduce((best, one) => (one[0] < best[0] ? one : best));
    if (distance < Infinity) nearest.focus();
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select")) return;
    const picture = event.target.closest("[data-steps]");
    if (picture && ARROWS[event.key]) {
      step(picture, ARROWS[event.key]);
      event.preventDefault();
      return;
    }
    const find = document.querySelector("main input[type=search], input[type=search]");
    if (event.key === "/" && find) find.focus();
    else if (event.key === "j") go(1);
    else if (event.key === "k") go(-1);
    else if (event.key === "g") document.querySelector("header .name").click();
    else return;
    event.preventDefault();
  });

  // The head of a column of checkboxes gets one for all of them.
  document.querySelectorAll("[data-all]").forEach((head) => {
    const boxes = [...document.querySelectorAll(`input[type=checkbox][name=${head.dataset.all}]`)];
    const all = document.createElement("input");
    all.type = "checkbox";
    all.setAttribute("aria-label", "Select all on this page");
    const count = () => {
      const chosen = boxes.filter((box) => box.checked).length;
      all.checked = chosen === boxes.length;
      all.indeterminate = chosen > 0 && chosen < boxes.length;
    };
    all.addEventListener("change", () => {
      boxes.forEach((box) => { box.checked = all.checked; });
    });
    boxes.forEach((box) => box.addEventListener("change", count));
    count();
    head.append(all);
  });
  document.querySelector(".refused")?.focus();

  // What follows keeps an open page current, where a server can say that something changed.
  const main = document.getElementById("main");
  const news = document.querySelector(".news");
  if (!document.body.dataset.live || !news || !window.EventSource) return;

  // Rows by a name that they keep from one version of the page to the next: heading, address, and
  // which one from the end, as what is newer comes first.
  const named = (root) => {
    const found = [];
    let heading = "";
    for (const one of root.querySelectorAll("h2, .row")) {
      if (one.matches(".row")) {
        const link = linkOf(one);
        const told = one.id || (link ? link.getAttribute("href") : one.textContent);
        found.push([`${heading} ${told}`, one]);
      } else if (!one.closest(".row")) heading = one.textContent;
    }
    const counts = {};
    return new Map(
      found.reverse().map(([name, row]) => {
        counts[name] = (counts[name] || 0) + 1;
        return [`${name} ${counts[name]}`, row];
      }),
    );
  };
  const content = (root) => {
    const copy = root.cloneNode(true);
    copy.querySelectorAll(".volatile").forEach((one) => one.remove());
    return copy.innerHTML;
  };
  let shown = content(main);
  const seen = new Set(named(main).keys());

  // Elements of a kind by the row that they are in and their number there.
  const spots = (kind, names) => {
    const counts = {};
    return new Map(
      [...main.querySelectorAll(kind)].map((one) => {
        const row = one.closest(".row");
        const name = row ? names.get(row) : "";
        counts[name] = (counts[name] || 0) + 1;
        return [`${name} ${counts[name]}`, one];
      }),
    );
  };
  const namesOf = (found) => new Map([...found].map(([name, row]) => [row, name]));
  const keyOf = (map, value) => [...map].find(([, one]) => one === value)?.[0];

  const isChanged = (field) => {
    if (field.matches("[type=hidden]")) return false;
    if (field.matches("[type=radio], [type=checkbox]")) return field.checked !== field.defaultChecked;
    if (!field.matches("select")) return field.value !== field.defaultValue;
    const first = [...field.options].findIndex((one) => one.defaultSelected);
    return field.selectedIndex !== Math.max(0, first);
  };
  const isTaken = () =>
    main.querySelector("form[method=post]") ||
    !getSelection().isCollapsed ||
    [...main.querySelectorAll("input, textarea, select")].some(
      (field) => field === document.activeElement || isChanged(field),
    );

  const tell = (text, href, done) => {
    const link = document.createElement("a");
    link.href = href;
    link.textContent = text;
    if (done) link.addEventListener("click", done);
    news.replaceChildren(link);
  };
  const LINKS = "a, summary, button, [tabindex]";
  const put = (fresh) => {
    const before = named(main);
    const names = namesOf(before);
    const focus = keyOf(spots(LINKS, names), document.activeElement);
    const here = keyOf(before, main.querySelector(".row.here"));
    const open = [...spots("details", names)].map(([name, one]) => [name, one.open]);
    const wide = [...main.querySelectorAll(".wide, pre, table")].map((one) => one.scrollLeft);
    const places = [...before].map(([name, row]) => [name, row.getBoundingClientRect().top]);
    const top = places.reverse().find(([, at]) => at >= 0);
    const isAtTop = scrollY === 0;

    main.replaceChildren(...fresh.childNodes);
    const after = named(main);
    const added = [...after].filter(([name]) => !seen.has(name)).map(([, row]) => row);
    added.reverse().forEach((row) => {
      const mark = document.createElement("span");
      mark.className = "mark new";
      mark.textContent = "new";
      (row.cells ? row.cells[0] : row).prepend(mark);
    });
    const kept = namesOf(after);
    const details = spots("details", kept);
    open.forEach(([name, isOpen]) => {
      if (details.has(name)) details.get(name).open = isOpen;
    });
    main.querySelectorAll(".wide, pre, table").forEach((one, at) => {
      one.scrollLeft = wide[at] || 0;
    });
    if (after.has(here)) after.get(here).classList.add("here");
    spots(LINKS, kept).get(focus)?.focus({ preventScroll: true });
    if (!isAtTop && top && after.has(top[0])) {
      scrollBy({ top: after.get(top[0]).getBoundingClientRect().top - top[1], behavior: "instant" });
    }
    if (added.length) {
      tell(`${added.length} new`, "#main", (event) => {
        event.preventDefault();
        news.replaceChildren();
        added[0].scrollIntoView({ block: "center" });
        (linkOf(added[0]) || main).focus({ preventScroll: true });
      });
    }
  };

  let isAsking = false;
  let isLate = false;
  const look = async () => {
    if (isAsking) {
      isLate = true;
      return;
    }
    isAsking = true;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (answer.ok && !answer.redirected) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.getElementById("main");
        const text = content(fresh);
        if (text !== shown && isTaken()) {
          tell("Something changed. Show it", location.href, () => location.reload());
        } else if (text !== shown) {
          put(fresh);
          document.title = page.title;
          shown = text;
        }
      }
    } catch {
      // The server is gone; the page stays as it is.
    }
    isAsking = false;
    if (isLate) {
      isLate = false;
      look();
    }
  };

  // A browser has few connections to a server, so only a page that is seen holds one.
  let feed = null;
  let last = "";
  const listen = () => {
    if (document.hidden || feed) {
      if (document.hidden && feed) {
        feed.close();
        feed = null;
      }
      return;
    }
    feed = new EventSource("/events");
    feed.onmessage = (event) => {
      if (last && event.data !== last) look();
      last = event.data;
    };
  };
  document.addEventListener("visibilitychange", listen);
  listen();
})();
