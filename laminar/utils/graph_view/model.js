// The graph: items that are groups or operations, as graph_view/contents.py writes them.

const DATA = 0, CONTROL = 1, REFERENCE = 2;

async function readModel() {
  const text = document.getElementById("data").textContent.trim();
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const tables = JSON.parse(await new Response(stream).text());
  const say = (number) => tables.texts[number];
  const items = tables.items.map((row, id) => {
    const [label, parent, structure, operations, micros, bytes, children, aside, flat, own] = row;
    const edges = [];
    for (let i = 0; i < flat.length; i += 5) {
      const [source, target, kind, count, label] = flat.slice(i, i + 5);
      edges.push({source, target, kind, count, label: say(label)});
    }
    const item = {
      id, label: say(label), parent, structure, operations, micros, bytes, children, edges,
      aside: new Set(aside), isOpen: id === 0, isGroup: own === null, layout: null,
      x: 0, y: 0, width: 0, height: 0,
    };
    if (own !== null) {
      const [name, op, device, outputs, layer, line, code, attributes, links] = own;
      Object.assign(item, {
        name: say(name), op: say(op), device: say(device), outputs: say(outputs),
        layer: say(layer), line: say(line), code: say(code), attributes: say(attributes),
        inputs: [], consumers: [],
      });
      for (let i = 0; i < links.length; i += 3) {
        item.inputs.push({item: links[i], kind: links[i + 1], label: say(links[i + 2])});
      }
    }
    return item;
  });
  for (const item of items) {
    for (const link of item.inputs || []) {
      items[link.item].consumers.push({item: item.id, kind: link.kind, label: link.label});
    }
  }
  return {items, devices: tables.devices, alike: countAlike(items)};
}

// How many groups have each structure: what is alone has no colour of its own.
function countAlike(items) {
  const counts = new Map();
  for (const item of items) {
    if (item.isGroup) {
      counts.set(item.structure, (counts.get(item.structure) || 0) + 1);
    }
  }
  return counts;
}

function pathOf(items, id) {
  const path = [];
  for (let at = id; at >= 0; at = items[at].parent) path.unshift(at);
  return path;
}

// The item that is seen where `id` is: itself, or the outermost closed group around it.
function visibleOf(items, id) {
  for (const at of pathOf(items, id)) {
    if (items[at].isGroup && !items[at].isOpen) return at;
  }
  return id;
}

function nameOf(items, id) {
  const item = items[id];
  if (!item.isGroup) return item.name;
  return pathOf(items, id).slice(1).map((at) => items[at].label).join("/");
}
