// SPDX-License-Identifier: MIT
// The data of the page: unpacks the columns, and answers what was there at a moment.
// A moment is the index of an event; -1 is before the first.
const TYPES = {f64: Float64Array, u32: Uint32Array, i32: Int32Array};

async function unpack(text) {
  const packed = atob(text), bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).arrayBuffer();
}

// Turns descriptions of columns into arrays, in place.
function attach(node, buffer) {
  for (const [key, value] of Object.entries(node)) {
    if (!value || typeof value !== 'object' || Array.isArray(value)) continue;
    if (value.type in TYPES && 'at' in value) {
      node[key] = new TYPES[value.type](buffer, value.at, value.count);
    } else if (key === 'blocks') {
      attach(value, buffer);
    }
  }
}

function before(first, values) {
  const found = new Float64Array(values.length + 1);
  found[0] = first;
  found.set(values, 1);
  return found;
}

class Device {
  constructor(head) {
    Object.assign(this, head);
    this.count = this.time.length;
    this.start = this.count ? this.time[0] : 0;
    this.end = this.count ? this.time[this.count - 1] : 1;
    if (R.head.start_us > 0 && R.head.start_us <= this.start) this.start = R.head.start_us;
    if (R.head.dump_us >= this.end) this.end = R.head.dump_us;
    if (this.end <= this.start) this.end = this.start + 1;
    // What is shown first: the events, without long idle stretches before and after them.
    const margin = this.count ? (this.time[this.count - 1] - this.time[0]) * 0.04 + 1 : Infinity;
    this.opens = Math.max(this.start, (this.count ? this.time[0] : 0) - margin);
    this.closes = Math.min(this.end, (this.count ? this.time[this.count - 1] : 0) + margin);
    // Moment m lies at place m + 1: place 0 is before the first event.
    this.times = before(this.start, this.time);
    this.levels = {live: before(this.first[0], this.live),
      pending: before(this.first[1], this.pending),
      reserved: before(this.first[2], this.reserved)};
    this.sortChanges();
    this.rankStacks();
  }

  // Allocations and frees in order: at which event, of which stack, by how many bytes.
  // Counted into place by event number, which is faster than sorting.
  sortChanges() {
    const {birth, request, size: bytes, stack} = this.blocks;
    const next = new Uint32Array(this.count + 2);
    const each = visit => {
      for (let i = 0; i < birth.length; i++) {
        if (birth[i] >= request[i]) continue;
        visit(birth[i], bytes[i], stack[i]);
        if (request[i] < this.count) visit(request[i], -bytes[i], stack[i]);
      }
    };
    each(at => { next[at + 2]++; });
    for (let i = 1; i < next.length; i++) next[i] += next[i - 1];
    const count = next[next.length - 1];
    this.changeAt = new Int32Array(count);
    this.changeBytes = new Float64Array(count);
    this.changeStack = new Uint32Array(count);
    each((at, change, id) => {
      const place = next[at + 1]++;
      this.changeAt[place] = at;
      this.changeBytes[place] = change;
      this.changeStack[place] = id;
    });
  }

  // The stacks that get a band of their own: those that held most at the peak, now, or ever.
  rankStacks() {
    const level = new Float64Array(R.head.stacks.length), most = level.slice();
    for (let i = 0; i < this.changeAt.length; i++) {
      const stack = this.changeStack[i];
      level[stack] += this.changeBytes[i];
      if (level[stack] > most[stack]) most[stack] = level[stack];
    }
    this.ranked = [...most.keys()].filter(stack => most[stack] > 0)
      .sort((a, b) => most[b] - most[a] || a - b).slice(0, 15);
    this.bandOf = new Map(this.ranked.map((stack, place) => [stack, place]));
    const bandOfStack = new Uint8Array(most.length).fill(this.ranked.length);
    this.ranked.forEach((stack, place) => { bandOfStack[stack] = place; });
    this.changeBand = Uint8Array.from(this.changeStack, stack => bandOfStack[stack]);
  }

  timeAt(moment) { return this.times[Math.min(moment, this.count - 1) + 1]; }

  level(name, moment) { return this.levels[name][Math.min(moment, this.count - 1) + 1]; }

  // Blocks that are there after that event, as numbers.
  blocksAt(moment) {
    const {birth, death} = this.blocks, found = [];
    for (let i = 0; i < birth.length; i++) {
      if (birth[i] <= moment && moment < death[i]) found.push(i);
    }
    return found;
  }

  isPending(block, moment) { return this.blocks.request[block] <= moment; }

  // Segments after that event, pieces of a growing one joined, by address.
  segmentsAt(moment) {
    const rows = this.segments.filter(row => row[0] <= moment && moment < row[1])
      .map(([, , address, bytes, stream, grows, pool, stack]) =>
        ({address, bytes, stream, grows, pool, stack}))
      .sort((a, b) => a.address - b.address);
    const joined = [];
    for (const row of rows) {
      const last = joined[joined.length - 1];
      if (last && row.grows && last.grows && last.address + last.bytes === row.address
          && last.stream === row.stream) last.bytes += row.bytes;
      else joined.push(row);
    }
    return joined;
  }

  // Bytes by stack after that event.
  bytesByStack(moment) {
    const sums = new Map(), {birth, request, size: bytes, stack} = this.blocks;
    for (let i = 0; i < birth.length; i++) {
      if (birth[i] <= moment && moment < request[i]) {
        sums.set(stack[i], (sums.get(stack[i]) || 0) + bytes[i]);
      }
    }
    return sums;
  }

  // Index of the last event at or before a time.
  eventAtTime(time) {
    let low = 0, high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.time[middle] <= time) low = middle + 1; else high = middle;
    }
    return low - 1;
  }
}

function stackText(stack) { return R.head.stacks[stack] || ['?']; }
function stackName(stack) {
  const frames = stackText(stack);
  return frames[0] + (frames.length > 1 ? ' < ' + frames[1].replace(/ \(.*\)$/, '') : '');
}
