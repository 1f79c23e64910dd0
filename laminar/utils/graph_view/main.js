// The page: mouse, keys, search, and what is open.

const MOST_FOUND = 60;
const MOST_OPENED = 220;  // items that are shown at first

class App {
  constructor(model) {
    this.model = model;
    this.items = model.items;
    this.canvas = document.getElementById("canvas");
    this.picture = new Picture(this.canvas, model);
    this.listen();
    new ResizeObserver(() => this.picture.resize()).observe(this.canvas);
    this.picture.resize();
    this.openFirst();
    this.picture.fit();
    showLegend(this.picture);
    this.told();
  }

  // What holds most of the graph is opened at once, and a small graph whole.
  openFirst() {
    const count = this.items[0].operations;
    let shown = this.items[0].children.length;
    for (let group = this.items[0]; group; ) {
      const inside = group.children.map((id) => this.items[id]);
      group = inside.find((item) => item.isGroup && 2 * item.operations > count);
      if (!group || (shown += group.children.length) > MOST_OPENED) break;
      group.isOpen = true;
    }
    if (shown <= 40 && count <= 60) this.openAll(false);
  }

  told() {
    const open = this.items.filter((item) => item.isGroup && item.isOpen).length - 1;
    const count = this.items[0].operations;
    document.getElementById("status").textContent = `operations: ${count}, open groups: ${open}`;
    document.body.dataset.operations = count;
  }

  setOpen(item, isOpen) {
    item.isOpen = isOpen;
    forgetLayout(this.items, item.id);
    this.picture.request();
    this.told();
  }

  // Opens or closes a group; its corner stays where it is seen.
  toggle(item) {
    const {picture} = this;
    const [x, y] = picture.placeOf(item.id);
    this.setOpen(item, !item.isOpen);
    layOut(this.items, this.items[0]);
    const [newX, newY] = picture.placeOf(item.id);
    picture.view.x += picture.view.scale * (x - newX);
    picture.view.y += picture.view.scale * (y - newY);
    this.select(this.picture.selected);
  }

  openAll(isFitted = true) {
    for (const item of this.items) {
      if (item.isGroup) {
        item.isOpen = true;
        item.layout = null;
      }
    }
    this.told();
    if (isFitted) this.picture.fit();
  }

  closeAll() {
    for (const item of this.items) {
      if (item.isGroup && item.id) item.isOpen = false;
      item.layout = null;
    }
    this.select(null);
    this.told();
    this.picture.fit();
  }

  select(item) {
    const {picture, items} = this;
    picture.selected = item;
    picture.near = new Map();
    if (item && !item.isGroup) {
      for (const link of item.inputs) picture.near.set(visibleOf(items, link.item), "input");
      for (const link of item.consumers) picture.near.set(visibleOf(items, link.item), "output");
    }
    showPanel(this, item);
    picture.request();
  }

  // Opens what is around an item, selects it, and brings it to the middle.
  show(id) {
    for (const at of pathOf(this.items, id).slice(0, -1)) {
      if (!this.items[at].isOpen) this.setOpen(this.items[at], true);
    }
    this.select(this.items[id]);
    this.picture.center(id);
  }

  search(text) {
    const list = document.getElementById("found");
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    list.replaceChildren();
    list.hidden = !words.length;
    if (!words.length) return;
    let count = 0;
    for (const item of this.items) {
      if (!item.id) continue;
      const name = nameOf(this.items, item.id);
      const full = `${name} ${item.op || ""}`.toLowerCase();
      if (!words.every((word) => full.includes(word))) continue;
      if (++count > MOST_FOUND) continue;
      const row = element("li", item.isGroup ? `${name}/` : `${name}  (${item.op})`);
      row.onclick = () => {
        list.hidden = true;
        this.show(item.id);
      };
      list.append(row);
    }
    if (count > MOST_FOUND) list.append(element("li", `and ${count - MOST_FOUND} more`));
    if (!count) list.append(element("li", "no operation or group has this name"));
  }

  listen() {
    const {canvas, picture} = this;
    const on = (id, event, handler) => document.getElementById(id).addEventListener(event, handler);
    on("fit", "click", () => picture.fit());
    on("open", "click", () => this.openAll());
    on("close", "click", () => this.closeAll());
    on("colour", "change", (event) => {
      picture.colours.by = event.target.value;
      showLegend(picture);
      picture.request();
    });
    on("search", "input", (event) => this.search(event.target.value));
    on("search", "keydown", (event) => {
      if (event.key === "Enter") document.querySelector("#found li")?.click();
      if (event.key === "Escape") document.getElementById("found").hidden = true;
    });
    this.listenToMouse(canvas, picture);
    document.addEventListener("keydown", (event) => {
      if (event.target.tagName === "INPUT") return;
      if (event.key === "/") {
        event.preventDefault();
        document.getElementById("search").focus();
      } else if (event.key === "f") {
        picture.fit();
      } else if (event.key === "Escape") {
        this.select(null);
      } else if (event.key === "Enter" && picture.selected?.isGroup) {
        this.toggle(picture.selected);
      }
    });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => picture.request());
  }

  listenToMouse(canvas, picture) {
    const down = new Map();  // pointer -> where it is: two fingers zoom
    let hasMoved = false;
    const middle = () => {
      const places = [...down.values()];
      const [x, y] = [0, 1].map((i) => places.reduce((sum, p) => sum + p[i], 0) / places.length);
      return [x, y, places.length > 1 ? Math.hypot(places[0][0] - x, places[0][1] - y) : 1];
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      hasMoved = down.size > 0;
      down.set(event.pointerId, [event.offsetX, event.offsetY]);
    });
    canvas.addEventListener("pointermove", (event) => {
      const last = down.get(event.pointerId);
      if (!last) return;
      const place = [event.offsetX, event.offsetY];
      if (!hasMoved && Math.hypot(place[0] - last[0], place[1] - last[1]) < 4) return;
      hasMoved = true;
      canvas.classList.add("moving");
      const [x, y, size] = middle();
      down.set(event.pointerId, place);
      const [newX, newY, newSize] = middle();
      picture.view.x += newX - x;
      picture.view.y += newY - y;
      picture.zoom(newSize / Math.max(size, 1), newX, newY);
    });
    const up = (event) => {
      const isClick = down.delete(event.pointerId) && !hasMoved && event.type === "pointerup";
      if (isClick) this.select(picture.at(event.offsetX, event.offsetY));
      canvas.classList.remove("moving");
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("dblclick", (event) => {
      const item = picture.at(event.offsetX, event.offsetY);
      if (item?.isGroup) this.toggle(item);
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      picture.zoom(Math.exp(-event.deltaY * 0.0015), event.offsetX, event.offsetY);
    }, {passive: false});
  }
}

readModel().then((model) => {
  window.graphView = new App(model);
  document.body.dataset.ready = "yes";
}, (error) => {
  document.getElementById("status").textContent = `the page cannot be shown: ${error.message}`;
});
