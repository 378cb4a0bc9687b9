"use strict";
(() => {
  const LEVELS = [["/", ":"], [".", "."], ["-", "_"]];
  const LONGEST = 64;
  const SHOWN = 25;
  const NEAR = 8;
  const UNSPACED =
    /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\u{20000}-\u{3ffff}]/u;
  const results = document.getElementById("results");
  const isLower = (text) => /[a-z]/.test(text) && !/[A-Z]/.test(text);
  const isUpper = (text) => /[A-Z]/.test(text) && !/[a-z]/.test(text);
  const isAscii = (text) => /^[\x00-\x7f]*$/.test(text);
  const isOneWord = (name) =>
    /^[A-Za-z0-9]+$/.test(name) && (isLower(name.slice(1)) || isUpper(name) || /^\d+$/.test(name));
  const small = (text) => text.toLowerCase().replace(/ß/g, "ss").replace(/ς/g, "σ");

  // What `memtool.index.analyzer` makes of a question, but for stems: the index knows these.
  const words = (text) => {
    const plain = text.normalize("NFKD")
      .replace(/\u0438\u0306/g, "\u0439").replace(/\u0418\u0306/g, "\u0419")
      .replace(/[\u0300-\u036f]/g, "").normalize("NFC");
    const simple = [];
    const compounds = [];
    for (const raw of plain.split(/[^\p{L}\p{N}\p{M}_\-./:]+/u)) take(raw, 0, simple, compounds);
    return [...new Set([...simple, ...compounds])];
  };
  const take = (raw, start, simple, compounds) => {
    const name = raw.replace(/^[_\-./:]+|[_\-./:]+$/g, "");
    if (!name) return;
    if (isOneWord(name)) { simple.push(small(name.slice(0, LONGEST))); return; }
    let level = start;
    while (level < LEVELS.length && !LEVELS[level].some((sign) => name.includes(sign))) level += 1;
    let parts;
    if (level < LEVELS.length) {
      const [first, last] = LEVELS[level];
      parts = name.replaceAll(last, first).split(first).filter(Boolean);
      parts.forEach((part) => take(part, level + 1, simple, compounds));
    } else {
      parts = isAscii(name) ? humps(name) : syllables(name);
      simple.push(...parts.map((part) => small([...part].slice(0, LONGEST).join(""))));
      if (!isAscii(name)) return;
    }
    if (parts.length > 1 && [...name].length <= LONGEST) compounds.push(small(name));
    if (level === 1 && /^v\d+(\.\d+)+$/i.test(parts.join("."))) compounds.push(parts.join(".").slice(1));
  };
  const humps = (name) => {
    if (isLower(name.slice(1)) || isUpper(name) || /^\d+$/.test(name)) return [name];
    const starts = [0];
    for (let at = 1; at < name.length; at += 1) {
      if (!isUpper(name[at])) continue;
      const next = name[at + 1] || "";
      if (!isUpper(name[at - 1]) || (isLower(next) && next !== "s")) starts.push(at);
    }
    return starts.map((from, at) => name.slice(from, starts[at + 1]));
  };
  const syllables = (name) => {
    const parts = [];
    for (const run of name.match(new RegExp(`${UNSPACED.source}+|(?:(?!${UNSPACED.source}).)+`, "gu")) || []) {
      const chars = [...run];
      if (!UNSPACED.test(chars[0])) parts.push(...(isAscii(run) ? humps(run) : [run]));
      else if (chars.length === 1) parts.push(run);
      else for (let at = 0; at + 1 < chars.length; at += 1) parts.push(chars[at] + chars[at + 1]);
    }
    return parts;
  };

  // Parts of the index are scripts that call this: a page on a disk may load nothing else.
  const waiting = new Map();
  const kept = new Map();
  window.memtool = Object.assign((name, data) => waiting.get(name)(data), { words });
  const load = (name) => {
    if (!kept.has(name)) {
      kept.set(name, new Promise((done, failed) => {
        const script = document.createElement("script");
        waiting.set(name, done);
        script.onerror = () => failed(new Error(name));
        script.src = `${results.dataset.words}${name}.js`;
        document.head.append(script);
      }));
    }
    return kept.get(name);
  };
  const part = async (index, word) => {
    let at = -1;
    for (let size = 0; size <= word.length; size += 1) {
      const found = index.words.indexOf(word.slice(0, size));
      if (found >= 0) at = found;
    }
    if (at < 0) return { terms: new Map(), forms: new Map() };
    const found = await load(`words-${at}`);
    if (!(found.terms instanceof Map)) {
      found.terms = new Map(found.terms);
      found.forms = new Map(found.forms);
    }
    return found;
  };
  // The terms that a word stands for; for one that nobody wrote, those of the words most like it.
  const termsOf = async (index, word) => {
    const { terms, forms } = await part(index, word);
    if (forms.has(word)) return [forms.get(word)].filter(Boolean);
    if (terms.has(word)) return [word];
    const least = word.slice(0, Math.max(4, word.length - 3));
    const near = [...forms.keys(), ...terms.keys()]
      .filter((one) => one.startsWith(least) && one.length <= word.length + 3);
    return [...new Set(near.map((one) => forms.has(one) ? forms.get(one) : one).filter(Boolean))].slice(0, NEAR);
  };
  const postings = async (index, term) => (await part(index, term)).terms.get(term) || [];
  const each = (numbers, visit) => {
    let number = -1;
    for (let at = 0; at < numbers.length; at += 1) {
      const gap = numbers[at];
      number += Math.abs(gap);
      if (gap < 0) at += 1;
      visit(number, gap < 0 ? numbers[at] : 1);
    }
  };

  // BM25; a memory that holds no word of the question has no score.
  const ranked = async (question) => {
    const index = await load("index");
    const asked = question.split(/\s+/).filter(Boolean);
    const refused = asked.filter((word) => word.startsWith("-")).map((word) => word.slice(1));
    const wanted = asked.filter((word) => !word.startsWith("-")).join(" ");
    const terms = async (text) => [...new Set((await Promise.all(words(text).map((word) => termsOf(index, word)))).flat())];
    const rows = Array.from({ length: index.memories }, (_none, at) => load(`memories-${at}`));
    const all = (await Promise.all(rows)).flatMap((rows) => rows.ids.map((id, at) => {
      const [type, category, status, holds] = index.kinds[rows.kinds[at]];
      const day = rows.days[at] || (id.match(/\d{4}-\d\d-\d\d/) || [""])[0];
      return { id, title: rows.titles[at], length: rows.lengths[at], type, category, status, holds, day };
    }));
    const scores = new Map();
    for (const term of await terms(wanted)) {
      const found = await postings(index, term);
      let count = 0;
      each(found, () => { count += 1; });
      const idf = Math.log(1 + (index.count - count + 0.5) / (count + 0.5));
      each(found, (number, times) => {
        const norm = index.k1 * (1 - index.b + (index.b * all[number].length) / index.mean);
        scores.set(number, (scores.get(number) || 0) + (idf * times * (index.k1 + 1)) / (times + norm));
      });
    }
    if (!wanted) all.forEach((_one, number) => scores.set(number, number));
    for (const term of await terms(refused.join(" "))) each(await postings(index, term), (number) => scores.delete(number));
    return [...scores].map(([number, score]) => ({ ...all[number], score }))
      .sort((one, other) => other.score - one.score || (one.id < other.id ? -1 : 1));
  };

  const text = (name, content, kind) => {
    const made = document.createElement(name);
    made.textContent = content;
    if (kind) made.className = kind;
    return made;
  };
  const show = (found) => {
    for (const one of found) {
      const row = text("li", "", "row");
      const heading = text("h2", "");
      const link = text("a", one.title);
      link.href = `${results.dataset.to}${encodeURIComponent(one.id)}.html`;
      heading.append(link);
      const standing = text("p", "", "standing");
      standing.append(
        text("span", `${one.type}/${one.category}`, "mark type"), text("span", one.status, `mark ${one.status}`),
        ...(one.holds ? [] : [text("span", "replaced or out of use", "mark superseded")]), text("time", one.day),
      );
      row.append(heading, standing);
      results.append(row);
    }
  };
  const said = document.getElementById("found");
  const more = document.getElementById("more");
  const search = async () => {
    const asked = new URLSearchParams(location.search);
    for (const field of document.querySelectorAll("form [name]")) field.value = asked.get(field.name) || "";
    const filters = ["type", "category", "status"].filter((name) => asked.get(name));
    const question = (asked.get("q") || "").trim();
    if (!question && !filters.length) return;
    said.textContent = "Searching";
    const found = (await ranked(question)).filter((one) =>
      (one.holds || asked.get("all") || asked.get("status")) && filters.every((name) => one[name] === asked.get(name)));
    said.textContent = `${found.length} ${found.length === 1 ? "memory" : "memories"}`;
    let shown = 0;
    more.onclick = () => {
      show(found.slice(shown, shown + SHOWN));
      shown += SHOWN;
      more.hidden = shown >= found.length;
    };
    more.onclick();
  };
  search().catch((error) => { said.textContent = `A part of the search index is missing: ${error.message}.js`; });
})();
