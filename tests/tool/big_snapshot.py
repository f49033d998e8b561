# SPDX-License-Identifier: MIT
"""Makes large snapshots: the history of an invented training run, consistent to the last byte.

    python3 tests/tool/big_snapshot.py EVENTS FILE [DEVICES]

Blocks live in segments of a simple first-fit allocator, so that segments, trace and statistics
agree. The same arguments give the same file.
"""
import pickle
import random
import sys

MIB = 1 << 20
BASE = 0x7f0000000000
START_US = 1795867197500000
SEGMENT = 64 * MIB
MODULES = ('/opt/app/bin/train', '/opt/app/lib/libnet.so', '/opt/app/lib/liboptim.so')


def make_stacks(rng, count):
    """Distinct stacks of 4 to 14 frames; entries share the list objects."""
    stacks = []
    for number in range(count):
        depth = rng.randint(3, 13)
        frames = [{'name': 'layer%d::step%d(unsigned long)' % (number % 17, number),
                   'filename': MODULES[number % 3], 'line': 0}]
        frames += [{'name': 'pass%d::level%d' % ((number * 7 + level) % 5, level),
                    'filename': MODULES[(number + level) % 3], 'line': 0}
                   for level in range(depth)]
        stacks.append(frames + [{'name': 'main', 'filename': MODULES[0], 'line': 0}])
    return stacks


class Device:
    """A list of gaps per segment; first fit."""

    def __init__(self, ordinal):
        self.ordinal = ordinal
        self.trace, self.segments = [], []
        self.live = {}                      # address -> (size, requested, frames, time)
        self.gaps = []                      # [address, size], sorted
        self.allocated = self.allocated_peak = self.allocs = 0

    def entry(self, action, address, size, time, frames):
        self.trace.append({'action': action, 'addr': address, 'size': size, 'stream': 0,
                           'time_us': time, 'compile_context': 'N/A', 'user_metadata': '',
                           'pool_id': POOL, 'frames': frames, 'thread': 4242,
                           'api': 'cudaMalloc'})

    def alloc(self, requested, frames, time):
        size = max(512, (requested + 511) // 512 * 512)
        for gap in self.gaps:
            if gap[1] >= size:
                break
        else:
            address = BASE + (self.ordinal << 40) + len(self.segments) * 2 * SEGMENT
            self.segments.append((address, frames))
            gap = [address, SEGMENT]
            self.gaps.append(gap)
            self.gaps.sort()
            self.entry('segment_alloc', address, SEGMENT, time, frames)
        address = gap[0]
        gap[0] += size
        gap[1] -= size
        if not gap[1]:
            self.gaps.remove(gap)
        self.live[address] = (size, requested, frames, time)
        self.allocated += size
        self.allocated_peak = max(self.allocated, self.allocated_peak)
        self.allocs += 1
        self.entry('alloc', address, requested, time, frames)
        return address

    def free(self, address, time):
        size, requested, frames, _ = self.live.pop(address)
        self.allocated -= size
        self.entry('free_requested', address, requested, time, frames)
        self.entry('free_completed', address, requested, time, frames)
        self.gaps.append([address, size])
        self.gaps.sort()
        merged = []
        for gap in self.gaps:
            if merged and merged[-1][0] + merged[-1][1] == gap[0]:
                merged[-1][1] += gap[1]
            else:
                merged.append(gap)
        self.gaps = merged

    def final_segments(self):
        found = []
        for address, frames in self.segments:
            blocks, place = [], address
            inside = sorted(start for start in self.live if address <= start < address + SEGMENT)
            for start in inside + [address + SEGMENT]:
                if place < start:
                    blocks.append({'address': place, 'size': start - place, 'requested_size': 0,
                                   'state': 'inactive', 'frames': []})
                if start in self.live:
                    size, requested, stack, time = self.live[start]
                    blocks.append({'address': start, 'size': size, 'requested_size': requested,
                                   'state': 'active_allocated', 'frames': stack,
                                   'alloc_time_us': time, 'thread': 4242})
                    place = start + size
            used = sum(block['size'] for block in blocks if block['state'] != 'inactive')
            found.append({'device': self.ordinal, 'address': address, 'total_size': SEGMENT,
                          'allocated_size': used, 'active_size': used,
                          'requested_size': sum(b['requested_size'] for b in blocks),
                          'stream': 0, 'segment_type': 'large', 'segment_pool_id': POOL,
                          'is_expandable': False, 'frames': frames, 'blocks': blocks})
        return found


POOL = (0, 0)


def make(events, devices=1, live=400, seed=7):
    """The snapshot as plain data, with about that many events on each device."""
    rng = random.Random(seed)
    stacks = make_stacks(rng, 60)
    made = [Device(ordinal) for ordinal in range(devices)]
    time = START_US
    for device in made:
        time, alive = START_US, []
        while len(device.trace) < events:
            time += rng.choice((3, 8, 20, 400)) if rng.random() < 0.999 else 200000
            if len(alive) < live and rng.random() < 0.6 or not alive:
                stack = rng.randrange(len(stacks))
                requested = rng.choice((700, 4096, 60000, 900000, 3000000)) + 64 * stack
                alive.append(device.alloc(requested, stacks[stack], time))
            else:
                place = len(alive) - 1 - int(rng.expovariate(0.1)) % len(alive)
                device.free(alive.pop(place), time)
    return {
        'segments': [segment for device in made for segment in device.final_segments()],
        'device_traces': [device.trace for device in made],
        'allocator_settings': {'PYTORCH_CUDA_ALLOC_CONF': '', 'max_split_size': -1},
        'external_annotations': [],
        'cca': {
            'version': '0.1.0', 'host': 'node7', 'pid': 4242, 'rank': None, 'cause': 'exit',
            'program': '/opt/app/bin/train', 'command_line': ['/opt/app/bin/train'],
            'start_time_us': START_US, 'dump_time_us': time + 1000, 'driver_version': 13000,
            'runtime_version': 13000,
            'hook_coverage': {}, 'settings': {}, 'modules': [], 'devices': [],
            'stats': [{'allocated_bytes.all.current': device.allocated,
                       'allocated_bytes.all.peak': device.allocated_peak} for device in made],
            'counters': [{'allocs': device.allocs, 'lost_entries': 0,
                          'hits': device.allocs - len(device.segments)} for device in made],
        },
    }


def main():
    events, path = int(sys.argv[1]), sys.argv[2]
    data = make(events, int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    with open(path, 'wb') as stream:
        pickle.dump(data, stream, 2)


if __name__ == '__main__':
    main()
