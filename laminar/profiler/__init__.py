"""What a program does when: traces of Python, data, operations and native kernels, by thread."""

from .report import KernelTotal as KernelTotal
from .report import TraceReport as TraceReport
from .trace import annotate as annotate
from .trace import trace as trace
