// SPDX-License-Identifier: MIT
// A table that is sorted by its heads. Columns: {title, key(row), show(row), isNumber}.
class SortedTable {
  constructor(columns, options) {
    this.columns = columns;
    this.options = options || {};
    this.sort = this.options.sort || 0;
    this.isDown = true;
    this.most = this.options.most || 200;
    this.body = make('tbody');
    this.heads = columns.map((column, place) => make('th', {class: column.isNumber ? 'n' : '',
      scope: 'col'}, make('button', {text: column.title, onclick: () => this.sortBy(place)})));
    this.element = make('div', {class: 'scroll'}, make('table', {id: this.options.id},
      make('thead', {}, make('tr', {}, ...this.heads)), this.body));
    this.more = make('button', {hidden: true,
      onclick: () => { this.most = Infinity; this.fill(); }});
  }

  setRows(rows) { this.rows = rows; this.fill(); }

  sortBy(place) {
    this.isDown = this.sort === place ? !this.isDown : true;
    this.sort = place;
    this.fill();
  }

  fill() {
    const {key} = this.columns[this.sort], sign = this.isDown ? -1 : 1;
    const rows = this.rows.slice().sort((a, b) => {
      const left = key(a), right = key(b);
      return sign * (left < right ? -1 : left > right ? 1 : 0);
    });
    this.heads.forEach((head, place) => head.setAttribute('aria-sort', place !== this.sort ? 'none'
      : this.isDown ? 'descending' : 'ascending'));
    const shown = rows.slice(0, this.most);
    this.body.replaceChildren(...shown.map(row => {
      const cells = this.columns.map(column => {
        const value = column.show(row);
        const cell = make('td', {class: column.isNumber ? 'n' : ''});
        cell.append(value);
        return cell;
      });
      const {isChosen} = this.options;
      const attributes = {class: isChosen && isChosen(row) ? 'choice' : ''};
      if (this.options.choose) {
        attributes.tabindex = 0;
        attributes.onclick = () => this.options.choose(row);
        attributes.onkeydown = event => {
          if (event.key === 'Enter') { event.preventDefault(); this.options.choose(row); }
          const next = event.key === 'ArrowDown' ? event.currentTarget.nextSibling
            : event.key === 'ArrowUp' ? event.currentTarget.previousSibling : null;
          if (next) { event.preventDefault(); next.focus(); }
        };
      }
      return make('tr', attributes, ...cells);
    }));
    this.more.hidden = rows.length <= shown.length;
    this.more.textContent = 'show all ' + number(rows.length);
  }
}

function plainTable(heads, rows, id) {
  return make('div', {class: 'scroll'}, make('table', {id}, make('thead', {}, make('tr', {},
    ...heads.map((text, place) => make('th', {text, scope: 'col', class: place ? 'n' : ''})))),
  make('tbody', {}, ...rows.map(row => make('tr', {}, ...row.map((value, place) =>
    make('td', {text: String(value), class: place ? 'n' : ''})))))));
}
