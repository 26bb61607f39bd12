// The step as nested boxes, one a Cell: what it computes forward on the left, backward and in the update on the right.

let chips = new Map();   // ordinal -> element
let boxes = new Map();   // Cell path -> element

// The Cells of a level as a tree, in the order of their first operation.
function cellTree(level) {
  const cellOf = (name, path) => ({ name, path, children: new Map(), operations: [], all: [] });
  const root = cellOf("", "");
  for (const op of level.operations) {
    let at = root;
    if (op.cell !== "") {
      const names = op.cell.split("/");
      names.forEach((name, depth) => {
        if (!at.children.has(name))
          at.children.set(name, cellOf(name, names.slice(0, depth + 1).join("/")));
        at = at.children.get(name);
        at.all.push(op);
      });
    }
    at.operations.push(op);
  }
  return root;
}

function castMark(cast) {
  return element("div", {
    class: "cast", "data-cast": cast.index, title: `cast of ${cast.of}: ${formatBytes(cast.bytes)} moved`,
  }, element("span", { class: "hexagon" }), `${cast.from} \u2192 ${cast.to} `,
  element("small", {}, `${cast.kind}, ${formatBytes(cast.bytes)}`));
}

function chip(op, other) {
  const change = changeOf(op, other);
  const node = element("button", {
    class: `op ${typeClass(op.writes || op.reads)} ${change}`, "data-op": op.ordinal, "data-region": op.region || undefined,
    title: `#${op.ordinal} ${op.name}\n${typesOf(op)}\n${op.why || "no rule decides"}`,
    onclick: () => select({ op: op.key }),
  },
  element("span", { class: `stripe ${typeClass(op.reads)}` }),
  element("span", { class: "name" }, op.name),
  op.recomputed ? element("span", { class: "recomputed", title: "computed again in the backward pass" }, "\u21bb") : null,
  op.region ? element("span", { class: "region", style: `--hue:${(op.region * 67) % 360}`, title: `region ${op.region}` },
    `${op.region}`) : null,
  change === "changed" ? element("span", { class: "before", title: `at ${other.name}` },
    typesOf(other.byKey.get(op.key))) : null,
  element("span", { class: "types" }, typesOf(op)));
  chips.set(op.ordinal, node);
  return node;
}

function column(operations, other) {
  const list = element("div", { class: "column" });
  for (const op of operations) {
    const parts = [...op.ownCasts.map(castMark), chip(op, other)];
    list.append(...(op.direction === "backward" ? parts.reverse() : parts));
  }
  return list;
}

// The child of a Cell that an operation lies in; -1 for the Cell's own operations.
function childOf(cell, op, order) {
  if (op.cell === cell.path) return -1;
  const rest = cell.path === "" ? op.cell : op.cell.slice(cell.path.length + 1);
  return order.get(rest.split("/")[0]);
}

// A Cell's own operations between its children. The forward pass goes down, and what is between two children stands
// there. The backward pass goes up: its operations stand below the child that it comes to next.
function ownOperations(cell) {
  const order = new Map([...cell.children.keys()].map((name, index) => [name, index]));
  const places = Array.from({ length: order.size + 1 }, () => ({ forward: [], backward: [], update: [] }));
  let passed = 0;
  let waiting = [];
  const settle = (place) => {
    places[place].backward.unshift(...waiting.reverse());
    waiting = [];
  };
  for (const op of cell.all) {
    const child = childOf(cell, op, order);
    if (child >= 0) {
      if (op.direction === "forward") passed = Math.max(passed, child + 1);
      else if (op.direction === "backward") settle(child + 1);
    } else if (op.direction === "backward") {
      waiting.push(op);
    } else {
      places[op.direction === "update" ? order.size : passed][op.direction].push(op);
    }
  }
  settle(0);
  return places;
}

function box(cell, level, other) {
  const made = element("section", { class: "box", "data-cell": cell.path },
    element("h3", { onclick: () => select({ cell: cell.path }) }, cell.path === "" ? "step" : cell.name));
  const children = [...cell.children.values()];
  ownOperations(cell).forEach(({ forward, backward, update }, place) => {
    if (place > 0) made.append(box(children[place - 1], level, other));
    if (forward.length + backward.length + update.length === 0) return;
    const onlyUpdates = forward.length + backward.length === 0 ? "updates" : "";
    made.append(element("div", { class: `content ${onlyUpdates}` }, column(forward, other),
      column([...backward, ...update], other)));
  });
  boxes.set(cell.path, made);
  return made;
}

