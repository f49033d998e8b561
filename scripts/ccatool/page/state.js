// SPDX-License-Identifier: MIT
// Segments and their blocks at the chosen moment: one row a segment, to scale.
const state = {
  row: 20, most: 400,

  build(section) {
    section.append(
      this.note = make('p', {class: 'note', id: 'state-note'}),
      make('div', {class: 'legend'}, legendItem('live', 'in use (in the colour of its call stack)'),
        legendItem('pending', 'freed, not yet reusable'), legendItem('free', 'free')),
      this.box = make('div', {class: 'scroll'},
        this.canvas = make('canvas', {tabindex: 0, role: 'application', id: 'state-canvas',
          'aria-label': 'Allocator state. Up and down walk through the blocks, left and right move '
            + 'the moment, Enter pins the call stack of a block.'})));
    this.canvas.addEventListener('pointermove', event => this.hover(event));
    this.canvas.addEventListener('pointerleave', () => tip(''));
    this.canvas.addEventListener('click', event => {
      const block = this.at(event);
      if (block && block.number !== undefined) R.pin(R.device.blocks.stack[block.number]);
    });
    this.canvas.addEventListener('keydown', event => this.key(event));
    this.focus = null;
  },

  deviceChanged() { this.focus = null; },

  draw() {
    const device = R.device, moment = R.moment;
    const all = device.segmentsAt(moment), segments = all.slice().sort((a, b) =>
      b.bytes - a.bytes || a.address - b.address).slice(0, this.most);
    const blocks = device.blocksAt(moment).sort((a, b) =>
      device.blocks.address[a] - device.blocks.address[b]);
    const addresses = Float64Array.from(blocks, block => device.blocks.address[block]);
    const {pen, wide} = fresh(this.canvas, Math.max(40, segments.length * this.row + 6));
    const left = 76, largest = segments.length ? segments[0].bytes : 1;
    this.rects = [];
    pen.textBaseline = 'middle';
    pen.textAlign = 'right';
    segments.forEach((segment, place) => {
      const y = place * this.row + 4, scale = (wide - left - 12) / largest;
      pen.fillStyle = colour('faint');
      pen.fillText(size(segment.bytes), left - 6, y + 8);
      pen.fillStyle = colour('free');
      pen.fillRect(left, y, Math.max(1, segment.bytes * scale), this.row - 4);
      this.rects.push({x: left, y, w: segment.bytes * scale, segment});
      let low = lowerBound(addresses, segment.address);
      for (; low < blocks.length && addresses[low] < segment.address + segment.bytes; low++) {
        const number = blocks[low], x = left + (addresses[low] - segment.address) * scale;
        const w = Math.max(0.4, device.blocks.size[number] * scale);
        const band = device.bandOf.get(device.blocks.stack[number]);
        const pending = device.isPending(number, moment);
        pen.fillStyle = pending ? colour('pending') : bandColour(band === undefined ? -1 : band);
        pen.globalAlpha = R.pinned === null || R.pinned === device.blocks.stack[number] ? 1 : 0.3;
        pen.fillRect(x, y, w > 2 ? w - 0.6 : w, this.row - 4);
        pen.globalAlpha = 1;
        this.rects.push({x, y, w, segment, number, pending});
        if (this.focus === number) {
          pen.strokeStyle = colour('text');
          pen.lineWidth = 2;
          pen.strokeRect(x, y - 1, Math.max(3, w), this.row - 2);
          pen.lineWidth = 1;
        }
      }
    });
    const left_out = device.left_out && device.left_out.blocks
      ? '; blocks of ' + size(device.left_out.largest) + ' and less are left out' : '';
    this.note.textContent = 'at +' + duration(device.timeAt(moment) - device.start)
      + (device.left_out ? '' : ', event ' + number(moment + 1)) + ': '
      + counted(all.length, 'segment') + ', '
      + counted(blocks.length, 'block') + ', ' + size(device.level('live', moment)) + ' live in '
      + size(device.level('reserved', moment)) + ' reserved'
      + (all.length > segments.length ? '; the ' + this.most + ' largest segments are shown' : '')
      + left_out;
    this.scale = {left, wide, largest};
  },

  // The block or segment under the pointer; the last one drawn wins.
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    let found = null;
    for (const rect of this.rects || []) {
      if (y >= rect.y - 2 && y < rect.y + this.row - 2 && x >= rect.x - 1
          && x <= rect.x + Math.max(rect.w, 2)) found = rect;
    }
    return found;
  },

  text(rect) {
    const {segment} = rect, device = R.device;
    const head = 'segment ' + hex(segment.address) + ', ' + size(segment.bytes)
      + (segment.grows ? ', expandable' : '') + (segment.stream ? ', stream '
      + hex(segment.stream) : '') + (segment.pool[0] || segment.pool[1] ? ', pool '
      + segment.pool.join('.') : '');
    if (rect.number === undefined) return 'free\n' + head;
    const {blocks} = device, number = rect.number, birth = blocks.birth[number];
    const age = birth < 0 ? 'older than the history'
      : duration(device.timeAt(R.moment) - device.timeAt(birth)) + ' old';
    return (rect.pending ? 'pending, ' : '') + size(blocks.size[number]) + ' ('
      + size(blocks.requested[number]) + ' asked for), ' + age + '\nblock '
      + hex(blocks.address[number]) + ' in ' + head + '\n'
      + stackText(blocks.stack[number]).join('\n');
  },

  hover(event) {
    const rect = this.at(event);
    tip(rect ? this.text(rect) : '', event.clientX, event.clientY);
  },

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const rects = (this.rects || []).filter(rect => rect.number !== undefined);
    let place = rects.findIndex(rect => rect.number === this.focus);
    if (event.key === 'ArrowDown') place = Math.min(rects.length - 1, place + 1);
    else if (event.key === 'ArrowUp') place = Math.max(0, place - 1);
    else if (event.key === 'Enter' && place >= 0) {
      R.pin(R.device.blocks.stack[rects[place].number]);
      event.preventDefault();
      return;
    } else {
      if (moveByKey(event)) event.preventDefault();
      return;
    }
    event.preventDefault();
    if (!rects.length) return;
    this.focus = rects[place].number;
    this.draw();
    const rect = this.rects.find(one => one.number === this.focus);
    this.box.scrollTop = Math.max(0, rect.y - 60);
    const box = this.canvas.getBoundingClientRect();
    tip(this.text(rect), box.left + rect.x, box.top + rect.y + 4);
  },
};

function lowerBound(values, wanted) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1; else high = middle;
  }
  return low;
}
