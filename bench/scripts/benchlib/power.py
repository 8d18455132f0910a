# power.py: clock and power of a device while something runs on it.
#
# NVML belongs to the driver; it is opened at run time, and a machine without
# it gets no such figures.
#
# SPDX-License-Identifier: BSD-3-Clause

import threading
import time

LIBRARY = 'libnvidia-ml.so.1'
PERIOD = 0.1                    # seconds from one sample to the next
CLOCK_SM = 1


class Absent(Exception):
    """One line that says why there is no NVML."""


def pci_info(ctypes):
    class Info(ctypes.Structure):
        """nvmlPciInfo_t"""
        _fields_ = [('legacy', ctypes.c_char * 16), ('domain', ctypes.c_uint),
                    ('bus', ctypes.c_uint), ('device', ctypes.c_uint),
                    ('id', ctypes.c_uint), ('subsystem', ctypes.c_uint),
                    ('text', ctypes.c_char * 32)]
    return Info()


class Nvml:
    """The device with this number on PCI."""

    def __init__(self, bus):
        try:
            import ctypes
            self.library = ctypes.CDLL(LIBRARY)
        except (ImportError, OSError) as e:
            raise Absent(f'no NVML: {e}')
        self.ctypes = ctypes
        self.call('nvmlInit_v2')
        self.device = self.find(bus)

    def call(self, name, *args):
        r = getattr(self.library, name)(*args)
        if r != 0:
            raise Absent(f'{name}: NVML error {r}')

    def number(self, name, *args):
        """What the last argument of a call becomes."""
        n = self.ctypes.c_uint()
        self.call(name, *args, self.ctypes.byref(n))
        return n.value

    def find(self, bus):
        c = self.ctypes
        for nr in range(self.number('nvmlDeviceGetCount_v2')):
            device, info = c.c_void_p(), pci_info(c)
            self.call('nvmlDeviceGetHandleByIndex_v2', nr, c.byref(device))
            self.call('nvmlDeviceGetPciInfo_v3', device, c.byref(info))
            if info.bus == bus:
                return device
        raise Absent(f'NVML has no device on bus {bus}')

    def driver(self):
        text = self.ctypes.create_string_buffer(80)
        self.call('nvmlSystemGetDriverVersion', text, len(text))
        return text.value.decode()

    def limit(self):
        """Watts."""
        return self.number('nvmlDeviceGetEnforcedPowerLimit',
                           self.device) / 1000

    def clock(self):
        """MHz of the multiprocessors."""
        return self.number('nvmlDeviceGetClockInfo', self.device, CLOCK_SM)

    def power(self):
        """Watts."""
        return self.number('nvmlDeviceGetPowerUsage', self.device) / 1000


class Meter:
    """Samples, while "with" lasts."""

    def __init__(self, nvml):
        self.nvml = nvml
        self.samples = []       # time, MHz, watts
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.take, daemon=True)

    def take(self):
        while not self.ended.wait(PERIOD):
            try:
                self.samples.append((time.monotonic(), self.nvml.clock(),
                                     self.nvml.power()))
            except Absent:
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *why):
        self.ended.set()
        self.thread.join()

    def since(self, start):
        """The medians of MHz and watts from then on; None: no sample."""
        late = [s for s in self.samples if s[0] >= start]
        if not late:
            return None
        return [sorted(column)[len(late) // 2]
                for column in list(zip(*late))[1:]]
