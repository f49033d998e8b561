// SPDX-License-Identifier: MIT
// How numbers, times and elements are made. R holds what the parts of the page share.
const R = {};

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

function size(bytes) {
  if (bytes === null || bytes === undefined) return '-';
  let value = Math.abs(bytes), unit = 0;
  while (value >= 999.5 && unit + 1 < UNITS.length) { value /= 1024; unit++; }
  const digits = unit === 0 ? Math.round(value).toString()
    : value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
  return (bytes < 0 ? '-' : '') + digits + ' ' + UNITS[unit];
}

function number(value) {
  if (value === null || value === undefined) return '-';
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

function counted(value, noun) { return number(value) + ' ' + noun + (value === 1 ? '' : 's'); }

function percent(part, whole) {
  if (!whole) return '-';
  const value = 100 * part / whole;
  if (value > 99.9 && value < 100) return '>99.9 %';
  return (value > 0 && value < 0.1 ? '<0.1' : value.toFixed(1)) + ' %';
}

function duration(us) {
  const sign = us < 0 ? '-' : '';
  us = Math.abs(us);
  if (us < 1000) return sign + us.toFixed(0) + ' us';
  if (us < 1e6) return sign + (us / 1e3).toFixed(us < 1e5 ? 2 : 1) + ' ms';
  if (us < 120e6) return sign + (us / 1e6).toFixed(us < 1e7 ? 3 : 2) + ' s';
  const minutes = Math.floor(us / 60e6);
  if (minutes < 120) return sign + minutes + ' min ' + Math.floor(us / 1e6 % 60) + ' s';
  return sign + Math.floor(minutes / 60) + ' h ' + minutes % 60 + ' min';
}

function hex(address) { return '0x' + address.toString(16); }

// An element: make('td', {class: 'n', text: '5'}, child, ...). Text never becomes markup.
function make(tag, attributes, ...children) {
  const isSvg = SVG_TAGS.has(tag);
  const element = isSvg ? document.createElementNS('http://www.w3.org/2000/svg', tag)
    : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === 'text') element.textContent = value;
    else if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}
const SVG_TAGS = new Set(['svg', 'g', 'rect', 'text']);

function byId(id) { return document.getElementById(id); }

// A text beside the pointer; none: nothing. What is shown already is only moved.
function tip(text, x, y) {
  const box = byId('tip');
  if (!text) { box.hidden = true; return; }
  if (box.textContent !== text) box.textContent = text;
  box.hidden = false;
  const wide = box.offsetWidth, high = box.offsetHeight;
  box.style.left = Math.max(4, Math.min(x + 14, innerWidth - wide - 8)) + 'px';
  box.style.top = (y + 18 + high > innerHeight ? Math.max(4, y - high - 12) : y + 18) + 'px';
}
