// The panel on the right: all that is known of an operation or of a Cell.

const operationName = (op) => `#${op.ordinal} ${op.name}${op.cell ? ` in ${op.cell}` : ""}`;

function link(level, ordinal, words) {
  const op = level.operations[ordinal - 1];
  return element("a", { href: "#", onclick: (event) => { event.preventDefault(); select({ op: op.key }); } },
    words || operationName(op));
}

// The words of --explain, in which "#4" leads to that operation.
function explanation(level, op) {
  const list = element("div", { id: "explanation", class: "explanation" });
  for (const number of op.explanation) {
    const line = text(number);
    const depth = Math.floor((line.length - line.trimStart().length) / 2);
    const parts = line.trim().split(/(#\d+)/).map((part) => {
      const ordinal = /^#\d+$/.test(part) ? Number(part.slice(1)) : 0;
      return ordinal >= 1 && ordinal <= level.operations.length ? link(level, ordinal, part) : part;
    });
    list.append(element("p", { style: `--depth:${depth - 1}` }, ...parts));
  }
  return list;
}

function facts(rows) {
  const list = element("dl");
  for (const [name, value] of rows) if (value !== null) list.append(element("dt", {}, name), element("dd", {}, value));
  return list;
}

function links(level, title, ordinals) {
  if (ordinals.length === 0) return null;
  const list = element("ul", {}, ...ordinals.slice(0, 12).map((ordinal) => element("li", {}, link(level, ordinal))));
  if (ordinals.length > 12) list.append(element("li", {}, `and ${ordinals.length - 12} more`));
  return element("details", { open: true }, element("summary", {}, title), list);
}

// The operation at every level, side by side.
function atLevels(op) {
  const rows = data.levels.map((raw, number) => {
    if (raw.why_not !== undefined) return null;
    const there = levelAt(number).byKey.get(op.key);
    return element("tr", { class: number === state.level ? "chosen" : "", onclick: () => setLevel(number) },
      element("th", {}, raw.level), element("td", { class: typeClass(there?.writes) }, there ? typesOf(there) : "not there"),
      element("td", {}, there ? there.why || "-" : ""));
  });
  return element("table", { class: "at-levels" }, ...rows.filter((row) => row));
}

function leftOut(level, op) {
  const neighbours = op.region ? level.regions[op.region - 1][2] : [];
  if (neighbours.length === 0) return null;
  return element("details", {}, element("summary", {}, "left out of its region, and why"),
    element("ul", {}, ...neighbours.map((number) => element("li", {}, text(number)))));
}

function storageAt(level, instruction) {
  const rows = liveAt(level.memory, instruction);
  const table = element("table", { class: "storage" }, ...rows.slice(0, 10).map((row) => element("tr", {},
    element("td", {}, element("i", { class: `use-${level.memory.uses[row.use]}` }),
      `${row.name}${row.cell ? ` in ${row.cell}` : ""}`),
    element("td", {}, row.type), element("td", { class: "number" }, shownBytes(row.bytes)))));
  return element("details", {}, element("summary", {}, `live at instruction ${instruction}: `,
    shownBytes(bytesAt(level.memory, instruction), { id: "live-bytes" }), `, ${rows.length} pieces`), table);
}

function operationPanel(level, op) {
  const mates = op.region ? level.operations.filter((mate) => mate.region === op.region && mate !== op) : [];
  return [
    element("h2", {}, `#${op.ordinal} `, element("span", { id: "op-name" }, op.name)),
    element("p", { class: "where" }, op.cell ? link0(op.cell) : "outside of Cells", `, ${op.direction}`),
    element("p", { class: "type-line" }, element("span", { id: "op-types", class: `pill ${typeClass(op.writes || op.reads)}` }, typesOf(op)),
      ` computes in ${op.compute}`),
    element("h4", {}, "Why"), explanation(level, op),
    element("h4", {}, "At each level"), atLevels(op),
    element("h4", {}, "What it takes"),
    facts([
      ["bytes of operands and results", shownBytes(op.bytes, { id: "op-bytes" })],
      ["matrix work", op.flops ? `${formatFlops(op.flops)}${op.low ? ", reads a 16-bit type" : ""}` : null],
      ["region", op.region ? `${op.region}, which saves ${formatBytes(Math.abs(level.regions[op.region - 1][1]))}` : null],
      ["computed again", op.recomputed ? "yes: its value is not kept for the backward pass" : null],
      ["instruction", op.instruction >= 0 ? `${op.instruction}` : null],
    ]),
    ...op.casts.map((number) => castMark(level.casts[number])),
    links(level, "computed in one kernel with", mates.map((mate) => mate.ordinal)), leftOut(level, op),
    links(level, "reads from", op.makers), links(level, "is read by", op.readers),
    op.instruction >= 0 ? storageAt(level, op.instruction) : null,
  ];
}

