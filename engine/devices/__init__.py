"""Devices: what owns memory and runs kernels; which kinds there are, and which exist here."""

from .cpu import CpuDevice as CpuDevice
from .device import Device as Device
from .factories import DeviceFactory as DeviceFactory
from .factories import compiler_of as compiler_of
from .gpu import GpuDevice as GpuDevice
from .memory import MemoryStats as MemoryStats
from .place import Place as Place
from .place import place_of as place_of
from .registry import DeviceAttributes as DeviceAttributes
from .registry import DeviceList as DeviceList
from .registry import DeviceSet as DeviceSet
from .registry import asked_types as asked_types
from .registry import check_type as check_type
from .registry import is_on_host as is_on_host
from .registry import list_devices as list_devices
from .registry import local_devices as local_devices
from .registry import prepare_compilers as prepare_compilers
from .registry import register_device as register_device
from .registry import set_device_count as set_device_count
from .registry import unregister_device as unregister_device
from .registry import with_types as with_types
from .scope import device as device
