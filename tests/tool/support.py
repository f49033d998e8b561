# SPDX-License-Identifier: MIT
"""What the tests of the tool share: the tool's path, golden snapshots, throw-away folders."""
import io
import json
import os
import pickle
import pty
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SCRIPTS = os.path.join(ROOT, 'scripts')
GOLDEN = os.path.join(HERE, 'golden')
# The build passes its own tool; without it the source tree's is tested.
TOOL = os.environ.get('CCA_TEST_TOOL') or os.path.join(SCRIPTS, 'cca')
COMPILER = shutil.which('cc') or shutil.which('gcc') or shutil.which('clang')

sys.dont_write_bytecode = True
sys.path.insert(0, SCRIPTS)


def clean_environment(**extra):
    """The environment without what would change the outcome."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(('CCA_', 'LD_', 'NO_COLOR', 'PYTHONPATH'))}
    environment.update(extra)
    return environment


def run_tool(*words, cwd=None, env=None, stdin=b''):
    """Runs the tool; returns (status, stdout, stderr) as text."""
    done = subprocess.run([sys.executable, TOOL, *words], cwd=cwd, input=stdin,
                          env=env or clean_environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def call_tool(*words):
    """The same in this process, for many calls: returns (status, stdout, stderr) as text."""
    from ccatool.main import main
    kept = sys.stdout, sys.stderr
    out, err = (io.TextIOWrapper(io.BytesIO(), 'utf-8') for _ in range(2))
    sys.stdout, sys.stderr = out, err
    try:
        try:
            status = main(list(words))
        except SystemExit as leaving:
            status = leaving.code
    finally:
        sys.stdout, sys.stderr = kept
    for stream in (out, err):
        stream.flush()
    return status, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()


def golden_names():
    return sorted(name[:-len('.json')] for name in os.listdir(GOLDEN) if name.endswith('.json'))


def golden_data(name):
    with open(os.path.join(GOLDEN, name + '.json'), encoding='utf-8') as stream:
        return json.load(stream)


def golden_pickle(name):
    """The golden snapshot as PyTorch's script would have it: protocol 2, pool ids as tuples."""
    return pickle.dumps(with_tuples(golden_data(name)), 2)


def with_tuples(data):
    for segment in data['segments']:
        segment['segment_pool_id'] = tuple(segment['segment_pool_id'])
    for trace in data['device_traces']:
        for entry in trace:
            entry['pool_id'] = tuple(entry['pool_id'])
    return data


QUIET = 0.6            # of the machine's processors, on average of the last minute


def crowding():
    """How many programs want each processor."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def put(data, place, odd):
    """Sets what lies at a path of keys and indices; `gone` takes it away."""
    inner = data
    for part in place[:-1]:
        inner = inner[part]
    if odd == 'gone':
        del inner[place[-1]]
    else:
        inner[place[-1]] = odd


def on_terminal(stream, words, **popen):
    """Runs the tool with 'stdout' or 'stderr' on a terminal; (status, what it wrote there)."""
    main, side = pty.openpty()
    streams = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL, stream: side}
    process = subprocess.Popen([sys.executable, TOOL, *words], **streams, **popen)
    os.close(side)
    said = b''
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:
            break
        if not part:
            break
        said += part
    os.close(main)
    return process.wait(), said


class FolderTest(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='cca-test-')
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, name, content):
        if isinstance(content, str):
            content = content.encode()
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), 'wb') as stream:
            stream.write(content)
        return self.path(name)

    def start_ready(self, words, **popen):
        """Starts a program that says `ready`; it is ended with the test."""
        process = subprocess.Popen(words, stdout=subprocess.PIPE, **popen)
        self.addCleanup(self.end, process)
        self.assertEqual(process.stdout.readline(), b'ready\n')
        return process

    def end(self, process):
        process.kill()
        process.wait()
        process.stdout.close()

    def compile(self, name, source, *flags):
        """Builds a C file in the folder; skips the test where the machine cannot."""
        if not COMPILER:
            self.skipTest('no C compiler')
        code = self.write(name + '.c', source)
        done = subprocess.run([COMPILER, '-o', self.path(name), code, *flags],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            self.skipTest('cannot build %s %s' % (name, ' '.join(flags)))
        return self.path(name)

    def one_line(self, text, start='cca: '):
        """Asserts that the text is one line, and no traceback."""
        self.assertEqual(text.count('\n'), 1, text)
        self.assertTrue(text.startswith(start), text)
        return text
