"""Devices: what owns memory and runs kernels; which kinds there are, and which exist here."""

from .cpu import CpuDevice as CpuDevice
from .device import Device as Device
from .gpu import GpuDevice as GpuDevice
from .memory import MemoryStats as MemoryStats
from .registry import DeviceAttributes as DeviceAttributes
from .registry import DeviceFactory as DeviceFactory
from .registry import DeviceList as DeviceList
from .registry import DeviceSet as DeviceSet
from .registry import list_devices as list_devices
from .registry import local_devices as local_devices
from .registry import register_device as register_device
