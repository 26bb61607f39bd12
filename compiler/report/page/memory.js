// Memory over the step: bytes that are live at each instruction, stacked by what they are for.

const chartWidth = 1200;
const chartHeight = 110;

// What is live at an instruction, each piece of storage once: what is written over an operand takes its place.
function liveAt(memory, instruction) {
  const byOffset = new Map();
  for (const row of memory.storage)
    if (row.first <= instruction && instruction <= row.last) byOffset.set(row.offset, row);
  return [...byOffset.values()].sort((a, b) => b.bytes - a.bytes);
}

const bytesAt = (memory, instruction) => memory.live.reduce((sum, series) => sum + series[instruction], 0);

// The operation that an instruction computes, the first one of its region.
const operationAt = (level, instruction) => level.operations.find((op) => op.instruction === instruction);

// The highest peak of all levels, so that charts of levels can be compared.
const highestPeak = Math.max(...data.levels.map((level) => level.memory?.peak_bytes ?? 0));

function drawMemory(level, instruction) {
  const { memory } = level;
  const count = memory.live[0].length;
  const x = (index) => (index / count) * chartWidth;
  const y = (bytes) => chartHeight - (bytes / Math.max(highestPeak, 1)) * (chartHeight - 6);
  const base = new Array(count).fill(0);
  const areas = memory.live.map((series, use) => {
    let upper = "";
    let lower = "";
    for (let index = 0; index < count; ++index) {
      const from = base[index];
      base[index] += series[index];
      upper += `L${x(index).toFixed(1)},${y(base[index]).toFixed(1)}H${x(index + 1).toFixed(1)}`;
      lower = `L${x(index + 1).toFixed(1)},${y(from).toFixed(1)}H${x(index).toFixed(1)}${lower}`;
    }
    return svg("path", { d: `M${upper.slice(1)}${lower}Z`, class: `use-${memory.uses[use]}` });
  });
  const peakX = x(memory.peak + 0.5);
  const marker = (at, kind) => svg("line", { x1: x(at + 0.5), x2: x(at + 0.5), y1: 0, y2: chartHeight, class: kind });
  const chart = svg("svg", { viewBox: `0 0 ${chartWidth} ${chartHeight}`, preserveAspectRatio: "none", role: "img" },
    ...areas, marker(memory.peak, "peak"),
    svg("circle", { cx: peakX, cy: y(memory.peak_bytes), r: 3, class: "peak" }));
  if (instruction >= 0) chart.append(marker(instruction, "chosen"));
  const at = (event) => {
    const frame = chart.getBoundingClientRect();
    return Math.min(count - 1, Math.max(0, Math.floor(((event.clientX - frame.left) / frame.width) * count)));
  };
  const hover = element("span", { class: "hover" });
  chart.addEventListener("mousemove", (event) => {
    const index = at(event);
    const op = operationAt(level, index);
    hover.textContent = `instruction ${index}${op ? `, ${op.name}${op.cell ? ` in ${op.cell}` : ""}` : ""}: ` +
      formatBytes(bytesAt(memory, index));
  });
  chart.addEventListener("click", (event) => {
    const op = operationAt(level, at(event));
    if (op) select({ op: op.key });
  });
  const peakCell = text(memory.peak_cell);
  const caption = element("figcaption", {}, element("b", {}, "Memory over the step "), "peak ",
    shownBytes(memory.peak_bytes, { id: "peak-bytes" }), " at instruction ", shown(memory.peak, `${memory.peak}`, { id: "peak" }),
    ", ", element("span", { id: "peak-op" }, `${text(memory.peak_op)}${peakCell ? ` in ${peakCell}` : ""}`), " ", hover,
    element("span", { class: "uses" }, ...memory.uses.map((use) => element("span", {}, element("i", { class: `use-${use}` }), use))));
  document.getElementById("memory").replaceChildren(caption, chart);
}