const link0 = (cell) => element("a", { href: "#", onclick: (event) => { event.preventDefault(); select({ cell }); } }, cell);

function cellPanel(level, cell) {
  const inside = level.operations.filter((op) => op.cell === cell || op.cell.startsWith(`${cell}/`));
  const sum = (list, value) => list.reduce((total, each) => total + value(each), 0);
  const casts = inside.flatMap((op) => op.ownCasts);
  const reasons = new Map();
  for (const op of inside) reasons.set(op.why || "-", (reasons.get(op.why || "-") || 0) + 1);
  const types = new Map();
  for (const op of inside) types.set(typesOf(op), (types.get(typesOf(op)) || 0) + 1);
  const counted = (map) => element("table", {}, ...[...map].sort((a, b) => b[1] - a[1]).map(([name, count]) =>
    element("tr", {}, element("td", {}, name), element("td", { class: "number" }, `${count}`))));
  return [
    element("h2", {}, cell || "step"), element("p", { class: "where" }, `${inside.length} operations`),
    facts([
      ["bytes of operands and results", shownBytes(sum(inside, (op) => op.bytes), { id: "cell-bytes" })],
      ["casts before them", `${casts.length}, ${formatBytes(sum(casts, (cast) => cast.bytes))}`],
      ["matrix work", formatFlops(sum(inside, (op) => op.flops))],
      ["computed again", `${inside.filter((op) => op.recomputed).length}`],
    ]),
    element("h4", {}, "Types"), counted(types), element("h4", {}, "Why"), counted(reasons),
    element("h4", {}, "Casts"), ...casts.slice(0, 40).map(castMark),
  ];
}

function startPanel(level) {
  const kinds = new Map();
  for (const cast of level.casts) {
    const name = `${cast.kind} ${cast.from} \u2192 ${cast.to}`;
    const [count, bytes] = kinds.get(name) || [0, 0];
    kinds.set(name, [count + 1, bytes + cast.bytes]);
  }
  return [
    element("h2", {}, `${data.network} at ${level.name}`),
    element("p", { class: "where" }, `low type ${level.lowType}, loss scale ${level.lossScale}. `,
      "Choose an operation, a Cell, or a place in the memory chart."),
    element("h4", {}, `Casts by kind (${level.casts.length})`),
    element("table", {}, ...[...kinds].map(([name, [count, bytes]]) => element("tr", {}, element("td", {}, name),
      element("td", { class: "number" }, `${count}`), element("td", { class: "number" }, formatBytes(bytes))))),
    element("h4", {}, "Fusion"),
    element("p", {}, `${level.regions.length} regions, ${level.savedBytes < 0 ? "-" : ""}${formatBytes(Math.abs(level.savedBytes))} less moved a step`),
    level.remarks.length ? element("h4", {}, "Remarks") : null, ...level.remarks.map((remark) => element("p", {}, remark)),
    element("h4", {}, "Keys"),
    element("p", { class: "keys" }, element("kbd", {}, "/"), " search ", element("kbd", {}, "Enter"), " next found ",
      element("kbd", {}, "\u2190"), element("kbd", {}, "\u2192"), " level ", element("kbd", {}, "\u2191"), element("kbd", {}, "\u2193"),
      " operation ", element("kbd", {}, "c"), " compare ", element("kbd", {}, "t"), " theme ", element("kbd", {}, "Esc"), " clear"),
  ];
}

function drawPanel(level, op, cell) {
  let parts = startPanel(level);
  if (op) parts = operationPanel(level, op);
  else if (cell !== null) parts = cellPanel(level, cell);
  document.getElementById("panel").replaceChildren(...parts.filter((part) => part));
}
