// SPDX-License-Identifier: MIT
// A flame graph of call stacks, outermost at the bottom line's top: root first, in SVG.
const flame = {
  row: 18,

  build(section) {
    this.choice = make('select', {id: 'flame-choice', onchange: () => this.draw()},
      ...[['peak', 'live at the peak'], ['now', 'live at the end'], ['churn', 'allocated in all'],
        ['moment', 'live at the chosen moment']].map(([value, text]) =>
        make('option', {value, text})));
    section.append(
      make('div', {class: 'legend'}, make('label', {text: 'bytes '}, this.choice),
        this.up = make('button', {text: 'whole graph',
          onclick: () => { this.zoom = []; this.draw(); }}),
        this.note = make('span', {class: 'note'})),
      this.svg = make('svg', {class: 'flame', id: 'flame-svg', role: 'img',
        'aria-label': 'Flame graph of call stacks; Tab reaches each frame, Enter zooms in'}));
    this.zoom = [];
  },

  deviceChanged() { this.zoom = []; },

  bytes() {
    const which = this.choice.value, sums = new Map();
    if (which === 'moment') return R.device.bytesByStack(R.moment);
    for (const use of R.head.uses) if (use[which]) sums.set(use.stack, use[which]);
    return sums;
  },

  tree() {
    const root = {name: 'all', bytes: 0, children: new Map(), path: []};
    for (const [stack, bytes] of this.bytes()) {
      let node = root;
      node.bytes += bytes;
      const frames = stackText(stack);
      for (let i = frames.length - 1; i >= 0; i--) {
        let child = node.children.get(frames[i]);
        if (!child) {
          child = {name: frames[i], bytes: 0, children: new Map(),
            path: [...node.path, frames[i]]};
          node.children.set(frames[i], child);
        }
        child.bytes += bytes;
        if (i === 0) child.stack = stack;
        node = child;
      }
    }
    return root;
  },

  draw() {
    const root = this.tree();
    let node = root;
    for (const name of this.zoom) {
      const next = node.children.get(name);
      if (!next) break;
      node = next;
    }
    const wide = this.svg.clientWidth || 900, found = [];
    let deepest = 0;
    const place = (one, x, w, depth) => {
      if (w < 0.7) return;
      deepest = Math.max(deepest, depth);
      found.push({one, x, w, depth});
      let at = x;
      for (const child of [...one.children.values()].sort((a, b) => b.bytes - a.bytes)) {
        const part = child.bytes / one.bytes * w;
        place(child, at, part, depth + 1);
        at += part;
      }
    };
    if (node.bytes > 0) place(node, 0, wide, 0);
    this.svg.style.height = Math.max(30, (deepest + 1) * this.row) + 'px';
    this.svg.replaceChildren(...found.map(({one, x, w, depth}) =>
      this.cell(one, x, w, depth, root)));
    this.up.hidden = node === root;
    this.note.textContent = root.bytes ? size(node.bytes) + (node === root ? ' in all'
      : ' of ' + size(root.bytes)) : 'nothing was live then';
  },

  cell(one, x, w, depth, root) {
    const y = depth * this.row;
    const zoomTo = () => { this.zoom = one.path; this.draw(); if (one.stack !== undefined
      && !one.children.size) R.pin(one.stack); };
    const group = make('g', {tabindex: 0, role: 'button', 'data-name': one.name,
      'aria-label': one.name + ', ' + size(one.bytes) + ', ' + percent(one.bytes, root.bytes),
      onclick: zoomTo,
      onkeydown: event => { if (event.key === 'Enter') { event.preventDefault(); zoomTo(); } },
      onpointermove: event => tip(one.name + '\n' + size(one.bytes) + ', '
        + percent(one.bytes, root.bytes), event.clientX, event.clientY),
      onpointerleave: () => tip('')},
    make('rect', {x, y, width: Math.max(0.5, w - 0.5), height: this.row - 1, rx: 2,
      fill: this.fill(one)}));
    if (w > 30) {
      const room = Math.floor((w - 8) / 6.4);
      const text = one.name.length > room ? one.name.slice(0, Math.max(1, room - 2)) + '..'
        : one.name;
      group.append(make('text', {x: x + 4, y: y + 13, text}));
    }
    return group;
  },

  // Warm hues, the same for the same name.
  fill(one) {
    if (!one.path.length) return 'hsl(40 15% 75%)';
    let hash = 0;
    for (const char of one.name) hash = (hash * 31 + char.codePointAt(0)) >>> 0;
    return 'hsl(' + (14 + hash % 42) + ' ' + (66 + hash % 20) + '% ' + (62 + hash % 14) + '%)';
  },
};
