"""Summaries: what TensorBoard shows of a training, in graphs, functions and eager code."""

from ..io.events import Event as Event
from ..io.events import SessionLog as SessionLog
from ..io.events import read_events as read_events
from ..io.summaries import Audio as Audio
from ..io.summaries import Histogram as Histogram
from ..io.summaries import Image as Image
from ..io.summaries import Summary as Summary
from ..io.summaries import SummaryValue as SummaryValue
from .file_writer import FileWriter as FileWriter
from .file_writer import FileWriterCache as FileWriterCache
from .file_writer import create_file_writer as create_file_writer
from .settings import get_step as get_step
from .settings import record_if as record_if
from .settings import set_step as set_step
from .settings import should_record as should_record
from .values import audio as audio
from .values import histogram as histogram
from .values import image as image
from .values import merge as merge
from .values import merge_all as merge_all
from .values import scalar as scalar
from .values import text as text
