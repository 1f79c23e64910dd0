// Layered drawings of open groups (Sugiyama, Tagawa and Toda, 1981): layers, an order in each that
// crosses few edges, then places. An edge over several layers passes a bend in each of them.

const FONT = "12px system-ui, sans-serif";
const GAP_X = 14, GAP_Y = 34, PADDING = 16, HEADER = 20, LEAF = 24, BEND = 6, MOST_WIDE = 240;
const ASPECT = 1.6;  // of what is drawn, where there is a choice: width by height
const SWEEPS = 6;
const MOST_LABELS = 4;  // of edges at one end of an item
const MOST_BENDS = 4000;  // with more, long edges are drawn straight

const measured = new Map();
const ruler = document.createElement("canvas").getContext("2d");

function textWidth(text) {
  let width = measured.get(text);
  if (width === undefined) {
    ruler.font = FONT;
    measured.set(text, width = ruler.measureText(text).width);
  }
  return width;
}

function boxWidth(text) {
  return Math.max(LEAF, Math.min(MOST_WIDE, 16 + textWidth(text)));
}

function textOf(item) {
  return item.isGroup ? `${item.label} (${item.operations})` : item.label;
}

// Gives each item of an open group its place and size in the group, and the group its size.
function layOut(items, group) {
  if (group.layout) return;
  for (const child of group.children.map((id) => items[id])) {
    if (child.isGroup && child.isOpen) {
      layOut(items, child);
    } else {
      child.width = boxWidth(textOf(child));
      child.height = LEAF;
    }
  }
  const main = group.children.filter((id) => !group.aside.has(id));
  const isMain = new Set(main);
  const edges = withPoints(group.edges.filter((e) => isMain.has(e.source) && isMain.has(e.target)));
  const parts = components(main, edges).map((part) => layOutPart(items, part));
  const [width, height] = pack(parts);
  finish(items, group, parts, width, height);
}

// What is joined by edges is drawn together, and by itself.
function components(ids, edges) {
  const near = new Map(ids.map((id) => [id, []]));
  for (const e of edges) {
    near.get(e.source).push(e);
    near.get(e.target).push(e);
  }
  const found = new Map(), parts = [];
  for (const id of ids) {
    if (!found.has(id)) {
      const waiting = [id];
      found.set(id, parts.length);
      while (waiting.length) {
        const at = waiting.pop();
        for (const e of near.get(at)) {
          const other = e.source === at ? e.target : e.source;
          if (found.has(other)) continue;
          found.set(other, parts.length);
          waiting.push(other);
        }
      }
      parts.push({ids: [], edges: []});
    }
    parts[found.get(id)].ids.push(id);
  }
  for (const e of edges) parts[found.get(e.source)].edges.push(e);
  return parts;
}

function layOutPart(items, {ids, edges}) {
  const layers = splitLayers(items, ids, makeLayers(ids, edges));
  const {rows, chains} = addBends(items, layers, edges);
  orderRows(rows, chains);
  placeRows(rows);
  placeLayers(rows);
  const {width, height, columns} = fold(rows);
  return {cells: rows.flat(), chains, columns, width, height, x: 0, y: 0};
}

// Parts on shelves, the highest first, of about the shape of a screen.
function pack(parts) {
  let area = 0, widest = 0;
  for (const part of parts) {
    area += (part.width + 2 * GAP_X) * (part.height + GAP_Y);
    widest = Math.max(widest, part.width);
  }
  const limit = Math.max(widest, Math.sqrt(ASPECT * area));
  let x = 0, y = 0, shelf = 0, width = 0;
  for (const part of [...parts].sort((a, b) => b.height - a.height)) {
    if (x > 0 && x + part.width > limit) {
      x = 0;
      y += shelf + GAP_Y;
      shelf = 0;
    }
    part.x = x;
    part.y = y;
    shelf = Math.max(shelf, part.height);
    width = Math.max(width, x + part.width);
    x += part.width + 2 * GAP_X;
  }
  return [width, y + shelf];
}

// Edges with room for their points, and the end at which there is room for a label.
function withPoints(edges) {
  const into = new Map(), from = new Map();
  for (const e of edges) {
    into.set(e.target, (into.get(e.target) || 0) + 1);
    from.set(e.source, (from.get(e.source) || 0) + 1);
  }
  return edges.map((e) => {
    const [a, b] = [from.get(e.source), into.get(e.target)];
    const labelAt = Math.min(a, b) > MOST_LABELS ? "" : a < b ? "source" : "target";
    return {...e, points: [], labelAt};
  });
}

