// The picture: a canvas that is drawn anew when something moves. What would be too small to be seen
// is left out, so the whole of a large graph costs no more than a part of it.

const LEGEND = 40;  // pixels below the graph
const SMALL = 7;  // pixels: the height below which a box has no text, and a group no inside

class Picture {
  constructor(canvas, model) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.items = model.items;
    this.model = model;
    this.view = {x: 0, y: 0, scale: 1};
    this.selected = null;
    this.near = new Map();  // item -> "input" or "output" of what is selected
    this.colours = new Colours(model);
    this.isDue = false;
    this.drawn = 0;  // items of the last picture
    this.style = null;
  }

  request() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.draw();
    });
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    this.request();
  }

  // What is free of the panel and of the legend: width and height.
  room() {
    const panel = document.getElementById("panel"), {clientWidth, clientHeight} = this.canvas;
    const isBeside = panel.clientWidth < clientWidth;
    const width = clientWidth - (isBeside ? panel.clientWidth : 0);
    return [width, clientHeight - (isBeside ? LEGEND : panel.clientHeight)];
  }

  fit() {
    layOut(this.items, this.items[0]);
    const {width, height} = this.items[0], [across, down] = this.room();
    this.place(0, Math.min(1.5, across / (width + 40), down / (height + 40)));
  }

  // Brings the middle of an item to the middle of what is free.
  place(id, scale) {
    const item = this.items[id], [x, y] = this.placeOf(id), [across, down] = this.room();
    this.view = {
      scale,
      x: across / 2 - scale * (x + item.width / 2),
      y: down / 2 - scale * (y + item.height / 2),
    };
    this.request();
  }

  // Where an item stands in the drawing of all.
  placeOf(id) {
    let x = 0, y = 0;
    for (const at of pathOf(this.items, id)) {
      if (at === 0) continue;
      x += this.items[at].x;
      y += this.items[at].y;
    }
    return [x, y];
  }

  center(id) {
    layOut(this.items, this.items[0]);
    this.place(id, Math.min(1.2, Math.max(this.view.scale, 0.8)));
  }

  zoom(factor, x, y) {
    const {view} = this;
    const scale = Math.min(6, Math.max(0.002, view.scale * factor));
    view.x = x - (x - view.x) * scale / view.scale;
    view.y = y - (y - view.y) * scale / view.scale;
    view.scale = scale;
    this.request();
  }

  // The innermost item at a point of the canvas; null for none.
  at(x, y) {
    const {view, items} = this;
    let px = (x - view.x) / view.scale, py = (y - view.y) / view.scale;
    let found = null, group = items[0];
    for (;;) {
      const inside = group.children.map((id) => items[id]).find((item) =>
        px >= item.x && px <= item.x + item.width && py >= item.y && py <= item.y + item.height);
      if (!inside) return found;
      found = inside;
      const isShown = inside.isGroup && inside.isOpen && inside.height * view.scale >= 4 * SMALL;
      if (!isShown) return found;
      px -= inside.x;
      py -= inside.y;
      group = inside;
    }
  }

  draw() {
    layOut(this.items, this.items[0]);
    const {context, canvas, view} = this;
    const ratio = canvas.width / Math.max(1, canvas.clientWidth);
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    this.style = {front: read("--front"), faint: read("--faint"), line: read("--line"),
      box: read("--box"), back: read("--back"), accent: read("--accent")};
    this.colours.isDark = window.matchMedia("(prefers-color-scheme: dark)").matches;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    context.font = FONT;
    context.textBaseline = "middle";
    this.drawn = 0;
    this.labels = [];
    this.inside(this.items[0], view.x, view.y);
    document.body.dataset.drawn = this.drawn;
  }

  // The children of an open group whose corner is at (x, y) of the canvas.
  inside(group, x, y) {
    const {view, items} = this;
    const s = view.scale;
    const isSeen = s * LEAF > SMALL || group.children.some((id) => items[id].isOpen);
    if (isSeen) {
      for (const edge of group.layout.edges) this.edge(edge, x, y);
      for (const edge of group.layout.edges) this.label(edge, x, y);
    }
    for (const item of group.layout.aside) this.stubs(group, item, x, y);
    for (const child of group.children) {
      const item = items[child];
      const left = x + s * item.x, top = y + s * item.y;
      if (left > this.canvas.clientWidth || top > this.canvas.clientHeight ||
          left + s * item.width < 0 || top + s * item.height < 0) continue;
      this.box(item, left, top);
    }
  }

  box(item, x, y) {
    const {context, view, style} = this;
    const s = view.scale, width = s * item.width, height = s * item.height;
    const isShown = item.isGroup && item.isOpen && height >= 4 * SMALL;
    const near = this.near.get(item.id);
    this.drawn++;
    if (height <= SMALL && !near && item !== this.selected) {
      context.fillStyle = this.colours.of(item);
      context.fillRect(x, y, Math.max(width, 1), Math.max(height, 1));
      return;
    }
    context.fillStyle = isShown ? style.box : this.colours.of(item);
    context.globalAlpha = isShown ? 0.6 : 1;
    const radius = Math.min(height / 2, s * (item.isGroup ? 4 : LEAF / 2));
    context.beginPath();
    context.roundRect(x, y, width, height, radius);
    context.fill();
    context.globalAlpha = 1;
    context.lineWidth = item === this.selected ? 3 : near ? 2 : 1;
    context.strokeStyle = item === this.selected ? style.accent
      : near === "input" ? "#0d9488" : near === "output" ? "#c2410c"
      : isShown ? this.colours.of(item, true) : style.line;
    context.stroke();
    if (isShown) {
      if (s * HEADER > SMALL) this.text(item.label, x + 8 * s, y + s * HEADER * 0.6, width - 16 * s, s);
      this.inside(item, x, y);
    } else if (height > SMALL) {
      context.textAlign = "center";
      this.text(textOf(item), x + width / 2, y + height / 2, width - 12 * s, s, this.colours.textOn(item));
      context.textAlign = "left";
    }
  }

  // A text; `halo` is the colour of what is behind it, where lines would run through it.
  text(text, x, y, width, scale, colour = this.style.front, halo = "") {
    const {context} = this;
    context.save();
    context.translate(x, y);
    context.scale(scale, scale);
    const shown = shortened(text, width / scale);
    if (halo) {
      context.strokeStyle = halo;
      context.lineWidth = 4;
      context.lineJoin = "round";
      context.strokeText(shown, 0, 0);
    }
    context.fillStyle = colour;
    context.fillText(shown, 0, 0);
    context.restore();
  }

  // The points of an edge on the canvas, with its ends; null where it is not seen.
  route(edge, x, y) {
    const {view, items, canvas} = this;
    const s = view.scale;
    const from = items[edge.source], to = items[edge.target];
    const start = [from.x + from.width / 2, from.y + from.height];
    const end = [to.x + to.width / 2, to.y];
    const points = [start, ...edge.points, end].map(([px, py, turns]) => [x + s * px, y + s * py, turns]);
    const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
    const isSeen = Math.max(...xs) >= 0 && Math.min(...xs) <= canvas.clientWidth &&
      Math.max(...ys) >= 0 && Math.min(...ys) <= canvas.clientHeight;
    return isSeen ? points : null;
  }

  isChosen(edge) {
    return this.selected && (edge.source === this.selected.id || edge.target === this.selected.id);
  }

  edge(edge, x, y) {
    const {context, view, style} = this;
    const s = view.scale;
    const points = s < 0.05 ? null : this.route(edge, x, y);
    if (!points) return;
    const isNear = this.isChosen(edge);
    context.strokeStyle = isNear ? style.accent : edge.kind === REFERENCE ? "#d97706" : style.faint;
    context.globalAlpha = isNear ? 1 : 0.65;
    context.lineWidth = (1 + Math.min(3, Math.log2(edge.count) / 2)) * Math.max(0.4, Math.min(1, s));
    context.setLineDash(edge.kind === CONTROL ? [2 * s + 1, 3 * s + 1] : []);
    context.beginPath();
    context.moveTo(points[0][0], points[0][1]);
    for (let i = 1; i < points.length; i++) {
      const [ax, ay, turned] = points[i - 1], [bx, by, turns] = points[i];
      if (turns) {
        context.arcTo(bx, by, points[i + 1][0], points[i + 1][1], 8 * s);
      } else if (turned) {
        context.lineTo(bx, by);
      } else {
        const middle = (by - ay) / 2;
        context.bezierCurveTo(ax, ay + middle, bx, by - middle, bx, by);
      }
    }
    context.stroke();
    context.setLineDash([]);
    const [last, end] = points.slice(-2);
    if (s > 0.3) this.arrow(end, s, end[1] < last[1]);
    context.globalAlpha = 1;
  }

  // The size of what goes along an edge, where no other stands.
  label(edge, x, y) {
    const {context, view, style} = this;
    const s = view.scale;
    const isNear = this.isChosen(edge);
    if (s <= 0.55 || edge.kind !== DATA || !(edge.labelAt || isNear)) return;
    const text = edge.label || (edge.count > 1 ? `${edge.count} tensors` : "");
    const points = text ? this.route(edge, x, y) : null;
    if (!points) return;
    let at = edge.labelAt === "source" ? 1 : points.length - 1;
    const turn = points.findIndex((p) => p[2]);
    if (turn >= 0) at = turn + 3;  // above the next column
    const [[ax, ay], [bx, by]] = [points[at - 1], points[at]];
    const shown = shortened(text, 200);
    const width = 0.8 * s * textWidth(shown) + 4, height = 12 * s;
    const middle = [(ax + bx) / 2, (ay + by) / 2];
    const box = [middle[0] - width / 2, middle[1] - height / 2, middle[0] + width / 2, middle[1] + height / 2];
    const isFree = this.labels.every((l) =>
      box[0] >= l[2] || box[2] <= l[0] || box[1] >= l[3] || box[3] <= l[1]);
    if (!isFree) return;
    this.labels.push(box);
    context.textAlign = "center";
    this.text(shown, middle[0], middle[1], 200 * s, 0.8 * s, isNear ? style.accent : style.faint, style.back);
    context.textAlign = "left";
  }

  arrow([x, y], s, isUp) {
    const {context} = this;
    const size = 4 * s * (isUp ? -1 : 1);
    context.fillStyle = context.strokeStyle;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x - Math.abs(size) * 0.8, y - 1.6 * size);
    context.lineTo(x + Math.abs(size) * 0.8, y - 1.6 * size);
    context.fill();
  }

  // What is set aside is joined by a line when it, or what it is joined with, is selected.
  stubs(group, item, x, y) {
    const {context, view, style, items} = this;
    const s = view.scale;
    const chosen = this.selected && this.selected.id;
    for (const edge of group.edges) {
      const isOwn = edge.source === item.id || edge.target === item.id;
      if (!isOwn || (edge.source !== chosen && edge.target !== chosen)) continue;
      const other = items[edge.source === item.id ? edge.target : edge.source];
      context.strokeStyle = style.accent;
      context.lineWidth = 1;
      context.setLineDash(edge.kind === CONTROL ? [3, 3] : []);
      context.beginPath();
      context.moveTo(x + s * item.x, y + s * (item.y + item.height / 2));
      context.lineTo(x + s * (other.x + other.width), y + s * (other.y + other.height / 2));
      context.stroke();
      context.setLineDash([]);
    }
  }
}

