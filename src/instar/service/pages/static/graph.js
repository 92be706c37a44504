// The lineage graph: laid out from left to right, dragged, zoomed, and followed by pointer or keyboard.
"use strict";
(() => {
  const place = document.getElementById("graph");
  if (!place) return;
  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 214, HEIGHT = 46, ACROSS = 274, DOWN = 62;
  const HINT = matchMedia("(pointer: coarse)").matches ? "drag, pinch to zoom" : "drag, Ctrl and wheel to zoom";
  const tools = place.querySelector(".tools"), note = document.getElementById("graph-note");
  const depth = document.getElementById("depth");
  const here = place.dataset.node;
  let view = { x: 0, y: 0, w: 800, h: 400 }, nodes = [], edges = [], svg = null;

  const make = (name, attributes, parent) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (parent) parent.append(element);
    return element;
  };

  // Write a text, and cut its beginning until it fits: the end of a name says more.
  function write(attributes, words, room, parent) {
    const element = make("text", attributes, parent);
    element.textContent = words;
    for (let rest = [...words]; rest.length && element.getComputedTextLength() > room;) {
      rest = rest.slice(Math.max(1, Math.floor(rest.length * (1 - room / element.getComputedTextLength()))));
      element.textContent = "…" + rest.join("");
    }
  }

  // A node stands to the right of all that it comes from, and as near as possible to what it goes to. Edges that
  // close a circle do not count. An edge that passes columns has a place of its own in each, between the nodes.
  function layOut() {
    const known = new Set(nodes.map((node) => node.id));
    edges = edges.filter(({ from, to }) => known.has(from) && known.has(to));
    const after = new Map(nodes.map((node) => [node.id, []])), before = new Map(nodes.map((node) => [node.id, []]));
    for (const { from, to } of edges) after.get(from).push(to);
    const order = [], seen = new Set();
    for (const { id: first } of nodes) {  // depth first, without recursion
      const steps = seen.has(first) ? [] : [[first, 0]];
      seen.add(first);
      while (steps.length) {
        const step = steps[steps.length - 1], next = after.get(step[0])[step[1]++];
        if (next === undefined) { order.unshift(step[0]); steps.pop(); }
        else if (!seen.has(next)) { seen.add(next); steps.push([next, 0]); }
      }
    }
    const rank = new Map(order.map((id, at) => [id, at]));
    const forward = edges.filter(({ from, to }) => rank.get(from) < rank.get(to));
    const ahead = new Map(nodes.map((node) => [node.id, []]));
    for (const { from, to } of forward) { before.get(to).push(from); ahead.get(from).push(to); }
    const level = new Map();
    for (const id of order) level.set(id, Math.max(-1, ...before.get(id).map((other) => level.get(other))) + 1);
    for (const id of [...order].reverse()) {
      if (ahead.get(id).length) level.set(id, Math.min(...ahead.get(id).map((other) => level.get(other))) - 1);
    }
    const columns = new Map(), byId = new Map(nodes.map((node) => [node.id, node]));
    const put = (one, at) => {
      one.x = at * ACROSS;
      one.y = 0;
      one.comesFrom = [];
      if (!columns.has(at)) columns.set(at, []);
      columns.get(at).push(one);
    };
    for (const id of order) put(byId.get(id), level.get(id));
    for (const edge of edges) edge.via = [];
    for (const edge of forward) {
      let last = byId.get(edge.from);
      for (let at = level.get(edge.from) + 1; at < level.get(edge.to); at++) {
        const place = {};
        put(place, at);
        place.comesFrom.push(last);
        edge.via.push(place);
        last = place;
      }
      byId.get(edge.to).comesFrom.push(last);
    }
    for (const at of [...columns.keys()].sort((one, two) => one - two)) {
      const some = columns.get(at);
      const wish = (one) => one.comesFrom.reduce((sum, from) => sum + from.y, 0) / (one.comesFrom.length || 1);
      const wishes = new Map(some.map((one) => [one, wish(one)]));
      some.sort((one, two) => wishes.get(one) - wishes.get(two));
      const high = (one) => (one.id === undefined ? DOWN / 2 : DOWN);
      let y = -some.reduce((sum, one) => sum + high(one), 0) / 2;
      for (const one of some) { one.y = y + (high(one) - HEIGHT) / 2; y += high(one); }
    }
  }

  const path = (from, via, to) => {
    let x = from.x + WIDTH, y = from.y + HEIGHT / 2, line = `M${x},${y}`;
    for (const next of [...via, to]) {
      const x2 = next.x, y2 = next.y + HEIGHT / 2, bend = Math.max(40, Math.abs(x2 - x) / 2);
      line += ` C${x + bend},${y} ${x2 - bend},${y2} ${x2},${y2}`;
      if (next !== to) line += ` H${x2 + WIDTH}`;
      [x, y] = [x2 + WIDTH, y2];
    }
    return line;
  };
  const show = () => svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.w} ${view.h}`);

  function draw() {
    if (svg) svg.remove();
    svg = make("svg", { role: "group", "aria-label": "Lineage graph" }, place);
    const rows = (Math.max(...nodes.map((node) => node.y)) - Math.min(...nodes.map((node) => node.y))) / DOWN + 1;
    svg.style.height = `${Math.min(28, Math.max(10, 4 + 4 * rows))}rem`;
    const defs = make("defs", {}, svg);
    const marker = make("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7,
      markerHeight: 7, orient: "auto" }, defs);
    make("path", { d: "M0,0 L8,4 L0,8 z", class: "arrow" }, marker);
    const byId = new Map(nodes.map((node) => [node.id, node]));
    const lines = edges.map(({ from, via, to }) => {
      const line = make("path", { class: "edge", "marker-end": "url(#arrow)" }, svg);
      const update = () => line.setAttribute("d", path(byId.get(from), via, byId.get(to)));
      update();
      return { from, to, update, line };
    });
    for (const node of nodes) {
      const state = node.state ? node.state.toLowerCase() : "";
      const group = make("g", { class: `node ${node.kind} ${state}${node.id === here ? " here" : ""}`, tabindex: 0,
        role: "link", "aria-label": `${node.kind} ${node.name}${state && `, ${state}`}` }, svg);
      make("rect", { class: "box", width: WIDTH, height: HEIGHT, rx: node.kind === "job" ? 7 : 15 }, group);
      make("rect", { class: "badge", x: 8, y: 8, width: 30, height: 30, rx: node.kind === "job" ? 5 : 9 }, group);
      make("use", { href: `#i-${node.kind}`, x: 13, y: 13, width: 20, height: 20 }, group);
      write({ x: 46, y: 20 }, node.name, WIDTH - 58, group);
      if (state) make("circle", { class: "dot", cx: 50, cy: 32, r: 3.5 }, group);
      write({ x: state ? 58 : 46, y: 35.5, class: "small" }, state ? `${state} · ${node.namespace}` : node.namespace,
        WIDTH - (state ? 70 : 58), group);
      make("title", {}, group).textContent = `${node.kind} ${node.name}\n${node.namespace}`;
      const move = () => {
        group.setAttribute("transform", `translate(${node.x},${node.y})`);
        for (const line of lines) if (line.from === node.id || line.to === node.id) line.update();
      };
      move();
      node.group = group;
      node.move = move;
      group.addEventListener("keydown", (event) => {
        if (event.key === "Enter") location.href = node.href;
        if (event.key.startsWith("Arrow")) { event.preventDefault(); focusNext(node, event.key); }
        if (event.key === "+" || event.key === "-") zoom(event.key === "-" ? 1.25 : 1 / 1.25);
      });
      for (const name of ["pointerenter", "focus"]) group.addEventListener(name, () => follow(node.id, lines));
      for (const name of ["pointerleave", "blur"]) group.addEventListener(name, () => follow(null, lines));
    }
    svg.addEventListener("pointerdown", press);
    svg.addEventListener("wheel", (event) => {  // without a key, the wheel scrolls the page as everywhere
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, event);
    }, { passive: false });
    fit();
  }

  // Light up what leads to a node and what it leads to.
  function follow(id, lines) {
    svg.classList.toggle("following", id !== null);
    const lit = new Set([id]), marked = new Set();
    for (const [start, end] of [["from", "to"], ["to", "from"]]) {
      const waiting = [id], seen = new Set(waiting);
      while (waiting.length) {
        const at = waiting.pop();
        for (const one of lines) {
          if (one[start] !== at) continue;
          marked.add(one);
          lit.add(one[end]);
          if (!seen.has(one[end])) { seen.add(one[end]); waiting.push(one[end]); }
        }
      }
    }
    for (const node of nodes) node.group.classList.toggle("lit", lit.has(node.id));
    for (const one of lines) one.line.classList.toggle("lit", marked.has(one));
  }

  function focusNext(node, key) {
    const sideways = key === "ArrowLeft" || key === "ArrowRight";
    const sign = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
    const distance = (other) => {
      const dx = other.x - node.x, dy = other.y - node.y;
      const along = sideways ? dx : dy, aside = sideways ? dy : dx;
      return along * sign > 0 ? Math.abs(along) + 2 * Math.abs(aside) : Infinity;
    };
    const best = nodes.reduce((found, other) => (distance(other) < distance(found) ? other : found), node);
    if (best !== node && distance(best) < Infinity) best.group.focus();
  }

  const scale = () => Math.max(view.w / svg.clientWidth, view.h / svg.clientHeight);

  // A press that moves drags the node under it, or everything; one that does not follows the node. Two fingers zoom.
  const fingers = new Map();
  function press(event) {
    if (event.button !== 0) return;
    const node = nodes.find((one) => one.group.contains(event.target));
    const start = { x: event.clientX, y: event.clientY, nx: node?.x, ny: node?.y, vx: view.x, vy: view.y };
    fingers.set(event.pointerId, start);
    let moved = fingers.size > 1;
    const drag = (now) => {
      if (now.pointerId !== event.pointerId) return;
      if (fingers.size > 1) {
        const other = [...fingers].find(([id]) => id !== event.pointerId)[1], mine = fingers.get(event.pointerId);
        const apart = (one) => Math.max(1, Math.hypot(one.x - other.x, one.y - other.y));
        const to = { x: now.clientX, y: now.clientY };
        moved = true;
        zoom(apart(mine) / apart(to), { clientX: (to.x + other.x) / 2, clientY: (to.y + other.y) / 2 });
        fingers.set(event.pointerId, to);
        return;
      }
      const dx = (now.clientX - start.x) * scale(), dy = (now.clientY - start.y) * scale();
      if (Math.hypot(now.clientX - start.x, now.clientY - start.y) > 4) moved = true;
      if (!moved) return;
      if (node) { node.x = start.nx + dx; node.y = start.ny + dy; node.move(); }
      else { view.x = start.vx - dx; view.y = start.vy - dy; show(); }
    };
    const drop = (now) => {
      if (now.pointerId !== event.pointerId) return;
      fingers.delete(event.pointerId);
      removeEventListener("pointermove", drag);
      removeEventListener("pointerup", drop);
      removeEventListener("pointercancel", drop);
      if (node && !moved && now.type === "pointerup") location.href = node.href;
    };
    addEventListener("pointermove", drag);
    addEventListener("pointerup", drop);
    addEventListener("pointercancel", drop);
  }

  // Zoom around a pointer, or around the middle.
  function zoom(factor, at) {
    const w = Math.min(20000, Math.max(200, view.w * factor)), h = view.h * (w / view.w);
    const box = svg.getBoundingClientRect(), grow = scale();
    const x = at ? 0.5 + ((at.clientX - box.x - box.width / 2) * grow) / view.w : 0.5;
    const y = at ? 0.5 + ((at.clientY - box.y - box.height / 2) * grow) / view.h : 0.5;
    view = { x: view.x + (view.w - w) * x, y: view.y + (view.h - h) * y, w, h };
    show();
  }

  function fit() {
    const xs = nodes.map((node) => node.x), ys = nodes.map((node) => node.y);
    const x = Math.min(...xs) - 20, y = Math.min(...ys) - 20;
    view = { x, y, w: Math.max(300, Math.max(...xs) + WIDTH + 20 - x), h: Math.max(...ys) + HEIGHT + 20 - y };
    const narrowest = 0.8 * svg.clientWidth;  // a few nodes are not blown up
    if (view.w < narrowest) view = { ...view, x: view.x - (narrowest - view.w) / 2, w: narrowest };
    const middle = nodes.find((node) => node.id === here), small = 1.5;
    if (scale() > small && middle) {  // too small to read: show what is around the middle
      const w = small * svg.clientWidth, h = small * svg.clientHeight;
      view = { x: middle.x + WIDTH / 2 - w / 2, y: middle.y + HEIGHT / 2 - h / 2, w, h };
    }
    show();
  }

  async function load() {
    note.textContent = "loading …";
    try {
      const query = new URLSearchParams({ kind: place.dataset.kind, ns: place.dataset.ns, name: place.dataset.name, depth: depth.value });
      const answer = await fetch(`/graph.json?${query}`);
      if (!answer.ok) throw new Error(`the service answered ${answer.status}`);
      const graph = await answer.json();
      if (graph.tooMany) {
        note.textContent = `${graph.count} nodes are too many to draw: choose a smaller depth.`;
        return;
      }
      nodes = graph.nodes;
      edges = graph.edges.map(([from, to]) => ({ from, to, via: [] }));
      if (nodes.length) { layOut(); draw(); }
      note.textContent = `${nodes.length} ${nodes.length === 1 ? "node" : "nodes"} · ${HINT}`;
    } catch (error) {
      note.textContent = `The graph could not be loaded: ${error.message}.`;
    }
  }

  tools.hidden = false;
  depth.addEventListener("change", load);
  document.getElementById("smaller").addEventListener("click", () => zoom(1.25));
  document.getElementById("larger").addEventListener("click", () => zoom(1 / 1.25));
  const tall = document.getElementById("tall");
  tall.addEventListener("click", () => {
    tall.setAttribute("aria-pressed", String(place.classList.toggle("tall")));
    if (svg) fit();
  });
  document.getElementById("fit").addEventListener("click", () => { if (svg) { layOut(); draw(); } });
  load();
})();
