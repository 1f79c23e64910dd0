"""What is kept between steps."""

from typing import TYPE_CHECKING

from ..late import late
from .assign import assign as assign
from .assign import assign_add as assign_add
from .assign import assign_sub as assign_sub
from .assign import set_to_zero as set_to_zero
from .autocasting import autocast as autocast
from .collections import GraphKeys as GraphKeys
from .creation import variable_creator_scope as variable_creator_scope
from .initialization import create_global_step as create_global_step
from .initialization import get_global_step as get_global_step
from .initialization import global_variables as global_variables
from .initialization import global_variables_initializer as global_variables_initializer
from .initialization import local_variables as local_variables
from .initialization import local_variables_initializer as local_variables_initializer
from .initialization import model_variables as model_variables
from .initialization import report_uninitialized_resources as report_uninitialized_resources
from .initialization import report_uninitialized_variables as report_uninitialized_variables
from .initialization import trainable_variables as trainable_variables
from .initialization import variables_initializer as variables_initializer
from .rows import RowScope as RowScope
from .scatter import count_up_to as count_up_to
from .scatter import scatter_add as scatter_add
from .scatter import scatter_div as scatter_div
from .scatter import scatter_max as scatter_max
from .scatter import scatter_min as scatter_min
from .scatter import scatter_mul as scatter_mul
from .scatter import scatter_nd_add as scatter_nd_add
from .scatter import scatter_nd_max as scatter_nd_max
from .scatter import scatter_nd_min as scatter_nd_min
from .scatter import scatter_nd_sub as scatter_nd_sub
from .scatter import scatter_nd_update as scatter_nd_update
from .scatter import scatter_sub as scatter_sub
from .scatter import scatter_update as scatter_update
from .stateless import StatelessScope as StatelessScope
from .stateless import current_scope as current_scope
from .variable import Variable as Variable
from .variable import variables_made as variables_made
from .variable_scope import AUTO_REUSE as AUTO_REUSE
from .variable_scope import VariableScope as VariableScope
from .variable_scope import get_variable as get_variable
from .variable_scope import get_variable_scope as get_variable_scope
from .variable_scope import no_regularizer as no_regularizer
from .variable_scope import variable_scope as variable_scope

if TYPE_CHECKING:
    from .accumulators import ConditionalAccumulator as ConditionalAccumulator
    from .accumulators import SparseConditionalAccumulator as SparseConditionalAccumulator
    from .barriers import Barrier as Barrier
    from .batching import batch as batch
    from .batching import batch_join as batch_join
    from .batching import maybe_batch as maybe_batch
    from .batching import maybe_batch_join as maybe_batch_join
    from .batching import maybe_shuffle_batch as maybe_shuffle_batch
    from .batching import maybe_shuffle_batch_join as maybe_shuffle_batch_join
    from .batching import shuffle_batch as shuffle_batch
    from .batching import shuffle_batch_join as shuffle_batch_join
    from .bucketing import bucket as bucket
    from .bucketing import bucket_by_sequence_length as bucket_by_sequence_length
    from .coordinator import Coordinator as Coordinator
    from .coordinator import LooperThread as LooperThread
    from .input import input_producer as input_producer
    from .input import limit_epochs as limit_epochs
    from .input import match_filenames_once as match_filenames_once
    from .input import range_input_producer as range_input_producer
    from .input import slice_input_producer as slice_input_producer
    from .input import string_input_producer as string_input_producer
    from .mutex import Mutex as Mutex
    from .parsing import FixedLenFeature as FixedLenFeature
    from .parsing import FixedLenSequenceFeature as FixedLenSequenceFeature
    from .parsing import SparseValues as SparseValues
    from .parsing import VarLenFeature as VarLenFeature
    from .parsing import parse_example as parse_example
    from .parsing import parse_sequence_example as parse_sequence_example
    from .parsing import parse_single_example as parse_single_example
    from .parsing import parse_single_sequence_example as parse_single_sequence_example
    from .partitioned import PartitionedVariable as PartitionedVariable
    from .queue_runner import QueueRunner as QueueRunner
    from .queue_runner import add_queue_runner as add_queue_runner
    from .queue_runner import start_queue_runners as start_queue_runners
    from .queues import FIFOQueue as FIFOQueue
    from .queues import PaddingFIFOQueue as PaddingFIFOQueue
    from .queues import PriorityQueue as PriorityQueue
    from .queues import QueueBase as QueueBase
    from .queues import RandomShuffleQueue as RandomShuffleQueue
    from .random_source import RandomSource as RandomSource
    from .random_source import get_seed as get_seed
    from .readers import FixedLengthRecordReader as FixedLengthRecordReader
    from .readers import IdentityReader as IdentityReader
    from .readers import ReaderBase as ReaderBase
    from .readers import RecordReader as RecordReader
    from .readers import TextLineReader as TextLineReader
    from .readers import WholeFileReader as WholeFileReader
    from .stack import Stack as Stack
    from .staging import MapStagingArea as MapStagingArea
    from .staging import StagingArea as StagingArea
    from .tables import HashTable as HashTable
    from .tables import KeyValueTensorInitializer as KeyValueTensorInitializer
    from .tables import MutableHashTable as MutableHashTable
    from .tables import TextFileInitializer as TextFileInitializer
    from .tables import tables_initializer as tables_initializer
    from .tensor_array import TensorArray as TensorArray

# What many programs do without.
__getattr__, __dir__ = late(
    __name__,
    {
        "accumulators": (
            "ConditionalAccumulator",
            "SparseConditionalAccumulator",
        ),
        "barriers": ("Barrier",),
        "batching": (
            "batch",
            "batch_join",
            "maybe_batch",
            "maybe_batch_join",
            "maybe_shuffle_batch",
            "maybe_shuffle_batch_join",
            "shuffle_batch",
            "shuffle_batch_join",
        ),
        "bucketing": (
            "bucket",
            "bucket_by_sequence_length",
        ),
        "coordinator": (
            "Coordinator",
            "LooperThread",
        ),
        "input": (
            "input_producer",
            "limit_epochs",
            "match_filenames_once",
            "range_input_producer",
            "slice_input_producer",
            "string_input_producer",
        ),
        "mutex": ("Mutex",),
        "parsing": (
            "FixedLenFeature",
            "FixedLenSequenceFeature",
            "SparseValues",
            "VarLenFeature",
            "parse_example",
            "parse_sequence_example",
            "parse_single_example",
            "parse_single_sequence_example",
        ),
        "partitioned": ("PartitionedVariable",),
        "queue_runner": (
            "QueueRunner",
            "add_queue_runner",
            "start_queue_runners",
        ),
        "queues": (
            "FIFOQueue",
            "PaddingFIFOQueue",
            "PriorityQueue",
            "QueueBase",
            "RandomShuffleQueue",
        ),
        "random_source": (
            "RandomSource",
            "get_seed",
        ),
        "readers": (
            "FixedLengthRecordReader",
            "IdentityReader",
            "ReaderBase",
            "RecordReader",
            "TextLineReader",
            "WholeFileReader",
        ),
        "stack": ("Stack",),
        "staging": (
            "MapStagingArea",
            "StagingArea",
        ),
        "tables": (
            "HashTable",
            "KeyValueTensorInitializer",
            "MutableHashTable",
            "TextFileInitializer",
            "tables_initializer",
        ),
        "tensor_array": ("TensorArray",),
    },
)
