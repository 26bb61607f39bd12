// What the page knows: rows as compiler/report/page_data.cc writes them, made into objects.

const data = JSON.parse(document.getElementById("data").textContent);
const text = (number) => data.texts[number];

const decodeOperation = (row, index) => ({
  ordinal: index + 1,
  name: text(row[0]), cell: text(row[1]), direction: text(row[2]),
  reads: text(row[3]), writes: text(row[4]), compute: text(row[5]), why: text(row[6]),
  bytes: row[7], flops: row[8], low: row[9] === 1, region: row[10], recomputed: row[11] === 1, instruction: row[12],
  makers: row[13], casts: row[14], explanation: row[15],
  readers: [], ownCasts: [],
});

const decodeCast = (row, index) => ({
  index, kind: text(row[0]), from: text(row[1]), to: text(row[2]), bytes: row[3], of: text(row[4]), maker: row[5],
});

const decodeStorage = (row) => ({
  use: row[0], name: text(row[1]), cell: text(row[2]), type: text(row[3]), bytes: row[4], first: row[5], last: row[6],
  offset: row[7],
});

// An operation has the same key at every level: its name, Cell and direction, and which of those it is.
function giveKeys(operations) {
  const seen = new Map();
  for (const op of operations) {
    const key = `${op.cell}|${op.name}|${op.direction}`;
    const number = (seen.get(key) || 0) + 1;
    seen.set(key, number);
    op.key = `${key}|${number}`;
  }
}

function decodeLevel(raw) {
  if (raw.why_not !== undefined) return { name: raw.level, whyNot: raw.why_not };
  const operations = raw.operations.map(decodeOperation);
  const casts = raw.casts.map(decodeCast);
  giveKeys(operations);
  // A cast is drawn once: before its first reader, or behind its maker where the step's results alone read it.
  const drawn = new Set();
  for (const op of operations) {
    for (const maker of op.makers) operations[maker - 1].readers.push(op.ordinal);
    for (const cast of op.casts) {
      if (!drawn.has(cast)) op.ownCasts.push(casts[cast]);
      drawn.add(cast);
    }
  }
  const loose = casts.filter((cast) => !drawn.has(cast.index));
  return {
    name: raw.level, lowType: raw.low_type, lossScale: raw.loss_scale, operations, casts, loose,
    byKey: new Map(operations.map((op) => [op.key, op])),
    castBytes: raw.cast_bytes, operationBytes: raw.operation_bytes,
    lowShare: raw.matrix_flops > 0 ? raw.low_matrix_flops / raw.matrix_flops : 0,
    regions: raw.regions, savedBytes: raw.saved_bytes, remarks: raw.remarks,
    memory: { ...raw.memory, storage: raw.memory.storage.map(decodeStorage) },
  };
}

// Levels are decoded when they are first looked at, except their totals, which stand in the table from the start.
const decoded = new Array(data.levels.length);
const levelAt = (number) => (decoded[number] ??= decodeLevel(data.levels[number]));
const levelNumber = (name) => data.levels.findIndex((level) => level.level === name);

const typesOf = (op) => `${op.reads || "-"} \u2192 ${op.writes || "-"}`;

// What became of an operation from another level to this one: "", "changed" or "new".
function changeOf(op, other) {
  if (!other) return "";
  const before = other.byKey.get(op.key);
  if (!before) return "new";
  return before.reads === op.reads && before.writes === op.writes ? "" : "changed";
}

// As FormatBytes of compiler/report/text_table.cc.
function formatBytes(bytes) {
  if (bytes < 1024) return `${bytes} bytes`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  return `${value.toFixed(1)} ${units[unit]}`;
}

function formatFlops(flops) {
  const units = ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"];
  let unit = 0;
  while (flops >= 1000 && unit < units.length - 1) {
    flops /= 1000;
    ++unit;
  }
  return `${flops.toFixed(unit ? 1 : 0)} ${units[unit]}`;
}

// An element. Texts of the data reach the page through text nodes and attributes alone, never as HTML.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// A number as it is read, with the exact one beside it.
const shown = (value, words, attributes = {}) =>
  element("data", { value, title: value.toLocaleString("en"), ...attributes }, words);
const shownBytes = (bytes, attributes) => shown(bytes, formatBytes(bytes), attributes);

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const typeClass = (types) => `type-${(types || "none").split(" ")[0]}`;
