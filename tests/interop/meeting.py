# SPDX-License-Identifier: BSD-2-Clause
"""The place where two programs meet: a folder that this machine and the guest see, in which a
program that listens leaves a file (meet.c)."""

import time

import guest

LIBRARY = guest.BUILD / 'tests/interop/libmeet.so'
STEP_SECONDS = 0.01


class Meeting:
    def __init__(self, folder, name):
        self.path = folder / name
        self.path.mkdir()

    def settings(self):
        """The environment of a program on this machine."""
        return {'MEETING': str(self.path), 'LD_PRELOAD': str(LIBRARY)}

    def settings_in_guest(self):
        """The same, in front of a command of the guest."""
        return f'MEETING=/mnt/{self.path.name} LD_PRELOAD={LIBRARY}'

    def has_listener(self, port):
        return any((self.path / f'{kind}.{port}').exists() for kind in ('tcp', 'cm'))

    def await_listener(self, port, has_ended, seconds=120):
        """Waits until a program listens, or no longer will."""
        end = time.monotonic() + seconds
        while not self.has_listener(port) and not has_ended() and time.monotonic() < end:
            time.sleep(STEP_SECONDS)
