"""Graphs and objects saved in checkpoints, and restored from them."""

from .background import BackgroundWriter as BackgroundWriter
from .checkpoint import Checkpoint as Checkpoint
from .checkpoint import Status as Status
from .collections import register_collection_codec as register_collection_codec
from .manager import CheckpointManager as CheckpointManager
from .meta_graph import MetaGraph as MetaGraph
from .meta_graph import export_meta_graph as export_meta_graph
from .meta_graph import read_meta_graph as read_meta_graph
from .object_graph import parse_json as parse_json
from .retention import Retention as Retention
from .saveables import SaveableObject as SaveableObject
from .saveables import SaveSpec as SaveSpec
from .saveables import stored_value as stored_value
from .saved_model import read_saved_model as read_saved_model
from .saved_model import write_saved_model as write_saved_model
from .saver import Saver as Saver
from .saver import import_meta_graph as import_meta_graph
from .saver_def import SaverDef as SaverDef
from .signatures import Signature as Signature
