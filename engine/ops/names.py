"""Which module declares which ops: one is loaded when an op of it is looked up by name.

A file of ops has its line here; `tests/engine/ops/test_names.py` says which one is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

# By module, from `laminar.engine` on.
_DECLARED: Mapping[str, str] = {
    "functions.custom_gradient": "CustomGradient",
    "functions.py_function": "PyFunction",
    "ops.array.along": "TakeAlongAxis TakeAlongAxisGrad PutAlongAxis IsLastAlongAxis",
    "ops.array.axes": "Transpose ExpandDims Squeeze",
    "ops.array.blocks": "SpaceToDepth DepthToSpace",
    "ops.array.broadcast": "BroadcastTo SumTo BroadcastToShape SumToShape",
    "ops.array.by_vectors": (
        "TransposeBy SwapAxes TileBy TileSumBy SliceBy UnsliceBy ReductionOrder FrontOrder"
    ),
    "ops.array.creation": "Eye Range LinSpace OneHot",
    "ops.array.diagonal": "DiagPart MatrixDiag BandPart BandPartBy",
    "ops.array.first_occurrence": "FirstOccurrence",
    "ops.array.gather": "Gather GatherGrad GatherNd ScatterNd",
    "ops.array.index": "StridedSlice StridedSliceGrad",
    "ops.array.join": "Concat Split Stack Unstack",
    "ops.array.offsets": "ConcatOffset",
    "ops.array.padding": "Pad PadGrad PadBy PadSumBy",
    "ops.array.partition": "DynamicPartition DynamicStitch",
    "ops.array.points": "GatherPoints ScatterPoints",
    "ops.array.rearrange": "Tile TileGrad Repeat RepeatGrad RepeatIndices Roll",
    "ops.array.scatter": "TensorScatter IsLastWrite",
    "ops.array.search": "ArgWhere NonZero SearchSorted FindSorted",
    "ops.array.segment": "SegmentSum SegmentProd SegmentMax SegmentMin SegmentSpread",
    "ops.array.shape": "Shape Dim Rank Size Reshape ReshapeToShape",
    "ops.array.shares": "Share JoinShares",
    "ops.array.slicing": "Slice SliceUpdate",
    "ops.array.sort": "Sort ArgSort TopK InTopK",
    "ops.array.unique": "Unique UniqueWithCounts",
    "ops.control.dataflow": "Switch Merge Enter Exit NextIteration LoopCond ControlTrigger",
    "ops.control.iterations": "JoinIterations SplitIterations",
    "ops.control.structured": (
        "Case StatefulCase While StatefulWhile Scan StatefulScan StackNew StackPush StackValues "
        "StackItem"
    ),
    "ops.core.barrier": "Barrier",
    "ops.core.basic": "Const Placeholder Identity StopGradient NoOp ZerosLike OnesLike",
    "ops.core.call_frame": "_Arg _Retval",
    "ops.core.checks": "CheckNumerics Assert PreventGradient EnsureShape",
    "ops.core.cluster": "Cluster",
    "ops.core.host": "HostFunction",
    "ops.core.placeholders": "PlaceholderWithDefault",
    "ops.core.printing": "Print",
    "ops.core.raising": "Raise",
    "ops.core.transfer": "Send Recv UpperHalf FromUpperHalf",
    "ops.io.checkpoints": "SaveV2 RestoreV2 ShardedFilenames MergeV2Checkpoints",
    "ops.io.csv": "DecodeCSV",
    "ops.io.compressed": "DecodeCompressed DecodeJsonExample",
    "ops.io.files": "ReadFile WriteFile MatchingFiles ShuffleRows",
    "ops.io.image_files": "DecodeImage EncodeImage",
    "ops.io.image_frames": "DecodeFrames ImageShape IsImage",
    "ops.io.parse": "ParseExample",
    "ops.io.parse_sequences": "ParseSequences ParseSparseLists",
    "ops.io.sparse_rows": "SerializeSparse DeserializeManySparse",
    "ops.io.summaries": (
        "ScalarSummary HistogramSummary ImageSummary AudioSummary TextSummary MergeSummary "
        "WriteSummary"
    ),
    "ops.linalg.byte_matmul": "ByteMatMul",
    "ops.linalg.decompositions": "Cholesky Qr Eigh Eig Svd SingularValues",
    "ops.linalg.einsum": "Einsum",
    "ops.linalg.few_bits_matmul": "FewBitsMatMul",
    "ops.linalg.lu": "Lu",
    "ops.linalg.matmul": "MatMul",
    "ops.linalg.matrix_functions": "MatrixSquareRoot MatrixLogarithm",
    "ops.linalg.products": "Cross",
    "ops.linalg.solve": (
        "MatrixInverse MatrixDeterminant LogDeterminant Solve TriangularSolve PseudoInverse"
    ),
    "ops.math.add_n": "AddN",
    "ops.math.arithmetic": (
        "Add Sub Mul Div FloorDiv FloorMod TruncMod Maximum Minimum Neg Abs Sign Floor Ceil "
        "Round Trunc Square Reciprocal Conj"
    ),
    "ops.math.bessel_scaled": "BesselIe",
    "ops.math.bits": "Bitcast",
    "ops.math.cast": "Cast",
    "ops.math.compare": (
        "Equal NotEqual Less LessEqual Greater GreaterEqual LogicalAnd LogicalOr LogicalXor "
        "LogicalNot BitwiseAnd BitwiseOr BitwiseXor BitwiseNot LeftShift RightShift IsNan IsInf "
        "IsFinite Where"
    ),
    "ops.math.complex_numbers": "Real Imag Complex ComplexAbs Angle ViewAsReal ViewAsComplex",
    "ops.math.cumulative": "Shift LinearRecurrence Cumsum Cumprod LogCumsumExp",
    "ops.math.elementary": (
        "Sqrt Rsqrt Cbrt Pow Exp Exp2 Expm1 Log Log1p Log2 Log10 LogAddExp LogAddExp2 Xlogy "
        "Xdivy DivNoNan MulNoNan Sin Cos Tan Asin Acos Atan Atan2 RootQuotient Hypot Sinh Cosh "
        "Tanh Asinh Acosh Atanh Sigmoid Sinc Erf Erfc Erfinv Lgamma Digamma Polygamma BesselI"
    ),
    "ops.math.fft": "Fft Rfft Irfft",
    "ops.math.incomplete_beta": "Betainc BetaincGradA",
    "ops.math.incomplete_gamma": "Igamma Igammac IgammaGradA IgammaBendA",
    "ops.math.normal_quantile": "Ndtri",
    "ops.math.numbers": (
        "CopySign SignBit NextAfter NextAfterHalf Heaviside Gcd Lcm ClipByValue NanToNum Ldexp"
    ),
    "ops.math.reduce": (
        "KeptShape Sum Mean Variance Prod Max Min All Any LogSumExp EuclideanNorm CountNonzero "
        "ArgMax ArgMin"
    ),
    "ops.math.zeta": "Zeta ZetaSlope PolygammaOf",
    "ops.nn.activations": (
        "ReluGrad Relu Relu6Grad Relu6 HardTanhGrad HardTanh HardSigmoidGrad HardSigmoid "
        "SparseSigmoidGrad SparseSigmoid LeakyReluGrad LeakyRelu HardShrinkGrad HardShrink "
        "SoftShrinkGrad SoftShrink ThresholdGrad Threshold EluGrad Elu CeluGrad Celu SeluGrad "
        "Selu SoftplusGrad Softplus LogSigmoidGrad LogSigmoid SoftsignGrad Softsign "
        "TanhShrinkGrad TanhShrink SiluGrad Silu GeluGrad Gelu SquareplusGrad Squareplus "
        "HardSiluGrad HardSilu SparsePlusGrad SparsePlus"
    ),
    "ops.nn.adaptive_pooling": "AdaptiveMaxPool AdaptiveMaxPoolGrad AdaptiveMaxPoolPick",
    "ops.nn.conv_transpose": "ConvTranspose",
    "ops.nn.convolution": "Conv ConvInputGrad ConvKernelGrad",
    "ops.nn.ctc": "CtcLoss",
    "ops.nn.ctc_beam": "CtcBeamSearch",
    "ops.nn.depthwise": "DepthwiseConv DepthwiseInputGrad DepthwiseKernelGrad",
    "ops.nn.dropout": "Dropout",
    "ops.nn.losses": (
        "SparseSoftmaxCrossEntropy SparseSoftmaxCrossEntropyGrad CheckLabels "
        "SoftmaxCrossEntropy SigmoidCrossEntropy"
    ),
    "ops.nn.normalize": "Normalize NormalizeGrad RMSNorm",
    "ops.nn.pooling": "MaxPool MaxPoolGrad MaxPoolPick AvgPool AvgPoolGrad",
    "ops.nn.resample": "Resample ResampleGrad",
    "ops.nn.softmax": "Softmax LogSoftmax",
    "ops.ragged.ragged_rows": "RaggedRange CheckRows",
    "ops.random.boxes": "SampleDistortedBox",
    "ops.random.candidates": "CandidateSampler",
    "ops.random.draws": (
        "RandomUniform RandomNormal RandomTruncatedNormal RandomInt RandomBernoulli RandomGamma "
        "RandomBeta RandomBinomial RandomPoisson RandomCategorical RandomShuffle"
    ),
    "ops.random.random_state": "RandomAdvance RandomFold",
    "ops.random.source": "RandomGenerator RandomNext",
    "ops.sparse.sparse_cwise": "SparseBroadcast",
    "ops.sparse.sparse_dense": "SparseToDense",
    "ops.sparse.sparse_matmul": "SparseMatMul",
    "ops.sparse.sparse_reduce": "SparseReduce SparseReduceSparse",
    "ops.sparse.sparse_retention": "SparseResetShape SparseFillRows SparseGroups SparseUnion",
    "ops.sparse.sparse_sets": "SparseSets SparseSetSize",
    "ops.sparse.sparse_structure": "SparseOrder SparseReshape SparseConcat SparseSlice SparsePiece",
    "ops.state.accumulator": (
        "ConditionalAccumulator SparseConditionalAccumulator AccumulatorApplyGradient "
        "AccumulatorApplyRows AccumulatorTakeGradient AccumulatorTakeRows "
        "AccumulatorNumAccumulated AccumulatorSetGlobalStep AccumulatorReset AccumulatorLeave"
    ),
    "ops.state.contents": "ResourceState SetResourceState",
    "ops.state.keyed_barrier": (
        "KeyedBarrier BarrierInsertMany BarrierTakeMany BarrierClose BarrierReadySize "
        "BarrierIncompleteSize"
    ),
    "ops.state.kept_tensors": "GetSessionHandle GetSessionTensor DeleteSessionTensor",
    "ops.state.mutex": "Mutex MutexAcquire MutexRelease MutexIsHeld",
    "ops.state.queue": (
        "FIFOQueue PaddingFIFOQueue RandomShuffleQueue PriorityQueue QueueEnqueue "
        "QueueEnqueueMany QueueEnqueueKept QueueDequeue QueueDequeueMany QueueDequeueUpTo "
        "QueueClose QueueIsClosed QueueSize"
    ),
    "ops.state.reader": (
        "Reader ReaderRead ReaderReadUpTo ReaderReset ReaderNumRecordsProduced "
        "ReaderNumWorkUnitsCompleted"
    ),
    "ops.state.tensor_list": (
        "TensorList TensorListPush TensorListPop TensorListReserve TensorListFrom TensorListLength "
        "TensorListGet TensorListSet TensorListStack TensorListResize TensorListZeros TensorListAdd"
    ),
    "ops.state.record_input": "RecordInput",
    "ops.state.stack": "TensorStack TensorStackPush TensorStackPop TensorStackClose",
    "ops.state.staging": (
        "StagingArea StagePut StageGet StagePeek MapStagingArea MapStagePut MapStageGet "
        "StageSize StageIncompleteSize StageClear"
    ),
    "ops.state.table": (
        "HashTable TableInitialize TableInitializeFromFile TableFind TableInsert TableRemove "
        "TableExport TableSize"
    ),
    "ops.state.tensor_array": (
        "TensorArray TensorArrayGrad TensorArrayWrite TensorArrayRead TensorArrayGather "
        "TensorArrayScatter TensorArrayConcat TensorArraySplit TensorArraySize TensorArrayClose"
    ),
    "ops.state.variable": (
        "VarHandle LocalVariable ReadVariable IsInitialized InitializedValue EnsureInitialized "
        "Assign AssignAdd AssignSub"
    ),
    "ops.state.variable_rows": "AssignRows",
    "ops.state.variable_scatter": "VariableScatter CountUpTo RaiseNumber",
    "ops.text.encodings": "UnicodeTranscode EncodeBase64 DecodeBase64",
    "ops.text.farmhash": "StringFingerprint FingerprintCat FingerprintBucket",
    "ops.text.formatting": "StringFormat UnsortedSegmentJoin",
    "ops.text.siphash": "StringToHashBucketStrong",
    "ops.text.string": (
        "StringLength StringConcat StringJoin StringLower StringUpper StringStrip StringSplit "
        "Substr StringToNumber AsString"
    ),
    "ops.text.string_match": "RegexFullMatch RegexReplace StringToHashBucket DecodeRaw EncodeRaw",
    "ops.text.tokens": "StringCharacters StringNGrams",
    "ops.text.unicode": "UnicodeDecode UnicodeEncode RowNGrams",
    "state.initialization": "ReportUninitialized",
}
# The names of the whitepaper of 2015, table 1 (arXiv:1603.04467), where ops have others here.
ALIASES: Mapping[str, str] = {
    "Constant": "Const",
    "Convolution2D": "Conv",
    "Dequeue": "QueueDequeue",
    "Enqueue": "QueueEnqueue",
    "Leave": "Exit",
    "ReLU": "Relu",
    "Restore": "RestoreV2",
    "Save": "SaveV2",
    "Shuffle": "RandomShuffle",
    "SoftMax": "Softmax",
    "Variable": "VarHandle",
}
_MODULES = {name: module for module, names in _DECLARED.items() for name in names.split()}


def module_of(type: str) -> str | None:
    """The full name of the module that declares an op of laminar's; None for others."""
    module = _MODULES.get(type)
    return None if module is None else f"laminar.engine.{module}"


def declared_names() -> Collection[str]:
    """The names of laminar's own ops."""
    return _MODULES.keys()