// The layer of each item: one more than the highest of those before it. Edges that close a cycle
// are left out of that.
function makeLayers(ids, edges) {
  const out = new Map(ids.map((id) => [id, []]));
  for (const e of edges) out.get(e.source).push(e);
  const state = new Map(), order = [];
  for (const root of ids) {
    if (state.has(root)) continue;
    const stack = [[root, 0]];
    state.set(root, 1);
    while (stack.length) {
      const top = stack[stack.length - 1];
      const next = out.get(top[0])[top[1]++];
      if (!next) {
        state.set(top[0], 2);
        order.push(top[0]);
        stack.pop();
      } else if (!state.has(next.target)) {
        state.set(next.target, 1);
        stack.push([next.target, 0]);
      } else if (state.get(next.target) === 1) {
        next.isBack = true;
      }
    }
  }
  order.reverse();
  const layer = new Map(ids.map((id) => [id, 0]));
  for (const id of order) {
    for (const e of out.get(id)) {
      if (!e.isBack) layer.set(e.target, Math.max(layer.get(e.target), layer.get(id) + 1));
    }
  }
  // What nothing leads to stands just before what takes it.
  const hasInput = new Set(edges.filter((e) => !e.isBack).map((e) => e.target));
  for (const id of [...order].reverse()) {
    const ahead = out.get(id).filter((e) => !e.isBack).map((e) => layer.get(e.target));
    if (!hasInput.has(id) && ahead.length) layer.set(id, Math.min(...ahead) - 1);
  }
  return layer;
}

const WIDE = 3, LEAST_SPLIT = 900;

// A layer that is much wider than the whole is high becomes several, one below the other.
function splitLayers(items, ids, layer) {
  const widths = [], heights = [];
  for (const id of ids) {
    const at = layer.get(id);
    widths[at] = (widths[at] || 0) + items[id].width + GAP_X;
    heights[at] = Math.max(heights[at] || 0, items[id].height + GAP_Y);
  }
  const height = heights.reduce((sum, h) => sum + h, 0);
  const area = heights.reduce((sum, h, i) => sum + h * widths[i], 0);
  const limit = Math.max(LEAST_SPLIT, WIDE * height, Math.sqrt(ASPECT * area));
  const start = [];  // the first of the layers that a layer becomes
  let count = 0;
  for (const [at, width] of [...widths].entries()) {
    start[at] = count;
    count += Math.max(1, Math.ceil((width || 0) / limit));
  }
  const used = widths.map(() => 0);
  const result = new Map();
  for (const id of ids) {
    const at = layer.get(id);
    const parts = Math.max(1, Math.ceil(widths[at] / limit));
    result.set(id, start[at] + Math.min(parts - 1, Math.floor(used[at] * parts / widths[at])));
    used[at] += items[id].width + GAP_X;
  }
  return result;
}

// Rows of cells, of items and of bends; and for each edge the cells that it passes.
function addBends(items, layer, edges) {
  const rows = [];
  const cells = new Map();
  const add = (row, cell) => {
    (rows[row] ||= []).push(cell);
    return cell;
  };
  for (const [id, row] of layer) {
    cells.set(id, add(row, {item: items[id], width: items[id].width, height: items[id].height,
      row, x: 0, up: [], down: []}));
  }
  let bends = 0;
  const chains = [];
  const shared = new Map();
  const [out, into] = [new Map(), new Map()];
  for (const e of edges) {
    out.set(e.source, (out.get(e.source) || 0) + 1);
    into.set(e.target, (into.get(e.target) || 0) + 1);
  }
  // Long edges of one kind from one item, or to one item, are one line as far as they go.
  const bend = (e, row) => {
    const end = out.get(e.source) >= into.get(e.target) ? `from ${e.source}` : `to ${e.target}`;
    const key = `${end} ${row} ${e.kind}`;
    if (!shared.has(key)) {
      bends++;
      shared.set(key, add(row, {item: null, width: BEND, height: 0, row, x: 0, up: [], down: []}));
    }
    return shared.get(key);
  };
  for (const e of edges) {
    const flip = layer.get(e.source) > layer.get(e.target);
    const [from, to] = flip ? [e.target, e.source] : [e.source, e.target];
    const chain = [cells.get(from)];
    if (bends <= MOST_BENDS) {
      for (let row = layer.get(from) + 1; row < layer.get(to); row++) chain.push(bend(e, row));
    }
    chain.push(cells.get(to));
    for (let i = 1; i < chain.length; i++) {
      if (chain[i].row > chain[i - 1].row && !chain[i - 1].down.includes(chain[i])) {
        chain[i - 1].down.push(chain[i]);
        chain[i].up.push(chain[i - 1]);
      }
    }
    chains.push({edge: e, cells: flip ? [...chain].reverse() : chain});
  }
  for (let row = 0; row < rows.length; row++) rows[row] ||= [];
  return {rows, chains};
}