function shortened(text, width) {
  const whole = textWidth(text);
  if (whole <= width) return text;
  return `${text.slice(0, Math.max(1, Math.floor(text.length * width / whole) - 1))}\u2026`;
}

// What colour an item has, by what the user wants to see.
class Colours {
  constructor(model) {
    this.model = model;
    this.by = "structure";
    this.isDark = false;
    const leaves = model.items.filter((item) => !item.isGroup);
    this.most = {time: 0, memory: 0};
    for (const item of leaves) {
      this.most.time = Math.max(this.most.time, item.micros || 0);
      this.most.memory = Math.max(this.most.memory, item.bytes || 0);
    }
    this.hues = new Map();
  }

  hue(key) {
    if (!this.hues.has(key)) this.hues.set(key, (this.hues.size * 137.508) % 360);
    return this.hues.get(key);
  }

  // Colours are kept until what they tell of, or the page, is another.
  of(item, isBorder = false) {
    const key = `${this.by} ${this.isDark}`;
    if (key !== this.key) {
      this.key = key;
      this.kept = [new Map(), new Map()];
    }
    const kept = this.kept[Number(isBorder)];
    if (!kept.has(item.id)) kept.set(item.id, this.make(item, isBorder));
    return kept.get(item.id);
  }

  make(item, isBorder) {
    const light = isBorder ? (this.isDark ? 55 : 60) : this.isDark ? 30 : 86;
    if (this.by === "time" || this.by === "memory") return this.heat(item);
    if (this.by === "device") {
      const devices = this.devicesOf(item);
      if (devices.size !== 1) return `hsl(0 0% ${light}%)`;
      return `hsl(${this.hue(`device ${[...devices][0]}`)} 55% ${light}%)`;
    }
    if (item.isGroup) {
      const alike = this.model.alike.get(item.structure) || 0;
      if (alike < 2) return `hsl(220 8% ${light}%)`;
      return `hsl(${this.hue(`group ${item.structure}`)} 62% ${light}%)`;
    }
    return `hsl(${this.hue(`op ${item.op}`)} 38% ${this.isDark ? 26 : 90}%)`;
  }

  heat(item) {
    const value = this.by === "time" ? item.micros : item.bytes;
    if (value === null) return this.isDark ? "hsl(220 6% 24%)" : "hsl(220 6% 92%)";
    const share = Math.sqrt(Math.min(1, value / (this.most[this.by] || 1)));
    return `hsl(${50 - 50 * share} 90% ${this.isDark ? 25 + 25 * share : 90 - 38 * share}%)`;
  }

  textOn(item) {
    const isHot = (this.by === "time" || this.by === "memory") && !this.isDark;
    return isHot || !this.isDark ? "#1d2433" : "#e6e9f0";
  }

  devicesOf(item) {
    if (!item.devices) {
      item.devices = new Set(item.isGroup
        ? item.children.flatMap((id) => [...this.devicesOf(this.model.items[id])])
        : [item.device]);
    }
    return item.devices;
  }
}
