# SPDX-License-Identifier: MIT
"""Makes the golden files anew.

    python3 tests/tool/golden.py record BUILD   runs programs of a build on the simulated CUDA and
                                                keeps their snapshots without what is of one
                                                machine
    python3 tests/tool/golden.py texts          writes what the tool says of each snapshot; read the
                                                difference before you keep it
"""
import json
import os
import subprocess
import sys
import tempfile

from support import GOLDEN, call_tool, clean_environment, golden_names

START_US = 1795867197500000
RECORDED = {
    'leaky': (['leaky'], {}),
    'growing': (['cases', 'growing'], {}),
    'crumbs': (['cases', 'crumbs'], {}),
    'keeping': (['cases', 'keeping'], {}),
    'retried': (['cases', 'growing'], {'CCA_MEMORY_LIMIT': '1G'}),
    'count': (['cases', 'keeping'], {'CCA_MODE': 'count'}),
}
# Verb and options by the suffix of the golden text.
TEXTS = {
    'txt': ('show',),
    'stats.txt': ('stats',),
    'trace.txt': ('trace', '-n', '20'),
    'segments.txt': ('segments',),
    'memory.txt': ('memory', '--at', 'peak'),
    'leaks.txt': ('leaks',),
    'collapsed.txt': ('memory', '--collapsed', '--at', 'churn'),
    'compare.txt': ('compare', 'normal.json'),
    'merge.txt': ('merge', 'normal.json', 'crumbs.json'),
    'prometheus.txt': ('export', '--to', 'prometheus'),
}
# The same for outputs that are long: of these snapshots only.
LONG_TEXTS = {
    'svg': ('flamegraph', '--at', 'churn'),
    'chrome.txt': ('export', '--to', 'chrome-trace'),
    'show.txt': ('show', '--json'),
}
LONG_NAMES = ('normal', 'growing')


def expected_texts():
    """(snapshot, suffix of the golden text, words of the command) of all there are."""
    for name in golden_names():
        rows = dict(TEXTS, **(LONG_TEXTS if name in LONG_NAMES else {}))
        for suffix, words in rows.items():
            yield name, suffix, words + (name + '.json',)


def record(build):
    for name, (words, settings) in RECORDED.items():
        with tempfile.TemporaryDirectory() as folder:
            environment = clean_environment(
                LD_LIBRARY_PATH=os.path.join(build, 'tests', 'sim'),
                LD_PRELOAD=os.path.join(build, 'preload', 'libcca_preload.so'),
                CCA_DUMP_FORMAT='json', CCA_DUMP_FILE=os.path.join(folder, 'shot'), **settings)
            program = os.path.join(build, 'tests', 'e2e', 'programs', words[0])
            subprocess.run([program, *words[1:]], env=environment, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            with open(os.path.join(folder, 'shot.json'), encoding='utf-8') as stream:
                text = stream.read()
        data = json.loads(text.replace(build, '/home/me/cca/build'))
        with open(os.path.join(GOLDEN, name + '.json'), 'w', encoding='utf-8') as stream:
            json.dump(neutral(data), stream, separators=(',', ':'))
            stream.write('\n')


def neutral(data):
    """Times, numbers and names that do not tell where and when it was recorded; one clock."""
    own = data['cca']
    shift = START_US - own['start_time_us']
    own.update(host='node7', pid=4242, start_time_us=START_US,
               dump_time_us=own['dump_time_us'] + shift)
    own['modules'] = [module for module in own['modules'] if '/home/me/' in module['path']]
    for row in own.get('devices', []):
        if row.get('free_time_us'):
            row['free_time_us'] += shift
    for peak in own.get('peak', []):
        if peak.get('time_us'):
            peak['time_us'] += shift
    own['settings'].pop('CCA_DUMP_FILE', None)
    for segment in data['segments']:
        tidy(segment, shift)
        for block in segment['blocks']:
            tidy(block, shift)
    for trace in data['device_traces']:
        for entry in trace:
            tidy(entry, shift)
    return data


def tidy(record_of_any_kind, shift):
    """Shifts times, and leaves out what lies below main."""
    for key in ('time_us', 'alloc_time_us'):
        if record_of_any_kind.get(key):
            record_of_any_kind[key] += shift
    if 'thread' in record_of_any_kind:
        record_of_any_kind['thread'] = 4242
    frames = record_of_any_kind.get('frames', [])
    for index, frame in enumerate(frames):
        if frame['name'] == 'main':
            del frames[index + 1:]
            break


def texts():
    os.chdir(GOLDEN)
    for name, suffix, words in expected_texts():
        _, out, err = call_tool(*words)
        assert not err, err
        with open(os.path.join(GOLDEN, '%s.%s' % (name, suffix)), 'w') as stream:
            stream.write(out)


if __name__ == '__main__':
    if sys.argv[1:2] == ['record'] and len(sys.argv) == 3:
        record(os.path.realpath(sys.argv[2]))
    elif sys.argv[1:] == ['texts']:
        texts()
    else:
        sys.exit(__doc__)
