# SPDX-License-Identifier: MIT
"""A stand-in for a program that runs with the library, for the tests of `cca dump`.

Maps a file named libcca_preload.so, and answers SIGNAL (a number) by what MODE says:
write: a snapshot; later: one for another cause first; silent: nothing; die: ends;
default: no handler at all.
"""
import json
import mmap
import os
import signal
import sys
import time

library, number, mode, golden = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
count = 0


def put(cause):
    global count
    with open(golden, encoding='utf-8') as stream:
        data = json.load(stream)
    data['cca'].update(pid=os.getpid(), cause=cause)
    pattern = os.environ.get('CCA_DUMP_FILE') or 'cca-%h-%p-%n'
    name = pattern.replace('%h', 'some-host').replace('%p', str(os.getpid()))
    name = name.replace('%n', str(count)) + '.json'
    count += 1
    with open(name + '.part', 'w', encoding='utf-8') as stream:
        text = json.dumps(data)
        stream.write(text[:100])
        stream.flush()
        time.sleep(0.05)
        stream.write(text[100:])
    os.rename(name + '.part', name)


def answer(_number, _frame):
    if mode == 'die':
        os._exit(0)
    if mode == 'later':
        put('oom')
        time.sleep(0.1)
    if mode in ('write', 'later'):
        put('signal')


with open(library, 'rb') as stream:
    mapping = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if os.fstat(
        stream.fileno()).st_size else None
if mode != 'default':
    signal.signal(number, answer)
print('ready', flush=True)
while True:
    time.sleep(0.05)
