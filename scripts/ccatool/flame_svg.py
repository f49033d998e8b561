# SPDX-License-Identifier: MIT
"""A flame graph as an SVG file that needs nothing else: names and shares appear on hover, a click
zooms in."""
import zlib
from html import escape

from . import stacks
from .text import percent, size

WIDTH, ROW, LETTER = 1200, 18, 6.6
LEAST = 0.4           # narrower frames are left out
TOP = 46

SCRIPT = '''
var all = document.querySelectorAll("g.f"), root = all[0], top0 = %(top)d, wide = %(width)d;
function num(e, n) { return parseFloat(e.dataset[n]); }
function zoom(to) {
  var x = num(to, "x"), w = num(to, "w"), d = num(to, "d");
  for (var i = 0; i < all.length; i++) {
    var g = all[i], gx = num(g, "x"), gw = num(g, "w"), r = g.querySelector("rect");
    var above = num(g, "d") < d && gx <= x + 1e-6 && gx + gw >= x + w - 1e-6;
    var inside = gx >= x - 1e-6 && gx + gw <= x + w + 1e-6;
    g.style.display = above || inside ? "" : "none";
    var nx = above ? 0 : (gx - x) / w * wide, nw = above ? wide : gw / w * wide;
    r.setAttribute("x", nx); r.setAttribute("width", Math.max(0.3, nw - 0.5));
    r.style.opacity = above ? 0.5 : 1;
    var t = g.querySelector("text"), room = Math.floor((nw - 8) / 6.6), name = g.dataset.n;
    t.setAttribute("x", nx + 4);
    t.textContent = room < 3 ? "" : name.length > room ? name.slice(0, room - 2) + ".." : name;
  }
}
for (var i = 0; i < all.length; i++) {
  all[i].addEventListener("click", function () { zoom(this); });
  all[i].addEventListener("keydown", function (e) { if (e.key === "Enter") zoom(this); });
}
'''


class Node:
    """A frame in a place of the tree."""

    def __init__(self, name):
        self.name, self.bytes, self.children = name, 0, {}

    def child(self, name):
        if name not in self.children:
            self.children[name] = Node(name)
        return self.children[name]


def tree_of(rows):
    """The tree of (frames, bytes) pairs; frames innermost first, as snapshots have them."""
    root = Node('all')
    for frames, count in rows:
        root.bytes += count
        node = root
        names = stacks.texts(frames)[::-1]
        for name in names:
            node = node.child(name)
            node.bytes += count
    return root


def svg(rows, title):
    """The picture: root at the top, widths by bytes."""
    root = tree_of(rows)
    cells = []
    deepest = place(cells, root, 0.0, float(WIDTH), 0, root.bytes) if root.bytes else 0
    height = TOP + (deepest + 1) * ROW + 8
    parts = ['<?xml version="1.0" encoding="UTF-8"?>\n<!-- SPDX-License-Identifier: MIT -->\n'
             '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" '
             'font-family="sans-serif" font-size="12">\n<title>%s</title>\n'
             '<style>g.f rect{stroke:#fff;stroke-width:.5}g.f{cursor:pointer}'
             'g.f:hover rect,g.f:focus rect{stroke:#000}</style>\n'
             '<rect width="100%%" height="100%%" fill="#fff"/>\n'
             '<text x="8" y="20" font-size="15">%s</text>\n'
             '<text x="8" y="38" fill="#555">click a frame to zoom in, the first row to zoom out'
             '</text>\n' % (WIDTH, height, WIDTH, height, escape(title), escape(title))]
    parts += cells
    parts.append('<script><![CDATA[%s]]></script>\n</svg>\n' % (
        SCRIPT % {'top': TOP, 'width': WIDTH}))
    return ''.join(parts)


def place(cells, node, left, width, depth, total):
    """Appends the cells of a subtree; returns its deepest row."""
    cells.append(cell(node, left, width, depth, total))
    deepest = depth
    for child in sorted(node.children.values(), key=lambda one: (-one.bytes, one.name)):
        share = width * child.bytes / node.bytes if node.bytes else 0
        if share >= LEAST:
            deepest = max(deepest, place(cells, child, left, share, depth + 1, total))
        left += share
    return deepest


def cell(node, left, width, depth, total):
    y = TOP + depth * ROW
    room = int((width - 8) / LETTER)
    shown = '' if room < 3 else node.name if len(node.name) <= room else node.name[:room - 2] + '..'
    hover = '%s: %s, %s' % (node.name, size(node.bytes), percent(node.bytes, total))
    return ('<g class="f" tabindex="0" data-x="%.4f" data-w="%.4f" data-d="%d" data-n="%s">'
            '<title>%s</title><rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"/>'
            '<text x="%.2f" y="%d">%s</text></g>\n' % (
                left, width, depth, escape(printable(node.name)), escape(printable(hover)), left, y,
                max(0.3, width - 0.5), ROW - 1, fill(node.name, depth), left + 4, y + 13,
                escape(printable(shown))))


def printable(text):
    """Without the control characters that XML forbids."""
    return ''.join(char if char.isprintable() else '?' for char in text)


def fill(name, depth):
    """A warm colour, the same for the same name."""
    if depth == 0:
        return '#d8d4cc'
    number = zlib.crc32(name.encode('utf-8', 'replace'))
    return 'hsl(%d,%d%%,%d%%)' % (14 + number % 42, 66 + number // 42 % 20, 62 + number // 840 % 14)
