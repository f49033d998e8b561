// SPDX-License-Identifier: MIT
// A timeline's place on the page: a canvas for what takes work to draw, and over it two elements
// that only move, for the chosen moment and the range that is being dragged.
const LEFT = 70, RIGHT = 14, BOTTOM = 20;

class Plot {
  constructor(high, top, attributes) {
    this.high = high;
    this.top = top;
    this.most = 1;        // bytes at the top
    this.canvas = make('canvas', {tabindex: 0, role: 'application', ...attributes});
    this.cursor = make('i', {class: 'cursor'});
    this.shade = make('i', {class: 'shade', hidden: true});
    this.cursor.style.top = this.shade.style.top = top + 'px';
    this.cursor.style.height = this.shade.style.height = high - BOTTOM - top + 'px';
    this.element = make('div', {class: 'plot'}, this.canvas, this.shade, this.cursor);
  }

  // Starts a drawing: returns the context, in units of the page.
  begin() {
    const {pen, wide, ratio} = fitted(this.canvas, this.high);
    Object.assign(this, {wide, ratio});
    this.columns = Math.max(1, Math.round((wide - LEFT - RIGHT) * ratio));
    return pen;
  }

  x(value) {
    return LEFT + (value - view.low) / (view.high - view.low) * (this.wide - LEFT - RIGHT);
  }
  value(x) {
    return view.low + (x - LEFT) / (this.wide - LEFT - RIGHT) * (view.high - view.low);
  }
  y(bytes) { return this.high - BOTTOM - bytes / this.most * (this.high - BOTTOM - this.top); }
  bytes(y) { return (this.high - BOTTOM - y) / (this.high - BOTTOM - this.top) * this.most; }
  isInside(x) { return x >= LEFT - 1 && x <= this.wide - RIGHT + 1; }

  // Columns of layers, the first at the bottom: values[column * colours.length + layer] bytes.
  // Written pixel by pixel, row after row, which costs the same however ragged the layers are.
  paint(pen, values, colours) {
    const {columns} = this, layers = colours.length;
    const rows = Math.round((this.high - BOTTOM - this.top) * this.ratio);
    const {picture, pixels} = this.paper(pen, columns, rows), scale = rows / this.most;
    const layerOf = new Uint8Array(columns), sum = new Float64Array(columns);
    for (let column = 0; column < columns; column++) sum[column] = values[column * layers] * scale;
    for (let row = 0, at = (rows - 1) * columns; row < rows; row++, at -= columns) {
      const level = row + 0.5;
      for (let column = 0; column < columns; column++) {
        while (sum[column] < level && layerOf[column] < layers - 1) {
          sum[column] += values[column * layers + ++layerOf[column]] * scale;
        }
        pixels[at + column] = sum[column] < level ? 0 : colours[layerOf[column]];
      }
    }
    pen.putImageData(picture, Math.round(LEFT * this.ratio), Math.round(this.top * this.ratio));
  }

  // The picture that is painted, kept from one drawing to the next: new memory costs more than
  // what is written to it.
  paper(pen, columns, rows) {
    if (!this.picture || this.picture.width !== columns || this.picture.height !== rows) {
      this.picture = pen.createImageData(columns, rows);
      this.pixels = new Uint32Array(this.picture.data.buffer);
    }
    return {picture: this.picture, pixels: this.pixels};
  }

  // One step line through a value per column.
  stroke(pen, values, css) {
    const step = (this.wide - LEFT - RIGHT) / this.columns;
    pen.strokeStyle = css;
    pen.lineWidth = 1.8;
    pen.beginPath();
    let last = -1;
    for (let column = 0; column < this.columns; column++) {
      const y = this.y(values[column]), x = LEFT + column * step;
      if (!column) pen.moveTo(x, y);
      else if (values[column] !== last) {
        pen.lineTo(x, this.y(last));
        pen.lineTo(x, y);
      }
      last = values[column];
    }
    pen.lineTo(this.wide - RIGHT, this.y(last));
    pen.stroke();
    pen.lineWidth = 1;
  }