function drawGraph(level, other) {
  chips = new Map();
  boxes = new Map();
  const root = cellTree(level);
  const parts = [...root.children.values()].map((cell) => box(cell, level, other));
  if (root.operations.length > 0 || level.loose.length > 0) {
    const step = box({ ...root, all: root.operations, children: new Map() }, level, other);
    step.append(...level.loose.map(castMark));
    parts.push(step);
  }
  const gone = other ? other.operations.filter((op) => !level.byKey.has(op.key)) : [];
  if (gone.length > 0) {
    parts.push(element("section", { class: "box gone" }, element("h3", {}, `only at ${other.name}`),
      element("p", {}, gone.map((op) => (op.cell ? `${op.name} in ${op.cell}` : op.name)).join(", "))));
  }
  document.getElementById("boxes").replaceChildren(
    element("div", { class: "heads" }, element("b", {}, "forward \u2193"), element("b", {}, "backward \u2191 and update")),
    ...parts);
}

// Edges are drawn of one operation, or inside one Cell: the rest of a step would hide them.
function drawEdges(level, chosen) {
  const canvas = document.getElementById("edges");
  const frame = document.getElementById("boxes");
  const origin = frame.getBoundingClientRect();
  canvas.setAttribute("width", frame.scrollWidth);
  canvas.setAttribute("height", frame.scrollHeight);
  const lines = [];
  const place = (ordinal) => chips.get(ordinal)?.getBoundingClientRect();
  const edge = (from, to, kind) => {
    const a = place(from);
    const b = place(to);
    if (!a || !b || a.width === 0 || b.width === 0) return;
    const sameColumn = Math.abs(a.left - b.left) < a.width / 2;
    const y1 = a.top + a.height / 2 - origin.top;
    const y2 = b.top + b.height / 2 - origin.top;
    let path;
    if (sameColumn) {
      const x1 = a.left - origin.left;
      const x2 = b.left - origin.left;
      const bend = Math.min(x1, x2) - 8 - Math.min(60, Math.abs(y2 - y1) / 14);
      path = `M${x1},${y1} C${bend},${y1} ${bend},${y2} ${x2},${y2}`;
    } else {
      const right = b.left > a.left;
      const x1 = (right ? a.right : a.left) - origin.left;
      const x2 = (right ? b.left : b.right) - origin.left;
      const middle = (x1 + x2) / 2;
      path = `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2}`;
    }
    const cast = level.operations[to - 1].casts.some((number) => level.casts[number].maker === from);
    lines.push(svg("path", { d: path, class: `${kind} ${cast ? "through-cast" : ""}` }));
  };
  for (const op of chosen) {
    for (const maker of op.makers) edge(maker, op.ordinal, "in");
    if (chosen.length === 1) for (const reader of op.readers) edge(op.ordinal, reader, "out");
  }
  canvas.replaceChildren(...lines);
}

// The tree: names, how many operations write which type, casts.
function drawTree(level) {
  const row = (cell, depth) => {
    const { all } = cell;
    const counts = new Map();
    for (const op of all) counts.set(typeClass(op.writes || op.reads), (counts.get(typeClass(op.writes || op.reads)) || 0) + 1);
    const casts = all.reduce((sum, op) => sum + op.ownCasts.length, 0);
    const bar = element("span", { class: "share" });
    for (const [name, count] of [...counts].sort()) bar.append(element("i", { class: name, style: `flex:${count}` }));
    const children = [...cell.children.values()];
    const line = element("div", {
      class: "leaf", role: "treeitem", "data-tree": cell.path, style: `--depth:${depth}`, title: cell.path,
      onclick: (event) => {
        event.preventDefault();
        select({ cell: cell.path });
      },
    }, element("span", { class: "label" }, cell.name), bar,
    element("span", { class: "count" }, `${all.length}`),
    element("span", { class: "casts" }, casts ? `\u2b22 ${casts}` : ""));
    if (children.length === 0) return line;
    const fold = element("button", { class: "fold", title: "Open or close", "aria-label": "Open or close" });
    const inner = element("div", { class: "inner", hidden: depth > 1 }, ...children.map((child) => row(child, depth + 1)));
    fold.addEventListener("click", (event) => {
      event.stopPropagation();
      inner.hidden = !inner.hidden;
      line.classList.toggle("closed", inner.hidden);
    });
    line.classList.toggle("closed", inner.hidden);
    line.prepend(fold);
    return element("div", {}, line, inner);
  };
  document.getElementById("tree").replaceChildren(...[...cellTree(level).children.values()].map((cell) => row(cell, 0)));
}
