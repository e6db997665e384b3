// The search: sections of which the title or the text has all words; titles first. The index lies beside it (index.js).
const input = document.getElementById("search");
const list = document.getElementById("found");
const RESULTS_MAX = 20;

function rank(section, words) {
  const title = (section[0] + " " + section[1]).toLowerCase();
  const text = section[3].toLowerCase();
  let points = 0;
  for (const word of words) {
    if (title.includes(word)) points += section[0].toLowerCase().startsWith(word) ? 4 : 2;
    else if (text.includes(word)) points += 1;
    else return 0;
  }
  return points;
}

function find(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  return INDEX.map((section) => [rank(section, words), section])
    .filter((row) => row[0] > 0)
    .sort((a, b) => b[0] - a[0])
    .slice(0, RESULTS_MAX)
    .map((row) => row[1]);
}

function show() {
  const found = find(input.value);
  list.replaceChildren(...found.map(([title, page, url]) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const where = document.createElement("small");
    link.href = input.dataset.up + url;
    link.textContent = title + " ";
    where.textContent = page === title ? "" : page;
    link.append(where);
    item.append(link);
    return item;
  }));
  list.hidden = found.length === 0;
}

input.addEventListener("input", show);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== input) {
    event.preventDefault();
    input.focus();
  } else if (event.key === "Escape") {
    list.hidden = true;
  }
});
