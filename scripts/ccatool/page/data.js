// SPDX-License-Identifier: MIT
// The data of the page: unpacks the columns, and answers what was there at a moment.
// A moment is the index of an event; -1 is before the first.
const TYPES = {u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i32: Int32Array,
  f64: Float64Array};

async function unpack(text) {
  const stream = new Blob([decoded(text)]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).arrayBuffer();
}

function decoded(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const packed = atob(text), bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  return bytes;
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

const MOST_BANDS = 15;
const STRIDE = 2048;      // changes between two remembered states

class Device {
  constructor(head) {
    Object.assign(this, head);
    this.count = this.time.length;
    this.time = Float64Array.from(this.time, passed => this.first_us + passed);
    this.start = this.count ? this.time[0] : 0;
    this.end = this.count ? this.time[this.count - 1] : 1;
    if (R.head.start_us > 0 && R.head.start_us <= this.start) this.start = R.head.start_us;
    if (R.head.dump_us >= this.end) this.end = R.head.dump_us;
    if (this.end <= this.start) this.end = this.start + 1;
    // What is shown first: the events, without long idle stretches before and after them.
    const margin = this.count ? (this.time[this.count - 1] - this.time[0]) * 0.04 + 1 : Infinity;
    this.opens = Math.max(this.start, (this.count ? this.time[0] : 0) - margin);
    this.closes = Math.min(this.end, (this.count ? this.time[this.count - 1] : 0) + margin);
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

  // The stacks that get a band of their own are those that held most at any moment. Layer 0 is the
  // rest; the others follow from the smallest to the largest. Every STRIDE changes the bytes of all
  // layers are remembered, so that a view of a late part need not begin at the first event.
  rankStacks() {
    const level = new Float64Array(R.head.stacks.length), most = level.slice();
    const {changeAt, changeBytes, changeStack} = this;
    for (let i = 0; i < changeAt.length; i++) {
      const stack = changeStack[i], bytes = level[stack] += changeBytes[i];
      if (bytes > most[stack]) most[stack] = bytes;
    }
    this.ranked = [...most.keys()].filter(stack => most[stack] > 0)
      .sort((a, b) => most[b] - most[a] || a - b).slice(0, MOST_BANDS);
    this.rankOf = new Map(this.ranked.map((stack, rank) => [stack, rank]));
    this.layers = this.ranked.length + 1;
    const layerOf = new Uint8Array(most.length);
    this.ranked.forEach((stack, rank) => { layerOf[stack] = this.ranked.length - rank; });
    this.changeLayer = new Uint8Array(changeAt.length);
    this.remembered = new Float64Array((Math.floor(changeAt.length / STRIDE) + 1) * this.layers);
    const layers = new Float64Array(this.layers);
    for (let i = 0; i < changeAt.length; i++) {
      if (i % STRIDE === 0) this.remembered.set(layers, i / STRIDE * this.layers);
      layers[this.changeLayer[i] = layerOf[changeStack[i]]] += changeBytes[i];
    }
  }

  stackOf(layer) { return layer ? this.ranked[this.ranked.length - layer] : undefined; }

  // The bytes of all layers before that event, and the place of the first change from then on.
  layersBefore(moment) {
    const place = lowerBound(this.changeAt, moment), start = Math.floor(place / STRIDE);
    const level = this.remembered.slice(start * this.layers, (start + 1) * this.layers);
    for (let i = start * STRIDE; i < place; i++) level[this.changeLayer[i]] += this.changeBytes[i];
    return {level, place};
  }

  timeAt(moment) { return moment < 0 ? this.start : this.time[Math.min(moment, this.count - 1)]; }

  // Levels have one place more than there are events: that before the first.
  level(name, moment) { return this[name][Math.min(moment, this.count - 1) + 1]; }

  // Blocks that are there after that event, as numbers, by address.
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
    return upperBound(this.time, time) - 1;
  }
}

// The first place whose value is not below `wanted`.
function lowerBound(values, wanted) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1; else high = middle;
  }
  return low;
}

// The first place whose value is above `wanted`.
function upperBound(values, wanted) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= wanted) low = middle + 1; else high = middle;
  }
  return low;
}

// The last moment from `first` up to `end` at which a level is highest; with none between them,
// the moment before.
function highestBetween(level, first, end) {
  let found = first < end ? first : first - 1;
  for (let moment = first + 1; moment < end; moment++) {
    if (level[moment + 1] >= level[found + 1]) found = moment;
  }
  return found;
}

// The largest of many numbers, at least 1.
function highest(values) {
  let most = 1;
  for (const value of values) if (value > most) most = value;
  return most;
}

function stackText(stack) { return R.head.stacks[stack] || ['?']; }
function stackName(stack) {
  const frames = stackText(stack);
  return frames[0] + (frames.length > 1 ? ' < ' + frames[1].replace(/ \(.*\)$/, '') : '');
}
