# SPDX-License-Identifier: MIT
"""Headless Chromium over the pipe of its debugging protocol, with the standard library alone."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ('chromium', 'chromium-browser', 'google-chrome')


def find():
    """The path of a Chromium, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page. Errors of the console and of scripts gather in `errors`."""

    def __init__(self, width=1280, height=900):
        self._folder = tempfile.mkdtemp(prefix='cca-browser-')
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def place_pipes():
            # The protocol is spoken on 3 and 4; the ends may have any numbers before.
            spare = os.dup(to_browser), os.dup(from_browser)
            os.dup2(spare[0], 3)
            os.dup2(spare[1], 4)

        self._process = subprocess.Popen(
            [find(), '--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run',
             '--disable-dev-shm-usage', '--disable-background-networking', '--disable-extensions',
             '--hide-scrollbars', '--remote-debugging-pipe', '--user-data-dir=' + self._folder,
             '--window-size=%d,%d' % (width, height), 'about:blank'],
            close_fds=False, preexec_fn=place_pipes, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self._rest, self._number, self._session = b'', 0, None
        self.errors, self.requests = [], []
        self._loaded = False
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self._session = self.call('Target.attachToTarget', targetId=target, flatten=True)[
            'sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(domain + '.enable')
        self.call('Performance.enable', timeDomain='threadTicks')
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def close(self):
        os.close(self._write)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _message(self, timeout_s):
        deadline = time.monotonic() + timeout_s
        while b'\0' not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise TimeoutError('the browser does not answer')
            part = os.read(self._read, 1 << 16)
            if not part:
                raise ConnectionError('the browser has ended')
            self._rest += part
        text, _, self._rest = self._rest.partition(b'\0')
        return json.loads(text)

    def _note(self, message):
        method, data = message.get('method'), message.get('params', {})
        if method == 'Runtime.exceptionThrown':
            detail = data['exceptionDetails']
            self.errors.append(detail.get('exception', {}).get('description') or detail['text'])
        elif method == 'Runtime.consoleAPICalled' and data['type'] in ('error', 'warning'):
            self.errors.append(str([one.get('value') for one in data['args']]))
        elif method == 'Log.entryAdded' and data['entry']['level'] in ('error', 'warning'):
            self.errors.append(data['entry']['text'])
        elif method == 'Network.requestWillBeSent':
            self.requests.append(data['request']['url'][:200])
        elif method == 'Page.loadEventFired':
            self._loaded = True

    def call(self, method, timeout_s=60, **parameters):
        """One call of the protocol; its result."""
        self._number += 1
        number = self._number
        message = {'id': number, 'method': method, 'params': parameters}
        if self._session:
            message['sessionId'] = self._session
        os.write(self._write, json.dumps(message).encode() + b'\0')
        while True:
            answer = self._message(timeout_s)
            if answer.get('id') == number:
                if 'error' in answer:
                    raise RuntimeError('%s: %s' % (method, answer['error']['message']))
                return answer['result']
            self._note(answer)

    def open(self, path, timeout_s=60):
        """Opens a file and waits until the page says that it has drawn."""
        self.errors, self.requests, self._loaded = [], [], False
        self.call('Page.navigate', url='file://' + os.path.abspath(path))
        deadline = time.monotonic() + timeout_s
        while not self.value('Boolean(window.ccaReport) || !document.getElementById("failure")'
                             '?.hidden && document.readyState === "complete"'):
            if time.monotonic() > deadline:
                raise TimeoutError('nothing was drawn: %s' % self.errors)
            time.sleep(0.02)

    def value(self, expression):
        """A JavaScript expression's value, promises awaited."""
        answer = self.call('Runtime.evaluate', expression=expression, returnByValue=True,
                           awaitPromise=True)
        if 'exceptionDetails' in answer:
            raise RuntimeError(answer['exceptionDetails'].get('exception', {}).get('description'))
        return answer['result'].get('value')

    def frame(self):
        """Waits until the page has drawn what was asked of it."""
        self.value('new Promise(done => requestAnimationFrame(() => setTimeout(done)))')

    def thread_ms(self):
        """Processor time that the page's own thread has taken since the page was opened."""
        rows = self.call('Performance.getMetrics')['metrics']
        return 1000 * next(row['value'] for row in rows if row['name'] == 'TaskDuration')

    def scheme(self, name):
        """'dark' or 'light', as the system would prefer it."""
        self.call('Emulation.setEmulatedMedia',
                  features=[{'name': 'prefers-color-scheme', 'value': name}])

    def place(self, selector):
        """(x, y, width, height) of an element after it was brought into view."""
        return self.value('(() => { const e = document.querySelector(%s);'
                          ' e.scrollIntoView({block: "center", behavior: "instant"});'
                          ' const b = e.getBoundingClientRect();'
                          ' return [b.left, b.top, b.width, b.height]; })()' % json.dumps(selector))

    def mouse(self, kind, x, y, button='none', count=0, **more):
        self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, button=button,
                  clickCount=count, **more)

    def move(self, x, y):
        self.mouse('mouseMoved', x, y)

    def click(self, x, y):
        self.move(x, y)
        self.mouse('mousePressed', x, y, 'left', 1)
        self.mouse('mouseReleased', x, y, 'left', 1)

    def drag(self, x, y, to_x):
        self.move(x, y)
        self.mouse('mousePressed', x, y, 'left', 1)
        for step in range(1, 5):
            self.mouse('mouseMoved', x + (to_x - x) * step / 4, y, 'left', buttons=1)
        self.mouse('mouseReleased', to_x, y, 'left', 1)

    def wheel(self, x, y, delta):
        self.mouse('mouseWheel', x, y, deltaX=0, deltaY=delta)

    def key(self, key, text='', modifiers=0):
        """Presses and lets go of a key; `text` where it types something."""
        if len(key) == 1 and not text:
            text = key
        data = {'key': key, 'modifiers': modifiers}
        codes = {'Enter': 13, 'Tab': 9, 'Escape': 27, 'ArrowLeft': 37, 'ArrowUp': 38,
                 'ArrowRight': 39, 'ArrowDown': 40, 'Home': 36, 'End': 35}
        if key in codes:
            data['windowsVirtualKeyCode'] = codes[key]
        self.call('Input.dispatchKeyEvent', type='keyDown', text=text, **data)
        self.call('Input.dispatchKeyEvent', type='keyUp', **data)

    def screenshot(self, path, selector=None):
        """A PNG of the window, or of one element."""
        clip = {}
        if selector:
            x, y, width, height = self.value(
                '(() => { const b = document.querySelector(%s).getBoundingClientRect();'
                ' return [b.left + scrollX, b.top + scrollY, b.width, b.height]; })()'
                % json.dumps(selector))
            clip = {'clip': {'x': x, 'y': y, 'width': width, 'height': height, 'scale': 1},
                    'captureBeyondViewport': True}
        data = self.call('Page.captureScreenshot', format='png', **clip)['data']
        with open(path, 'wb') as stream:
            stream.write(base64.b64decode(data))