// Barycenters, down and up; the order with the fewest crossings is kept.
function orderRows(rows) {
  const number = (row) => row.forEach((cell, i) => { cell.place = i; });
  rows.forEach(number);
  let best = rows.map((row) => [...row]), least = crossings(rows);
  for (let sweep = 0; sweep < SWEEPS && least > 0; sweep++) {
    const isDown = sweep % 2 === 0;
    for (const row of isDown ? rows : [...rows].reverse()) {
      for (const cell of row) {
        const near = isDown ? cell.up : cell.down;
        cell.key = near.length ? near.reduce((s, n) => s + n.place, 0) / near.length : cell.place;
      }
      row.sort((a, b) => a.key - b.key || a.place - b.place);
      number(row);
    }
    const found = crossings(rows);
    if (found < least) {
      least = found;
      best = rows.map((row) => [...row]);
    }
  }
  best.forEach((row, i) => { rows[i] = row; number(row); });
}

// How many pairs of edges cross (Barth, Juenger and Mutzel, 2002: by a tree of counts).
function crossings(rows) {
  let total = 0;
  for (let i = 1; i < rows.length; i++) {
    const count = new Int32Array(rows[i].length + 1);
    let seen = 0;
    for (const cell of rows[i - 1]) {
      const places = cell.down.map((c) => c.place);
      for (const place of places) {
        let before = 0;
        for (let k = place + 1; k > 0; k -= k & -k) before += count[k];
        total += seen - before;
      }
      for (const place of places) {
        for (let k = place + 1; k <= rows[i].length; k += k & -k) count[k]++;
      }
      seen += places.length;
    }
  }
  return total;
}

// Along each row: cells are drawn to the middle of their neighbours, as far as the others let them.
function placeRows(rows) {
  for (const row of rows) {
    let x = 0;
    for (const cell of row) {
      cell.x = x + cell.width / 2;
      x += cell.width + GAP_X;
    }
  }
  for (let sweep = 0; sweep < 2 * SWEEPS; sweep++) {
    const isDown = sweep % 2 === 0;
    for (const row of isDown ? rows : [...rows].reverse()) settle(row, isDown ? "up" : "down");
  }
}

// The places nearest to the wishes (least squares) in which no two cells overlap: neighbours that
// would overlap become a block that moves as one, to the mean of the wishes of its cells.
function settle(row, side) {
  const blocks = [];
  let offset = 0;
  for (const cell of row) {
    const near = cell[side];
    const wish = near.length ? median(near.map((n) => n.x)) : cell.x;
    const weight = near.length ? (cell.item ? 1 : 4) : 0.1;  // long edges are straight
    offset += cell.width / 2;
    blocks.push({sum: weight * (wish - offset), weight, cells: [[cell, offset]]});
    offset += cell.width / 2 + GAP_X;
    for (let i = blocks.length - 1; i > 0; i--) {
      const [a, b] = [blocks[i - 1], blocks[i]];
      if (a.sum / a.weight <= b.sum / b.weight) break;
      a.sum += b.sum;
      a.weight += b.weight;
      for (const pair of b.cells) a.cells.push(pair);
      blocks.pop();
    }
  }
  for (const block of blocks) {
    for (const [cell, at] of block.cells) cell.x = block.sum / block.weight + at;
  }
}

function median(numbers) {
  numbers.sort((a, b) => a - b);
  const middle = numbers.length >> 1;
  return numbers.length % 2 ? numbers[middle] : (numbers[middle - 1] + numbers[middle]) / 2;
}

function placeLayers(rows) {
  let y = 0;
  for (const row of rows) {
    const height = Math.max(BEND, ...row.map((c) => c.height));
    row.forEach((c) => { c.y = y + height / 2; });
    y += height + GAP_Y;
  }
}

const TALL = 3, LEAST_FOLDED = 700;

