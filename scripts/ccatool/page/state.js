// SPDX-License-Identifier: MIT
// Segments and their blocks at the chosen moment: one row a segment, to scale.
const ROW = 20, ROW_LEFT = 76, MOST_ROWS = 400;

const state = {
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
      const found = this.at(event);
      if (found && found.block !== undefined) R.pin(R.device.blocks.stack[found.block]);
    });
    this.canvas.addEventListener('keydown', event => this.key(event));
  },

  deviceChanged() { this.focus = null; },

  // The rows that are shown, largest first: {segment, first, last} with the places of its blocks
  // in `shown`, which are ordered by address.
  lay(moment) {
    const device = R.device, {blocks} = device;
    this.shown = device.blocksAt(moment);
    const addresses = Float64Array.from(this.shown, block => blocks.address[block]);
    const segments = device.segmentsAt(moment);
    this.segments = segments.length;
    this.rows = segments.sort((a, b) => b.bytes - a.bytes || a.address - b.address)
      .slice(0, MOST_ROWS).map(segment => ({segment, first: lowerBound(addresses, segment.address),
        last: lowerBound(addresses, segment.address + segment.bytes)}));
  },

  draw() {
    const device = R.device, moment = R.moment;
    this.lay(moment);
    const {pen, wide} = fitted(this.canvas, Math.max(40, this.rows.length * ROW + 6));
    this.scale = (wide - ROW_LEFT - 12) / (this.rows.length ? this.rows[0].segment.bytes : 1);
    pen.textBaseline = 'middle';
    pen.textAlign = 'right';
    this.rows.forEach((row, place) => this.drawRow(pen, row, place * ROW + 4));
    pen.globalAlpha = 1;
    this.note.textContent = 'at +' + duration(device.timeAt(moment) - device.start)
      + (device.left_out ? '' : ', event ' + number(moment + 1)) + ': '
      + counted(this.segments, 'segment') + ', ' + counted(this.shown.length, 'block') + ', '
      + size(device.level('live', moment)) + ' live in ' + size(device.level('reserved', moment))
      + ' reserved' + (this.segments > this.rows.length ? '; the ' + MOST_ROWS
        + ' largest segments are shown' : '')
      + (device.left_out && device.left_out.blocks ? '; blocks of '
        + size(device.left_out.largest) + ' and less are left out' : '');
  },

  drawRow(pen, row, y) {
    const {blocks, rankOf} = R.device, high = ROW - 4;
    pen.globalAlpha = 1;
    pen.fillStyle = colour('faint');
    pen.fillText(size(row.segment.bytes), ROW_LEFT - 6, y + 8);
    pen.fillStyle = colour('free');
    pen.fillRect(ROW_LEFT, y, Math.max(1, row.segment.bytes * this.scale), high);
    let painted = -1;
    for (let i = row.first; i < row.last; i++) {
      const block = this.shown[i], [x, w] = this.edges(row, block);
      // Of many blocks within one pixel the first is enough.
      if (x + w < painted + 0.5 && block !== this.focus) continue;
      painted = x + w;
      const stack = blocks.stack[block];
      pen.fillStyle = R.device.isPending(block, R.moment) ? colour('pending')
        : bandColour(rankOf.get(stack));
      pen.globalAlpha = R.pinned === null || R.pinned === stack ? 1 : 0.3;
      pen.fillRect(x, y, w > 2 ? w - 0.6 : w, high);
      if (block === this.focus) {
        pen.strokeStyle = colour('text');
        pen.lineWidth = 2;
        pen.strokeRect(x, y - 1, Math.max(3, w), high + 2);
        pen.lineWidth = 1;
      }
    }
  },

  // [x, width] of a block.
  edges({segment}, block) {
    const {address, size: bytes} = R.device.blocks;
    return [ROW_LEFT + (address[block] - segment.address) * this.scale,
      Math.max(0.4, bytes[block] * this.scale)];
  },

  // {segment, block} under the pointer, without a block where it is free; or null.
  at(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left;
    const row = this.rows[Math.floor((event.clientY - box.top - 2) / ROW)];
    if (!row || x < ROW_LEFT - 1 || x > ROW_LEFT + row.segment.bytes * this.scale + 2) return null;
    // The last block that begins at or before the pointer, with a pixel of grace for thin ones.
    let low = row.first, high = row.last;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.edges(row, this.shown[middle])[0] <= x + 1) low = middle + 1; else high = middle;
    }
    for (const place of [low - 1, low - 2]) {
      if (place < row.first) break;
      const [left, wide] = this.edges(row, this.shown[place]);
      if (x >= left - 1 && x <= left + Math.max(wide, 2)) {
        return {segment: row.segment, block: this.shown[place]};
      }
    }
    return {segment: row.segment};
  },

  text({segment, block}) {
    const device = R.device, {blocks} = device;
    const head = 'segment ' + hex(segment.address) + ', ' + size(segment.bytes)
      + (segment.grows ? ', expandable' : '') + (segment.stream ? ', stream '
      + hex(segment.stream) : '') + (segment.pool[0] || segment.pool[1] ? ', pool '
      + segment.pool.join('.') : '');
    if (block === undefined) return 'free\n' + head;
    const birth = blocks.birth[block];
    const age = birth < 0 ? 'older than the history'
      : duration(device.timeAt(R.moment) - device.timeAt(birth)) + ' old';
    const isExported = blocks.death[block] === device.count
      && device.exported.includes(blocks.address[block]);
    return (device.isPending(block, R.moment) ? 'pending, ' : '')
      + (isExported ? 'exported to other processes, ' : '') + size(blocks.size[block]) + ' ('
      + size(blocks.requested[block]) + ' asked for), ' + age + '\nblock '
      + hex(blocks.address[block]) + ' in ' + head + '\n'
      + stackText(blocks.stack[block]).join('\n');
  },

  hover(event) {
    const found = this.at(event);
    tip(found ? this.text(found) : '', event.clientX, event.clientY);
  },

  // [row, block] of all blocks in the order in which they are drawn.
  walk() {
    return this.rows.flatMap((row, place) => this.shown.slice(row.first, row.last)
      .map(block => [place, block]));
  },

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Enter' && this.focus !== null) R.pin(R.device.blocks.stack[this.focus]);
    else if (event.key === 'ArrowDown') this.step(1);
    else if (event.key === 'ArrowUp') this.step(-1);
    else if (!moveByKey(event)) return;
    event.preventDefault();
  },

  step(by) {
    const all = this.walk();
    if (!all.length) return;
    const now = all.findIndex(([, block]) => block === this.focus);
    const [place, block] = all[Math.max(0, Math.min(all.length - 1, now + by))];
    this.focus = block;
    this.draw();
    this.box.scrollTop = Math.max(0, place * ROW - 60);
    const box = this.canvas.getBoundingClientRect(), row = this.rows[place];
    tip(this.text({segment: row.segment, block}), box.left + this.edges(row, block)[0],
      box.top + place * ROW + 8);
  },
};
