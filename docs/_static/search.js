/* Searches the sections of the site: the query of the address, by MiniSearch.

   Words are stemmed and stop words left out by what Sphinx brings for its own search.
   A name counts as a whole and in its parts: SliceSampler is also slice and sampler. */
"use strict";

(() => {
  const MOST = 30; // results
  const MOST_OF_A_PAGE = 3;
  const EXCERPT = 200; // letters
  const ASIDE = new Set(["Try it", "Next"]); // uses names that another section explains
  const stemmer = new Stemmer();
  const wholeNames = (text) => text.match(/[\p{L}\p{N}_]+/gu) ?? [];
  const withParts = (text) =>
    wholeNames(text).flatMap((name) => {
      const parts = name.match(/\p{Lu}?[\p{Ll}\p{N}]+|\p{Lu}+(?!\p{Ll})/gu) ?? [];
      return parts.length > 1 ? [name, ...parts] : [name];
    });
  const stem = (word) => {
    const lower = word.toLowerCase();
    return stopwords.has(lower) ? null : stemmer.stemWord(lower);
  };
  const plain = (text) => ` ${wholeNames(text).join(" ").toLowerCase()} `;

  const sections = SECTIONS.flatMap(([address, page, parts]) =>
    parts.map(([anchor, heading, text]) => ({
      address: anchor ? `${address}#${anchor}` : address,
      page,
      heading,
      text,
    })),
  );
  sections.forEach((section, id) => (section.id = id));

  /* How much better a section is: words that stand together in the query do so in it. */
  function closeness(query) {
    const words = plain(query).trim().split(" ");
    const pairs = words.slice(1).map((word, n) => ` ${words[n]} ${word} `);
    return (id) => {
      const { heading, text } = sections[id];
      if (plain(heading) === plain(query)) return 8;
      const inside = plain(`${heading} ${text}`);
      const found = pairs.filter((pair) => inside.includes(pair)).length;
      const close = 1 + (found && (4 * found) / pairs.length);
      const early = 1.5 - id / sections.length / 2; // what comes first introduces
      return close * early * (ASIDE.has(heading) ? 0.5 : 1);
    };
  }

  /* All words; else all of them nearly; else as many as there are. */
  function find(query) {
    const index = new MiniSearch({
      fields: ["heading", "page", "text"],
      tokenize: withParts,
      processTerm: stem,
    });
    index.addAll(sections);
    const exact = {
      tokenize: wholeNames,
      prefix: (term) => term.length > 2,
      boostDocument: closeness(query),
    };
    const near = { ...exact, fuzzy: (term) => (term.length > 4 ? 0.2 : false) };
    for (const [options, how] of [
      [{ ...exact, combineWith: "AND" }, "with all of these words"],
      [{ ...near, combineWith: "AND" }, "with words like these"],
      [{ ...near, combineWith: "OR" }, "with words like some of these"],
    ]) {
      const found = index.search(query, options);
      if (found.length) return [found, how];
    }
    return [[], ""];
  }

  /* The part of a text with the most different words found, as nodes. */
  function excerpt(text, terms) {
    const words = [...text.matchAll(/[\p{L}\p{N}_]+/gu)]
      .map((word) => ({ start: word.index, text: word[0], stem: stem(word[0]) }))
      .filter((word) => terms.has(word.stem));
    let best = { start: 0, count: 0 };
    for (const { start } of words) {
      const inside = words.filter((w) => w.start >= start && w.start < start + EXCERPT);
      const count = new Set(inside.map((word) => word.stem)).size;
      if (count > best.count) best = { start, count };
    }
    const from = best.start < 60 ? 0 : text.indexOf(" ", best.start - 50) + 1;
    const cut = from + EXCERPT < text.length ? text.lastIndexOf(" ", from + EXCERPT) : -1;
    const to = cut > from ? cut : text.length;
    const nodes = [from ? "… " : ""];
    let at = from;
    for (const { start, text: word } of words) {
      if (start < at || start + word.length > to) continue;
      const mark = document.createElement("mark");
      mark.textContent = word;
      nodes.push(text.slice(at, start), mark);
      at = start + word.length;
    }
    return [...nodes, text.slice(at, to), to < text.length ? " …" : ""];
  }

  function item(result) {
    const { address, page, heading, text } = sections[result.id];
    const link = document.createElement("a");
    link.href = address;
    link.textContent = heading === page ? page : `${page} › ${heading}`;
    const context = document.createElement("p");
    context.className = "context";
    context.append(...excerpt(text, new Set(result.terms)));
    const entry = document.createElement("li");
    entry.append(link, context);
    return entry;
  }

  function show(query) {
    const [found, how] = find(query);
    const ofPage = new Map();
    const shown = found
      .filter(({ id }) => {
        const { page } = sections[id];
        const count = (ofPage.get(page) ?? 0) + 1;
        ofPage.set(page, count);
        return count <= MOST_OF_A_PAGE;
      })
      .slice(0, MOST);
    const status = document.createElement("p");
    status.setAttribute("role", "status");
    status.textContent = shown.length
      ? `${shown.length} ${shown.length > 1 ? "sections" : "section"} ${how}`
      : `Nothing found for “${query}”. Try one word of it, or the glossary.`;
    const list = document.createElement("ol");
    list.className = "search";
    list.append(...shown.map(item));
    document.getElementById("search-results").replaceChildren(status, list);
  }

  const query = new URLSearchParams(location.search).get("q")?.trim();
  for (const field of document.querySelectorAll('input[name="q"]')) field.value = query ?? "";
  if (query) show(query);
})();