// Moves what has been placed to a corner at 0, and gives its size. What is much taller than wide, a
// chain, goes on in columns side by side.
function fold(rows) {
  const all = boxOf(rows.flat());
  const height = all.bottom - all.top, width = all.right - all.left;
  const isTall = height > TALL * width && height > LEAST_FOLDED;
  const boxes = rows.filter((r) => r.length).map(boxOf);
  const mean = boxes.reduce((sum, box) => sum + box.right - box.left, 0) / (boxes.length || 1);
  const count = isTall ? Math.round(Math.sqrt(ASPECT * height / (mean + 2 * GAP_Y))) : 1;
  const groups = [[]];
  let top = all.top;
  for (const row of rows.filter((r) => r.length)) {
    const box = boxOf(row);
    if (count > 1 && groups[groups.length - 1].length && box.bottom - top > 1.1 * height / count) {
      groups.push([]);
      top = box.top;
    }
    groups[groups.length - 1].push(...row);
  }
  let x = 0, lowest = 0;
  const columns = [];
  for (const [column, cells] of groups.entries()) {
    const box = boxOf(cells);
    for (const cell of cells) {
      cell.x += x - box.left;
      cell.y -= box.top;
      cell.column = column;
    }
    columns.push({left: x, bottom: box.bottom - box.top, turns: 0});
    x += box.right - box.left + 2 * GAP_Y;
    lowest = Math.max(lowest, box.bottom - box.top);
  }
  return {width: Math.max(0, x - 2 * GAP_Y), height: lowest, columns};
}

const TURN = 10;  // beyond a column, where an edge leaves it for the next

// The points of an edge between its ends: bends, and the corners of its way to another column.
function pointsOf(cells, columns) {
  const points = [];
  for (let i = 1; i < cells.length; i++) {
    const [a, b] = [cells[i - 1], cells[i]];
    if (a.column !== b.column) {
      const [from, to] = a.column < b.column ? [a, b] : [b, a];
      const [before, after] = [columns[from.column], columns[to.column]];
      const aside = 4 * (after.turns++ % 3);
      const x = after.left - GAP_Y + aside, low = before.bottom + TURN - aside, high = -TURN + aside;
      const corners = [[from.x, low], [x, low], [x, high], [to.x, high]];
      if (from === b) corners.reverse();
      points.push(...corners.map(([px, py]) => [px, py, true]));
    }
    if (i < cells.length - 1) points.push([b.x, b.y, false]);
  }
  return points;
}

function boxOf(cells) {
  const box = {left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity};
  for (const c of cells) {
    box.left = Math.min(box.left, c.x - c.width / 2);
    box.right = Math.max(box.right, c.x + c.width / 2);
    box.top = Math.min(box.top, c.y - c.height / 2);
    box.bottom = Math.max(box.bottom, c.y + c.height / 2);
  }
  return cells.length ? box : {left: 0, right: 0, top: 0, bottom: 0};
}

// The places of items in their group, the points of edges, and the group's own size.
function finish(items, group, parts, width, height) {
  for (const part of parts) {
    const left = PADDING + part.x, top = HEADER + PADDING + part.y;
    for (const cell of part.cells) {
      if (cell.item) {
        cell.item.x = left + cell.x - cell.item.width / 2;
        cell.item.y = top + cell.y - cell.item.height / 2;
      }
    }
    for (const {edge, cells} of part.chains) {
      edge.points = pointsOf(cells, part.columns).map(([x, y, turns]) => [left + x, top + y, turns]);
    }
  }
  let x = PADDING + width + (width ? GAP_X * 2 : 0), y = HEADER + PADDING, widest = 0;
  const aside = group.children.filter((id) => group.aside.has(id)).map((id) => items[id]);
  const limit = Math.max(height, 240);
  for (const item of aside) {
    if (y > HEADER + PADDING && y + item.height > HEADER + PADDING + limit) {
      x += widest + GAP_X;
      y = HEADER + PADDING;
      widest = 0;
    }
    item.x = x;
    item.y = y;
    y += item.height + 8;
    widest = Math.max(widest, item.width);
  }
  const bottom = Math.max(HEADER + PADDING + height, ...aside.map((i) => i.y + i.height));
  group.width = Math.max(x + widest + PADDING - (aside.length ? 0 : width ? GAP_X * 2 : 0),
    boxWidth(group.label) + 2 * PADDING);
  group.height = bottom + PADDING;
  group.layout = {edges: parts.flatMap((p) => p.chains.map((c) => c.edge)), aside};
}

// Forget what depends on the size of an item: the drawings of the groups around it.
function forgetLayout(items, id) {
  for (const at of pathOf(items, id)) items[at].layout = null;
}
