"""The graph face: build, differentiate and run dataflow graphs."""

from typing import TYPE_CHECKING

from . import errors as errors
from .devices import Device as Device
from .devices import device as device
from .devices import list_devices as list_devices
from .devices import register_device as register_device
from .devices import set_device_count as set_device_count
from .devices import unregister_device as unregister_device
from .functions import PYTHON_VALUE as PYTHON_VALUE
from .functions import TRACE_ON_NEW_VALUE as TRACE_ON_NEW_VALUE
from .functions import ConcreteFunction as ConcreteFunction
from .functions import Function as Function
from .functions import case as case
from .functions import cond as cond
from .functions import custom_gradient as custom_gradient
from .functions import do_not_convert as do_not_convert
from .functions import fori_loop as fori_loop
from .functions import function as function
from .functions import graph_function as graph_function
from .functions import map_slices as map_slices
from .functions import numpy_function as numpy_function
from .functions import py_function as py_function
from .functions import scan as scan
from .functions import switch_case as switch_case
from .functions import while_loop as while_loop
from .functions import wrap_function as wrap_function
from .gradients import GradientTape as GradientTape
from .gradients import IndexedSlices as IndexedSlices
from .gradients import grad as grad
from .gradients import gradients as gradients
from .gradients import value_and_grad as value_and_grad
from .graph import DeviceSpec as DeviceSpec
from .graph import DType as DType
from .graph import EagerTensor as EagerTensor
from .graph import Graph as Graph
from .graph import GraphTensor as GraphTensor
from .graph import Operation as Operation
from .graph import Tensor as Tensor
from .graph import TensorShape as TensorShape
from .graph import TensorSpec as TensorSpec
from .graph import as_dtype as as_dtype
from .graph import bfloat16 as bfloat16
from .graph import bool_ as bool_
from .graph import complex64 as complex64
from .graph import complex128 as complex128
from .graph import eager_scope as eager_scope
from .graph import float16 as float16
from .graph import float32 as float32
from .graph import float64 as float64
from .graph import get_default_graph as get_default_graph
from .graph import int8 as int8
from .graph import int16 as int16
from .graph import int32 as int32
from .graph import int64 as int64
from .graph import reset_default_graph as reset_default_graph
from .graph import string as string
from .graph import tensor_like as tensor_like
from .graph import uint8 as uint8
from .graph import uint16 as uint16
from .graph import uint32 as uint32
from .graph import uint64 as uint64
from .graph import unknown_shape as unknown_shape
from .graph.context import add_to_collection as add_to_collection
from .graph.context import colocate_with as colocate_with
from .graph.context import container as container
from .graph.context import control_dependencies as control_dependencies
from .graph.context import get_collection as get_collection
from .graph.context import name_scope as name_scope
from .graph.graphdef import GraphDef as GraphDef
from .io import RecordScanner as RecordScanner
from .io import RecordWriter as RecordWriter
from .io import decode_example as decode_example
from .io import decode_feature_lists as decode_feature_lists
from .io import encode_example as encode_example
from .io import encode_sequence_example as encode_sequence_example
from .io import read_records as read_records
from .late import late
from .ops.array.creation import sequence_mask as sequence_mask
from .ops.array.partition import dynamic_partition as dynamic_partition
from .ops.array.partition import dynamic_stitch as dynamic_stitch
from .ops.array.unique import unique_with_counts as unique_with_counts
from .ops.control.dataflow import close_loop as close_loop
from .ops.control.dataflow import enter as enter
from .ops.control.dataflow import exit_loop as exit_loop
from .ops.control.dataflow import loop_cond as loop_cond
from .ops.control.dataflow import merge as merge
from .ops.control.dataflow import next_iteration as next_iteration
from .ops.control.dataflow import switch as switch
from .ops.core.basic import constant as constant
from .ops.core.basic import group as group
from .ops.core.basic import identity as identity
from .ops.core.basic import no_op as no_op
from .ops.core.basic import placeholder as placeholder
from .ops.core.basic import stop_gradient as stop_gradient
from .ops.core.convert import convert_to_tensor as convert_to_tensor
from .ops.core.graphs import import_graph_def as import_graph_def
from .ops.core.host import host_function as host_function
from .ops.core.placeholders import placeholder_with_default as placeholder_with_default
from .ops.core.registry import OpDef as OpDef
from .ops.core.registry import define as define
from .ops.core.registry import lookup as lookup
from .ops.core.registry import op_names as op_names
from .ops.core.traits import Traits as Traits
from .ops.core.traits import Work as Work
from .ops.io.csv import decode_csv as decode_csv
from .ops.io.files import matching_files as matching_files
from .ops.io.files import read_file as read_file
from .ops.io.image_files import decode_image as decode_image
from .ops.io.image_files import decode_jpeg as decode_jpeg
from .ops.io.image_files import decode_png as decode_png
from .ops.io.image_files import encode_jpeg as encode_jpeg
from .ops.io.image_files import encode_png as encode_png
from .ops.math.add_n import add_n as add_n
from .ops.math.cumulative import cumprod as cumprod
from .ops.math.cumulative import cumsum as cumsum
from .ops.math.cumulative import logcumsumexp as logcumsumexp
from .ops.text.string_match import decode_raw as decode_raw
from .passes import StepGraph as StepGraph
from .passes import pass_names as pass_names
from .passes import register_pass as register_pass
from .passes import run_passes as run_passes
from .passes import unregister_pass as unregister_pass
from .runtime import InteractiveSession as InteractiveSession
from .runtime import Machine as Machine
from .runtime import RunMetadata as RunMetadata
from .runtime import RunOptions as RunOptions
from .runtime import Session as Session
from .runtime import SessionConfig as SessionConfig
from .runtime import get_default_session as get_default_session
from .runtime import register_server_protocol as register_server_protocol
from .runtime import register_session_target as register_session_target
from .state import GraphKeys as GraphKeys
from .state import Variable as Variable
from .state import assign as assign
from .state import assign_add as assign_add
from .state import assign_sub as assign_sub
from .state import count_up_to as count_up_to
from .state import create_global_step as create_global_step
from .state import get_global_step as get_global_step
from .state import global_variables as global_variables
from .state import global_variables_initializer as global_variables_initializer
from .state import local_variables as local_variables
from .state import local_variables_initializer as local_variables_initializer
from .state import model_variables as model_variables
from .state import report_uninitialized_resources as report_uninitialized_resources
from .state import report_uninitialized_variables as report_uninitialized_variables
from .state import scatter_add as scatter_add
from .state import scatter_div as scatter_div
from .state import scatter_max as scatter_max
from .state import scatter_min as scatter_min
from .state import scatter_mul as scatter_mul
from .state import scatter_nd_add as scatter_nd_add
from .state import scatter_nd_max as scatter_nd_max
from .state import scatter_nd_min as scatter_nd_min
from .state import scatter_nd_sub as scatter_nd_sub
from .state import scatter_nd_update as scatter_nd_update
from .state import scatter_sub as scatter_sub
from .state import scatter_update as scatter_update
from .state import trainable_variables as trainable_variables
from .state import variable_creator_scope as variable_creator_scope
from .state import variables_initializer as variables_initializer

