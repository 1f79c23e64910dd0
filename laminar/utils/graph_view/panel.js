// What is told of an item. All texts are set as text: what a user named is no HTML.

function element(tag, text = "", className = "") {
  const found = document.createElement(tag);
  found.textContent = text;
  if (className) found.className = className;
  return found;
}

function showPanel(app, item) {
  const panel = document.getElementById("panel");
  panel.replaceChildren();
  panel.hidden = item === null;
  if (item === null) return;
  const close = element("button", "\u00d7");
  close.title = "close";
  close.onclick = () => app.select(null);
  panel.append(close, element("h2", nameOf(app.items, item.id)));
  const part = (title, ...nodes) => panel.append(element("h3", title), ...nodes);
  if (item.isGroup) {
    panel.append(element("p", `${item.operations} operations`, "faint"));
    const alike = app.model.alike.get(item.structure) || 0;
    if (alike > 1) panel.append(element("p", `${alike} groups have this structure`, "faint"));
  } else {
    panel.append(element("p", item.op, "faint"));
    if (item.outputs) part("outputs", element("code", item.outputs));
    if (item.line) part("created at", element("p", item.line), element("pre", item.code));
    if (item.layer) part("layer", element("p", item.layer));
    if (item.device) part("device", element("p", item.device));
  }
  if (item.micros !== null) {
    part("the traced step", element("p", `${micros(item.micros)}, output ${bytes(item.bytes)}`));
  }
  if (!item.isGroup) {
    if (item.attributes) part("attributes", element("pre", item.attributes));
    links(app, part, "inputs", item.inputs);
    links(app, part, "consumers", item.consumers);
  }
}

const MOST_LINKS = 100;

function links(app, part, title, list) {
  if (!list.length) return;
  const rows = element("ul");
  for (const link of list.slice(0, MOST_LINKS)) {
    const row = element("li");
    const name = element("a", app.items[link.item].name);
    name.onclick = () => app.show(link.item);
    const kind = link.kind === CONTROL ? " (control)" : link.kind === REFERENCE ? " (reference)" : "";
    row.append(name, element("span", ` ${link.label}${kind}`, "faint"));
    rows.append(row);
  }
  if (list.length > MOST_LINKS) rows.append(element("li", `and ${list.length - MOST_LINKS} more`));
  part(title, rows);
}

function micros(value) {
  return value < 1000 ? `${value.toFixed(1)} \u00b5s` : `${(value / 1000).toFixed(2)} ms`;
}

function bytes(value) {
  const units = ["B", "KB", "MB", "GB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit ? value.toFixed(1) : value} ${units[unit]}`;
}

function showLegend(picture) {
  const legend = document.getElementById("legend");
  legend.replaceChildren();
  const entry = (colour, text, className = "") => {
    const row = element("span"), swatch = element("i", "", className);
    swatch.style.background = colour;
    row.append(swatch, text);
    legend.append(row);
  };
  const {colours, model} = picture;
  if (colours.by === "device") {
    for (const device of model.devices) {
      const light = colours.isDark ? 30 : 86;
      entry(`hsl(${colours.hue(`device ${device}`)} 55% ${light}%)`, device || "no device requested");
    }
  } else if (colours.by === "structure") {
    legend.append(element("span", "groups of one colour have identical structure; grey: unique"));
  } else {
    const most = colours.most[colours.by];
    const end = colours.by === "time" ? micros(most) : bytes(most);
    entry("linear-gradient(90deg, hsl(50 90% 90%), hsl(0 90% 52%))",
      most ? `0 to ${end} (an operation)` : "nothing was traced", "wide");
  }
  entry("#69748a", "tensors", "line");
  entry("repeating-linear-gradient(90deg, #69748a 0 2px, transparent 2px 5px)", "control", "line");
  entry("#d97706", "references", "line");
  legend.append(element("span", "click: details; double click: open or close a group"));
}