  axes(pen) {
    const {wide, high} = this;
    pen.strokeStyle = colour('grid');
    pen.fillStyle = colour('faint');
    pen.textAlign = 'right';
    pen.textBaseline = 'middle';
    pen.beginPath();
    for (const value of steps(0, this.most, 5, 1024)) {
      const y = Math.round(this.y(value)) + 0.5;
      pen.moveTo(LEFT, y);
      pen.lineTo(wide - RIGHT, y);
      pen.fillText(size(value), LEFT - 6, y);
    }
    pen.textAlign = 'center';
    pen.textBaseline = 'top';
    const base = view.isTime ? R.device.start : 0;
    const ticks = steps(view.low - base, view.high - base, Math.max(2, wide / 150), 10);
    // Far from the start all ticks would read the same: they count from the first of them.
    const isFar = view.isTime && ticks.length > 1 && ticks[0] > 200 * (ticks[1] - ticks[0]);
    ticks.forEach((value, place) => {
      const x = Math.round(this.x(value + base)) + 0.5;
      pen.moveTo(x, high - BOTTOM);
      pen.lineTo(x, high - BOTTOM + 4);
      pen.fillText(!view.isTime ? number(Math.round(value)) : isFar && place
        ? '+' + duration(value - ticks[0]) : duration(value), x, high - BOTTOM + 6);
    });
    pen.stroke();
  }

  showMoment() {
    const x = this.x(view.position(R.moment));
    this.cursor.hidden = !this.isInside(x);
    if (!this.cursor.hidden) this.cursor.style.transform = 'translateX(' + x + 'px)';
  }

  showDrag(from, to) {
    this.shade.hidden = from === to;
    this.shade.style.transform = 'translateX(' + Math.min(from, to) + 'px)';
    this.shade.style.width = Math.abs(to - from) + 'px';
  }

  // Mouse and keys. hover(x, y, event) shows what is there, click(x, y) may do something with it,
  // keys(event) is asked first and says whether it took the key.
  control({hover, click, keys}) {
    const {canvas} = this;
    let from = null, isDrag = false;
    const place = event => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener('pointerdown', event => {
      if (event.button !== 0) return;
      from = place(event)[0];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', event => {
      const [x, y] = place(event);
      if (from === null || Math.abs(x - from) <= 4) { hover(x, y, event); return; }
      isDrag = true;
      tip('');
      this.showDrag(from, x);
    });
    canvas.addEventListener('pointerup', event => {
      if (from === null) return;
      const [x, y] = place(event);
      if (isDrag) view.set(this.value(Math.min(x, from)), this.value(Math.max(x, from)));
      else {
        if (click) click(x, y);
        R.choose(view.momentAt(this.value(x)));
      }
      from = null;
      isDrag = false;
      this.showDrag(0, 0);
    });
    canvas.addEventListener('pointerleave', () => tip(''));
    canvas.addEventListener('dblclick', () => view.whole());
    canvas.addEventListener('wheel', event => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const shift = event.deltaX / this.wide * (view.high - view.low);
        view.set(view.low + shift, view.high + shift);
      } else {
        view.zoom(Math.exp(event.deltaY * 0.0015), this.value(place(event)[0]));
      }
    }, {passive: false});
    canvas.addEventListener('keydown', event => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if ((keys && keys(event)) || moveByKey(event)) event.preventDefault();
    });
  }
}

// The canvas at the screen's resolution, cleared. Its width is asked for once per size of the
// window, since an answer costs a layout of the page.
function fitted(canvas, high) {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.fittedTo !== R.windowSize) {
    canvas.wide = canvas.clientWidth || 900;
    canvas.fittedTo = R.windowSize;
  }
  const pen = canvas.getContext('2d'), {wide} = canvas;
  const width = Math.round(wide * ratio), height = Math.round(high * ratio);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.style.height = high + 'px';
    canvas.width = width;
    canvas.height = height;
  } else {
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, width, height);
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.font = '11.5px system-ui, sans-serif';
  return {pen, wide, ratio};
}
