// What is chosen, and what follows from it. The address's fragment holds it: #level=O2&compare=O0&op=4&search=conv2d.

const state = { level: data.opened, compare: -1, op: "", cell: null, search: "" };
const usable = data.levels.map((_, number) => number).filter((number) => data.levels[number].why_not === undefined);
const current = () => levelAt(state.level);
const compared = () => (state.compare >= 0 && state.compare !== state.level ? levelAt(state.compare) : null);
const chosenOperation = () => current().byKey.get(state.op) || null;

// The rows of the table of levels: name, value of a level, words, whether less is better to look at as a bar.
const totals = [
  ["casts", "casts", (level) => level.casts.length, (value) => `${value}`],
  ["cast-bytes", "casts move", (level) => level.cast_bytes, formatBytes],
  ["operation-bytes", "operations move", (level) => level.operation_bytes, formatBytes],
  ["low-work", "low matrix work", (level) => (level.matrix_flops > 0 ? level.low_matrix_flops / level.matrix_flops : 0),
    (value) => `${(100 * value).toFixed(1)} %`],
  ["live-peak", "live at peak", (level) => level.memory.peak_bytes, formatBytes],
  ["arena", "planned arena", (level) => level.memory.arena_bytes, formatBytes],
  ["state", "state", (level) => level.memory.state_bytes, formatBytes],
];

function drawLevels() {
  const count = data.levels.length;
  const slider = element("input", {
    id: "level", type: "range", min: 0, max: count - 1, step: 1, "aria-label": "Level",
    oninput: (event) => setLevel(Number(event.target.value)),
  });
  slider.value = state.level;
  const column = (number) => (number === state.level ? "chosen" : number === state.compare ? "compared" : "");
  const head = element("tr", {}, element("th"), ...data.levels.map((level, number) => element("th", {
    class: column(number), "data-level": level.level, title: level.why_not, onclick: () => setLevel(number),
  }, level.level)));
  const rows = totals.map(([id, name, value, words]) => {
    const values = data.levels.map((level) => (level.why_not === undefined ? value(level) : null));
    const highest = Math.max(...values.filter((each) => each !== null), 1e-30);
    return element("tr", { "data-total": id }, element("th", {}, name), ...values.map((each, number) => element("td", {
      class: column(number),
    }, each === null ? "-" : shown(each, words(each), number === state.level ? { id: `total-${id}` } : {}),
    element("i", { class: "bar", style: `width:${each === null ? 0 : (100 * each) / highest}%` }))));
  });
  const sliderRow = element("tr", { class: "slider" }, element("th"), element("td", { colspan: count, style: `--count:${count}` }, slider));
  const refused = data.levels[state.level].why_not;
  document.getElementById("levels").replaceChildren(element("table", {}, head, sliderRow, ...rows),
    ...(refused ? [element("p", {}, refused)] : []), element("p", { id: "difference" }, differenceWords()));
  const focused = document.activeElement === document.body;
  if (focused && draws > 1) slider.focus({ preventScroll: true });
}

function differenceWords() {
  const other = compared();
  if (!other) return "";
  const { operations, byKey } = current();
  const count = (change) => operations.filter((op) => changeOf(op, other) === change).length;
  const gone = other.operations.filter((op) => !byKey.has(op.key)).length;
  return `From ${other.name} to ${current().name}: ${count("changed")} operations changed, ${count("")} the same, ` +
    `${count("new")} only at ${current().name}, ${gone} only at ${other.name}; casts ${other.casts.length} to ${current().casts.length}`;
}

function drawLegend() {
  const names = new Set();
  for (const op of current().operations) for (const types of [op.reads, op.writes])
    for (const type of types.split(" ")) if (type) names.add(type);
  document.getElementById("legend").replaceChildren(
    ...[...names].sort().map((type) => element("span", {}, element("i", { class: `swatch type-${type}` }), type)),
    element("span", { title: "left edge: types read; fill: type written" }, element("i", { class: "swatch two" }), "reads | writes"),
    element("span", {}, element("span", { class: "hexagon" }), "cast"),
    element("span", {}, element("span", { class: "region", style: "--hue:200" }, "3"), "region of fusion"),
    element("span", {}, element("span", { class: "recomputed" }, "\u21bb"), "computed again"),
    element("span", {}, element("i", { class: "swatch changed" }), "differs"));
}

// Marks what is chosen and found, without drawing the step anew.
function mark(scroll) {
  for (const node of document.querySelectorAll(".selected, .mate, .near")) node.classList.remove("selected", "mate", "near");
  const level = current();
  const op = chosenOperation();
  const cell = op ? op.cell : state.cell;
  let chosen = [];
  if (op) {
    chips.get(op.ordinal).classList.add("selected");
    for (const near of [...op.makers, ...op.readers]) chips.get(near).classList.add("near");
    if (op.region) for (const node of document.querySelectorAll(`[data-region="${op.region}"]`)) node.classList.add("mate");
    chosen = [op];
  } else if (state.cell !== null) {
    boxes.get(state.cell)?.classList.add("selected");
    const inside = (each) => each.cell === state.cell || each.cell.startsWith(`${state.cell}/`);
    chosen = level.operations.filter(inside);
  }
  for (const node of document.querySelectorAll("[data-tree]")) node.classList.toggle("selected", node.dataset.tree === cell);
  if (scroll) {
    const target = op ? chips.get(op.ordinal) : boxes.get(state.cell);
    target?.scrollIntoView({ block: op ? "center" : "start", inline: "nearest" });
  }
  drawEdges(level, chosen);
  drawPanel(level, op, state.cell);
  drawMemory(level, op ? op.instruction : -1);
  writeFragment();
}

