// SPDX-License-Identifier: MIT
// Colours: those of the style sheet, by name, and one for each band. Asked of the browser once per
// theme, since an answer costs it a look at the whole page.
const palette = {
  named: new Map(), numbers: new Map(),

  forget() {
    this.named.clear();
    this.numbers.clear();
  },

  // A colour as the number that a pixel of a picture holds; `alpha` from 0 to 1.
  pixel(css, alpha) {
    const key = css + ' ' + alpha;
    if (!this.numbers.has(key)) {
      if (!this.dot) {
        this.dot = make('canvas', {width: 1, height: 1})
          .getContext('2d', {willReadFrequently: true});
      }
      const {dot} = this;
      dot.fillStyle = css;
      dot.fillRect(0, 0, 1, 1);
      const [red, green, blue] = dot.getImageData(0, 0, 1, 1).data;
      const bytes = Uint8Array.of(red, green, blue, Math.round(alpha * 255));
      this.numbers.set(key, new Uint32Array(bytes.buffer)[0]);
    }
    return this.numbers.get(key);
  },
};

function colour(name) {
  if (!palette.named.has(name)) {
    palette.named.set(name,
      getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim());
  }
  return palette.named.get(name);
}

// Hues a golden angle apart, light and dark by turns, so that neighbours differ in both.
function bandColour(place) {
  if (place === undefined || place < 0) return colour('rest');
  const name = 'band' + place;
  if (!palette.named.has(name)) {
    const light = Number(colour('band-light')) - (place % 2 ? 0.1 : 0);
    palette.named.set(name, 'oklch(' + light + ' 0.115 ' + (255 + place * 137.5) % 360 + ')');
  }
  return palette.named.get(name);
}