if TYPE_CHECKING:
    from . import summary as summary
    from . import training as training
    from .checkpoint import CheckpointReader as CheckpointReader
    from .checkpoint import CheckpointState as CheckpointState
    from .checkpoint import checkpoint_exists as checkpoint_exists
    from .checkpoint import get_checkpoint_state as get_checkpoint_state
    from .checkpoint import latest_checkpoint as latest_checkpoint
    from .checkpoint import list_variables as list_variables
    from .checkpoint import load_checkpoint as load_checkpoint
    from .checkpoint import load_variable as load_variable
    from .saving import BackgroundWriter as BackgroundWriter
    from .saving import Checkpoint as Checkpoint
    from .saving import CheckpointManager as CheckpointManager
    from .saving import MetaGraph as MetaGraph
    from .saving import SaveableObject as SaveableObject
    from .saving import Saver as Saver
    from .saving import SaverDef as SaverDef
    from .saving import SaveSpec as SaveSpec
    from .saving import Signature as Signature
    from .saving import export_meta_graph as export_meta_graph
    from .saving import import_meta_graph as import_meta_graph
    from .saving import register_collection_codec as register_collection_codec
    from .state import AUTO_REUSE as AUTO_REUSE
    from .state import Barrier as Barrier
    from .state import ConditionalAccumulator as ConditionalAccumulator
    from .state import Coordinator as Coordinator
    from .state import FIFOQueue as FIFOQueue
    from .state import FixedLenFeature as FixedLenFeature
    from .state import FixedLengthRecordReader as FixedLengthRecordReader
    from .state import FixedLenSequenceFeature as FixedLenSequenceFeature
    from .state import HashTable as HashTable
    from .state import IdentityReader as IdentityReader
    from .state import KeyValueTensorInitializer as KeyValueTensorInitializer
    from .state import LooperThread as LooperThread
    from .state import MapStagingArea as MapStagingArea
    from .state import MutableHashTable as MutableHashTable
    from .state import Mutex as Mutex
    from .state import PaddingFIFOQueue as PaddingFIFOQueue
    from .state import PartitionedVariable as PartitionedVariable
    from .state import PriorityQueue as PriorityQueue
    from .state import QueueBase as QueueBase
    from .state import QueueRunner as QueueRunner
    from .state import RandomShuffleQueue as RandomShuffleQueue
    from .state import RandomSource as RandomSource
    from .state import ReaderBase as ReaderBase
    from .state import RecordReader as RecordReader
    from .state import SparseConditionalAccumulator as SparseConditionalAccumulator
    from .state import SparseValues as SparseValues
    from .state import Stack as Stack
    from .state import StagingArea as StagingArea
    from .state import TensorArray as TensorArray
    from .state import TextFileInitializer as TextFileInitializer
    from .state import TextLineReader as TextLineReader
    from .state import VariableScope as VariableScope
    from .state import VarLenFeature as VarLenFeature
    from .state import WholeFileReader as WholeFileReader
    from .state import add_queue_runner as add_queue_runner
    from .state import batch as batch
    from .state import batch_join as batch_join
    from .state import bucket as bucket
    from .state import bucket_by_sequence_length as bucket_by_sequence_length
    from .state import get_seed as get_seed
    from .state import get_variable as get_variable
    from .state import get_variable_scope as get_variable_scope
    from .state import input_producer as input_producer
    from .state import limit_epochs as limit_epochs
    from .state import match_filenames_once as match_filenames_once
    from .state import maybe_batch as maybe_batch
    from .state import maybe_batch_join as maybe_batch_join
    from .state import maybe_shuffle_batch as maybe_shuffle_batch
    from .state import maybe_shuffle_batch_join as maybe_shuffle_batch_join
    from .state import no_regularizer as no_regularizer
    from .state import parse_example as parse_example
    from .state import parse_sequence_example as parse_sequence_example
    from .state import parse_single_example as parse_single_example
    from .state import parse_single_sequence_example as parse_single_sequence_example
    from .state import range_input_producer as range_input_producer
    from .state import shuffle_batch as shuffle_batch
    from .state import shuffle_batch_join as shuffle_batch_join
    from .state import slice_input_producer as slice_input_producer
    from .state import start_queue_runners as start_queue_runners
    from .state import string_input_producer as string_input_producer
    from .state import tables_initializer as tables_initializer
    from .state import variable_scope as variable_scope
    from .training import CheckpointSaverHook as CheckpointSaverHook
    from .training import CheckpointSaverListener as CheckpointSaverListener
    from .training import ChiefSessionCreator as ChiefSessionCreator
    from .training import FeedFnHook as FeedFnHook
    from .training import FinalOpsHook as FinalOpsHook
    from .training import GlobalStepWaiterHook as GlobalStepWaiterHook
    from .training import LoggingTensorHook as LoggingTensorHook
    from .training import MonitoredSession as MonitoredSession
    from .training import MonitoredTrainingSession as MonitoredTrainingSession
    from .training import NanLossDuringTrainingError as NanLossDuringTrainingError
    from .training import NanTensorHook as NanTensorHook
    from .training import NeverTriggerTimer as NeverTriggerTimer
    from .training import ProfilerHook as ProfilerHook
    from .training import Scaffold as Scaffold
    from .training import SecondOrStepTimer as SecondOrStepTimer
    from .training import SessionManager as SessionManager
    from .training import SessionRunArgs as SessionRunArgs
    from .training import SessionRunContext as SessionRunContext
    from .training import SessionRunHook as SessionRunHook
    from .training import SessionRunValues as SessionRunValues
    from .training import SingularMonitoredSession as SingularMonitoredSession
    from .training import StepCounterHook as StepCounterHook
    from .training import StopAtStepHook as StopAtStepHook
    from .training import SummarySaverHook as SummarySaverHook
    from .training import Supervisor as Supervisor
    from .training import WorkerSessionCreator as WorkerSessionCreator
    from .training import assert_global_step as assert_global_step
    from .training import basic_train_loop as basic_train_loop
    from .training import get_or_create_global_step as get_or_create_global_step
    from .training import increment_global_step as increment_global_step

