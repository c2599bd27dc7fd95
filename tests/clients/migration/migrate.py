#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Moves a guest from one QEMU to another, and compares its memory at both ends.

    migrate.py <folder> <sector> <uri> [--pin-all] [--source <words>] [--target <words>]

The words are a command that comes before QEMU's. The target is told not to let the guest run, so
that the memory of both ends can be compared byte by byte. Then the guest goes on at the target, and
must still count if it counted before. One line tells the times, and the CPU time of both QEMUs.
"""

import argparse
import filecmp
import json
import os
import socket
import subprocess
import sys
import time

MEMORY = 256 << 20
READY = 0x8000      # the guest's count of rounds


class Machine:
    def __init__(self, folder, name, prefix, sector, more=()):
        self.folder, self.name = folder, name
        path = f'{folder}/{name}.socket'
        self.process = subprocess.Popen(
            prefix + ['qemu-system-x86_64', '-accel', 'tcg', '-nodefaults', '-display', 'none', '-m', '256',
                      '-drive', f'file={sector},format=raw,if=floppy,readonly=on', '-boot', 'a',
                      '-qmp', f'unix:{path},server=on,wait=off', *more],
            stdin=subprocess.DEVNULL, stderr=open(f'{folder}/{name}', 'w'))
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        deadline = time.monotonic() + 20
        while True:
            try:
                self.socket.connect(path)
                break
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    sys.exit(f'{name}: QEMU does not answer')
                time.sleep(0.02)
        self.lines = self.socket.makefile()
        self.lines.readline()
        self.ask('qmp_capabilities')

    def ask(self, command, **arguments):
        self.socket.sendall(json.dumps({'execute': command, 'arguments': arguments}).encode())
        while True:
            answer = json.loads(self.lines.readline() or '{"error": "the connection is gone"}')
            if 'error' in answer:
                sys.exit(f'{self.name}: {command}: {answer["error"]}')
            if 'return' in answer:
                return answer['return']

    def save(self, name, start=0, size=MEMORY):
        path = f'{self.folder}/{name}'
        self.ask('pmemsave', val=start, size=size, filename=path)
        return path

    def rounds(self):
        with open(self.save(f'{self.name}.count', READY, 4), 'rb') as file:
            return int.from_bytes(file.read(), 'little')

    def cpu_seconds(self):
        with open(f'/proc/{self.process.pid}/stat') as file:
            fields = file.read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def end(self):
        try:
            self.socket.sendall(b'{"execute": "quit"}')
            self.process.wait(5)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


def await_state(is_reached, what, seconds=100):
    deadline = time.monotonic() + seconds
    while not is_reached():
        if time.monotonic() > deadline:
            sys.exit(f'in vain: {what}')
        time.sleep(0.05)


def migrate(source, target, options):
    capabilities = [{'capability': 'rdma-pin-all', 'state': options.pin_all}]
    for machine in (source, target):
        machine.ask('migrate-set-capabilities', capabilities=capabilities)
    target.ask('migrate-incoming', uri=options.uri)
    # A guest that changes its memory faster than it can be sent is stopped for up to a second.
    source.ask('migrate-set-parameters', **{'max-bandwidth': 100 << 30, 'downtime-limit': 1000})
    await_state(lambda: source.rounds() > 0, 'the guest is ready')
    before = source.cpu_seconds() + target.cpu_seconds()
    source.ask('migrate', uri=options.uri)
    states = ('completed', 'failed', 'cancelled')
    await_state(lambda: source.ask('query-migrate').get('status') in states, 'the end of the migration')
    state = source.ask('query-migrate')
    if state['status'] != 'completed':
        sys.exit(f'the migration {state["status"]}: {state.get("error-desc")}')
    await_state(lambda: target.ask('query-status')['status'] == 'paused', 'the target has the guest')
    return state, source.cpu_seconds() + target.cpu_seconds() - before


def compare(source, target):
    if not filecmp.cmp(source.save('source.memory'), target.save('target.memory'), shallow=False):
        sys.exit('the memory of the two ends differs')
    count = target.rounds()
    target.ask('cont')
    if count > 1:       # it counts
        await_state(lambda: target.rounds() > count, 'the guest goes on at the target', 10)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('folder')
    parser.add_argument('sector')
    parser.add_argument('uri')
    parser.add_argument('--pin-all', action='store_true')
    parser.add_argument('--source', default='')
    parser.add_argument('--target', default='')
    options = parser.parse_args()
    machines = []
    try:
        machines.append(Machine(options.folder, 'source', options.source.split(), options.sector))
        machines.append(Machine(options.folder, 'target', options.target.split(), options.sector,
                                ('-incoming', 'defer', '-S')))
        state, cpu = migrate(*machines, options)
        compare(*machines)
    finally:
        for machine in machines:
            machine.end()
    ram = state['ram']
    print(f'total {state["total-time"]} ms, setup {state["setup-time"]} ms, downtime {state["downtime"]} ms, '
          f'CPU {cpu:.2f} s, {ram["transferred"] >> 20} MB, {ram["dirty-sync-count"]} rounds')


if __name__ == '__main__':
    main()