function matches(op, words) {
  const all = `#${op.ordinal} ${op.name} ${op.cell} ${op.direction} ${typesOf(op)} ${op.why}${op.recomputed ? " computed again" : ""}`.toLowerCase();
  return words.every((word) => all.includes(word));
}

function found() {
  const words = state.search.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return words.length === 0 ? [] : current().operations.filter((op) => matches(op, words));
}

function search(value) {
  state.search = value;
  const hits = new Set(found().map((op) => op.ordinal));
  document.getElementById("found").textContent = value.trim() === "" ? "" : `${hits.size} found`;
  document.getElementById("boxes").classList.toggle("searching", value.trim() !== "");
  for (const [ordinal, node] of chips) node.classList.toggle("hit", hits.has(ordinal));
  writeFragment();
}

function nextFound(step) {
  const hits = found();
  if (hits.length === 0) return;
  const at = hits.findIndex((op) => op.key === state.op);
  select({ op: hits[(at + step + hits.length) % hits.length].key });
}

function select({ op = "", cell = null }) {
  state.op = op;
  state.cell = op ? null : cell;
  mark(true);
}

let draws = 0;

function draw(scroll) {
  ++draws;
  const level = current();
  document.body.dataset.level = level.name;
  drawLevels();
  drawLegend();
  drawTree(level);
  drawGraph(level, compared());
  document.getElementById("compare").value = String(state.compare);
  search(state.search);
  mark(scroll);
}

function setLevel(number) {
  if (!usable.includes(number)) {
    document.getElementById("level").value = state.level;
    return;
  }
  state.level = number;
  draw(false);
}

function compareWith(number) {
  state.compare = number;
  draw(false);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
}

function otherTheme() {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(dark ? "light" : "dark");
}

function writeFragment() {
  const parts = new URLSearchParams({ level: current().name });
  if (state.compare >= 0) parts.set("compare", data.levels[state.compare].level);
  const op = chosenOperation();
  if (op) parts.set("op", op.ordinal);
  if (!op && state.cell !== null) parts.set("cell", state.cell);
  if (state.search) parts.set("search", state.search);
  history.replaceState(null, "", `#${parts}`);
}

function readFragment() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const number = levelNumber(parts.get("level"));
  if (usable.includes(number)) state.level = number;
  const other = levelNumber(parts.get("compare"));
  if (usable.includes(other)) state.compare = other;
  state.op = current().operations[Number(parts.get("op")) - 1]?.key || "";
  if (parts.has("cell") && !state.op) state.cell = parts.get("cell");
  state.search = parts.get("search") || "";
  if (parts.has("theme")) setTheme(parts.get("theme"));
}

function stepLevel(by) {
  const next = usable[usable.indexOf(state.level) + by];
  if (next !== undefined) setLevel(next);
}

function stepOperation(by) {
  const { operations } = current();
  const at = chosenOperation() ? chosenOperation().ordinal - 1 + by : 0;
  if (operations[at]) select({ op: operations[at].key });
}

const keys = {
  "/": () => document.getElementById("search").focus(),
  ArrowLeft: () => stepLevel(-1), ArrowRight: () => stepLevel(1),
  ArrowUp: () => stepOperation(-1), ArrowDown: () => stepOperation(1),
  n: () => nextFound(1), N: () => nextFound(-1), t: otherTheme,
  c: () => {
    const choices = [-1, ...usable];
    compareWith(choices[(choices.indexOf(state.compare) + 1) % choices.length]);
  },
  Escape: () => select({}),
};

function onKey(event) {
  const box = document.getElementById("search");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === box) {
    if (event.key === "Enter") nextFound(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") {
      box.value = "";
      search("");
      box.blur();
    }
    return;
  }
  if (!Object.hasOwn(keys, event.key) || event.target.tagName === "SELECT") return;
  event.preventDefault();
  keys[event.key]();
}

function start() {
  readFragment();
  document.title = `${data.network} ${data.function}: precision`;
  document.getElementById("title").textContent = data.network;
  document.getElementById("subject").textContent = `${data.function} on ${data.device}`;
  document.getElementById("compare").append(element("option", { value: -1 }, "no level"),
    ...usable.map((number) => element("option", { value: number }, data.levels[number].level)));
  document.getElementById("compare").addEventListener("change", (event) => compareWith(Number(event.target.value)));
  document.getElementById("theme").addEventListener("click", otherTheme);
  document.getElementById("search").value = state.search;
  document.getElementById("search").addEventListener("input", (event) => search(event.target.value));
  document.addEventListener("keydown", onKey);
  addEventListener("resize", () => mark(false));
  draw(true);
  document.body.dataset.drawn = Math.round(performance.now());
}

start();
