# SPDX-License-Identifier: MIT
"""The library's variables: which exist, and what a value of one comes to.

The rows are those of src/config/options.def, from which the library is built.
"""
import difflib
import re

from . import definition, signals
from .definition import unquoted
from .failure import Failure

PREFIX = 'CCA_'
ROW_KINDS = ('BOOL', 'SIZE', 'UINT', 'RATIO', 'ENUM', 'FLAGS', 'TEXT', 'SIGNAL')
SUFFIXES = {'': 0, 'K': 10, 'KIB': 10, 'M': 20, 'MIB': 20, 'G': 30, 'GIB': 30, 'T': 40, 'TIB': 40}
TRUE_WORDS = ('1', 'true', 'yes', 'on')
FALSE_WORDS = ('0', 'false', 'no', 'off')
# The named limits of the rows, in bytes.
CONSTANTS = {'CCA_NO_LIMIT': 2 ** 63 - 1, 'CCA_LARGE_SEGMENT': 20 << 20}
# Defaults of SIGNAL rows that have no name of the C library.
SIGNAL_CONSTANTS = {'CCA_SIGNAL_CONTROL': 'RTMAX-3'}
UNLIMITED_WORDS = ('unlimited', 'none')


class Variable:
    """One row: its name, the kind of its values, its default as text, the words it may take."""

    def __init__(self, kind, fields):
        self.kind = kind
        self.name = fields[1]
        self.words = unquoted(fields[3]).split('|') if kind in ('ENUM', 'FLAGS') else []
        self.least, self.most = None, None
        if kind in ('SIZE', 'UINT'):
            self.least, self.most = limit(fields[3]), limit(fields[4])
        self.default = self._default_text(fields[2])

    def _default_text(self, code):
        if self.kind == 'BOOL':
            return '1' if code == 'true' else '0'
        if self.kind == 'TEXT':
            return unquoted(code)
        if self.kind == 'SIGNAL':
            code = SIGNAL_CONSTANTS.get(code, code)
            return 'none' if code == '0' else code.replace('SIG', '', 1)
        if self.kind in ('ENUM', 'FLAGS'):
            return ','.join(self._word_of(part.strip()) for part in code.split('|')) or 'none'
        if code == 'CCA_NO_LIMIT':
            return 'unlimited'
        return code

    def _word_of(self, constant):
        """CCA_DUMP_ON_EXIT -> exit: constants end in the word they stand for."""
        for word in self.words:
            if constant.endswith('_' + word.upper()):
                return word
        return '' if constant == '0' else constant

    def effective(self, text):
        """The value as the library takes it, or None where it would refuse it."""
        text = text.strip()
        if self.kind == 'TEXT':
            return text
        if self.kind == 'BOOL':
            word = text.lower()
            return '1' if word in TRUE_WORDS else '0' if word in FALSE_WORDS else None
        if self.kind == 'SIGNAL':
            if text.lower() == 'none':
                return 'none'
            return text if signals.number_of(text) is not None else None
        if self.kind == 'ENUM':
            return text if text in self.words else None
        if self.kind == 'FLAGS':
            return self._flags(text)
        if self.kind == 'RATIO':
            is_number = re.fullmatch(r'\d+(\.\d*)?|\.\d+', text)
            is_good = is_number and (0 < float(text) <= 1 or float(text) == float(self.default))
            return text if is_good else None
        return self._integer(text)

    def _flags(self, text):
        if text in ('', 'none'):
            return 'none'
        given = [word.strip() for word in text.split(',')]
        known = [word for word in self.words if word in given]
        known += [word for word in given
                  if re.fullmatch(r'interval:[1-9]\d{0,4}', word) and 'interval' in self.words]
        return ','.join(word for word in known if word != 'interval') or None

    def _integer(self, text):
        value = size_of(text) if self.kind == 'SIZE' else int(text) if text.isdigit() else None
        if value is None or not self.least <= value <= self.most:
            return None
        return 'unlimited' if value == CONSTANTS['CCA_NO_LIMIT'] else str(value)


def size_of(text):
    """Bytes of `512M`, `2GiB`, `4096`, `unlimited`; None where it is none of these."""
    if text.lower() in UNLIMITED_WORDS:
        return CONSTANTS['CCA_NO_LIMIT']
    match = re.fullmatch(r'(\d+)\s*([A-Za-z]*)', text)
    if not match or match.group(2).upper() not in SUFFIXES:
        return None
    value = int(match.group(1)) << SUFFIXES[match.group(2).upper()]
    return value if value < 2 ** 63 else None


def limit(code):
    """The number behind the limit of a row."""
    return CONSTANTS[code] if code in CONSTANTS else int(code, 0)


def known():
    """All variables by name, in the order of the rows."""
    return {fields[1]: Variable(kind, fields)
            for kind, fields in definition.rows('options.def', ROW_KINDS)}


def full_name(name):
    """The variable's name for what a user wrote, with or without the prefix."""
    variables = known()
    name = name.strip().upper().replace('-', '_')
    if not name.startswith(PREFIX):
        name = PREFIX + name
    if name not in variables:
        close = difflib.get_close_matches(name, variables, 1)
        hint = ' (did you mean %s?)' % close[0] if close else ''
        raise Failure('no variable %s%s' % (name, hint))
    return name


def effective_values(environment, given):
    """Rows (name, value, remark): what the library will use, and where it comes from.

    `given` holds the names that were set on the command line.
    """
    rows = []
    variables = known()
    for name, variable in variables.items():
        text = environment.get(name)
        if text is None or (text == '' and name != 'CCA_DUMP_ON'):
            rows.append((name, variable.default, 'default'))
            continue
        value = variable.effective(text)
        if value is None:
            rows.append((name, variable.default, 'default; bad value %s' % text))
        else:
            rows.append((name, value, 'command line' if name in given else 'environment'))
    rows = [(name, *implied_mode(rows)) if name == 'CCA_MODE' else (name, value, remark)
            for name, value, remark in rows]
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in variables:
            rows.append((name, environment[name], 'unknown, ignored'))
    return rows


def implied_mode(rows):
    """(value, remark) of CCA_MODE, which two other variables overrule."""
    values = {name: (value, remark) for name, value, remark in rows}
    if values.get('CCA_DISABLE', ('0',))[0] == '1':
        return 'off', 'CCA_DISABLE=1'
    if values['CCA_MODE'][0] == 'cache' and values.get('CCA_FREE_SYNC', ('',))[0] == 'native':
        return 'count', 'CCA_FREE_SYNC=native'
    return values['CCA_MODE']