# What many programs do without.
__getattr__, __dir__ = late(
    __name__,
    {
        "checkpoint": (
            "CheckpointReader",
            "CheckpointState",
            "checkpoint_exists",
            "get_checkpoint_state",
            "latest_checkpoint",
            "list_variables",
            "load_checkpoint",
            "load_variable",
        ),
        "saving": (
            "BackgroundWriter",
            "Checkpoint",
            "CheckpointManager",
            "MetaGraph",
            "SaveableObject",
            "Saver",
            "SaverDef",
            "SaveSpec",
            "Signature",
            "export_meta_graph",
            "import_meta_graph",
            "register_collection_codec",
        ),
        "state": (
            "AUTO_REUSE",
            "Barrier",
            "ConditionalAccumulator",
            "Coordinator",
            "FIFOQueue",
            "FixedLenFeature",
            "FixedLengthRecordReader",
            "FixedLenSequenceFeature",
            "HashTable",
            "IdentityReader",
            "KeyValueTensorInitializer",
            "LooperThread",
            "MapStagingArea",
            "MutableHashTable",
            "Mutex",
            "PaddingFIFOQueue",
            "PartitionedVariable",
            "PriorityQueue",
            "QueueBase",
            "QueueRunner",
            "RandomShuffleQueue",
            "RandomSource",
            "ReaderBase",
            "RecordReader",
            "SparseConditionalAccumulator",
            "SparseValues",
            "Stack",
            "StagingArea",
            "TensorArray",
            "TextFileInitializer",
            "TextLineReader",
            "VariableScope",
            "VarLenFeature",
            "WholeFileReader",
            "add_queue_runner",
            "batch",
            "batch_join",
            "bucket",
            "bucket_by_sequence_length",
            "get_seed",
            "get_variable",
            "get_variable_scope",
            "input_producer",
            "limit_epochs",
            "match_filenames_once",
            "maybe_batch",
            "maybe_batch_join",
            "maybe_shuffle_batch",
            "maybe_shuffle_batch_join",
            "no_regularizer",
            "parse_example",
            "parse_sequence_example",
            "parse_single_example",
            "parse_single_sequence_example",
            "range_input_producer",
            "shuffle_batch",
            "shuffle_batch_join",
            "slice_input_producer",
            "start_queue_runners",
            "string_input_producer",
            "tables_initializer",
            "variable_scope",
        ),
        "summary": ("summary",),
        "training": (
            "training",
            "CheckpointSaverHook",
            "CheckpointSaverListener",
            "ChiefSessionCreator",
            "FeedFnHook",
            "FinalOpsHook",
            "GlobalStepWaiterHook",
            "LoggingTensorHook",
            "MonitoredSession",
            "MonitoredTrainingSession",
            "NanLossDuringTrainingError",
            "NanTensorHook",
            "NeverTriggerTimer",
            "ProfilerHook",
            "Scaffold",
            "SecondOrStepTimer",
            "SessionManager",
            "SessionRunArgs",
            "SessionRunContext",
            "SessionRunHook",
            "SessionRunValues",
            "SingularMonitoredSession",
            "StepCounterHook",
            "StopAtStepHook",
            "SummarySaverHook",
            "Supervisor",
            "WorkerSessionCreator",
            "assert_global_step",
            "basic_train_loop",
            "get_or_create_global_step",
            "increment_global_step",
        ),
    },
)
