"""Layers: the parts that models are made of."""

from laminar.registration import list_builtins

from . import op_layers as op_layers
from .activation import ELU as ELU
from .activation import Activation as Activation
from .activation import LeakyReLU as LeakyReLU
from .activation import PReLU as PReLU
from .activation import ReLU as ReLU
from .activation import Softmax as Softmax
from .attention import AdditiveAttention as AdditiveAttention
from .attention import Attention as Attention
from .augmentation_policies import AugMix as AugMix
from .augmentation_policies import RandAugment as RandAugment
from .batch_normalization import BatchNormalization as BatchNormalization
from .bidirectional import Bidirectional as Bidirectional
from .bounding_boxes import MaxNumBoundingBoxes as MaxNumBoundingBoxes
from .category_encoding import CategoryEncoding as CategoryEncoding
from .conv_lstm import ConvLSTM1D as ConvLSTM1D
from .conv_lstm import ConvLSTM2D as ConvLSTM2D
from .conv_lstm import ConvLSTM3D as ConvLSTM3D
from .convolution import Conv1D as Conv1D
from .convolution import Conv2D as Conv2D
from .convolution import Conv3D as Conv3D
from .convolution_transpose import Conv1DTranspose as Conv1DTranspose
from .convolution_transpose import Conv2DTranspose as Conv2DTranspose
from .convolution_transpose import Conv3DTranspose as Conv3DTranspose
from .dense import Dense as Dense
from .depthwise_convolution import DepthwiseConv1D as DepthwiseConv1D
from .depthwise_convolution import DepthwiseConv2D as DepthwiseConv2D
from .discretization import Discretization as Discretization
from .dropout import AlphaDropout as AlphaDropout
from .dropout import Dropout as Dropout
from .dropout import GaussianDropout as GaussianDropout
from .dropout import GaussianNoise as GaussianNoise
from .dropout import SpatialDropout1D as SpatialDropout1D
from .dropout import SpatialDropout2D as SpatialDropout2D
from .dropout import SpatialDropout3D as SpatialDropout3D
from .einsum_dense import EinsumDense as EinsumDense
from .embedding import Embedding as Embedding
from .function_layer import Lambda as Lambda
from .global_pooling import AdaptiveAveragePooling1D as AdaptiveAveragePooling1D
from .global_pooling import AdaptiveAveragePooling2D as AdaptiveAveragePooling2D
from .global_pooling import AdaptiveAveragePooling3D as AdaptiveAveragePooling3D
from .global_pooling import AdaptiveMaxPooling1D as AdaptiveMaxPooling1D
from .global_pooling import AdaptiveMaxPooling2D as AdaptiveMaxPooling2D
from .global_pooling import AdaptiveMaxPooling3D as AdaptiveMaxPooling3D
from .global_pooling import GlobalAveragePooling1D as GlobalAveragePooling1D
from .global_pooling import GlobalAveragePooling2D as GlobalAveragePooling2D
from .global_pooling import GlobalAveragePooling3D as GlobalAveragePooling3D
from .global_pooling import GlobalMaxPooling1D as GlobalMaxPooling1D
from .global_pooling import GlobalMaxPooling2D as GlobalMaxPooling2D
from .global_pooling import GlobalMaxPooling3D as GlobalMaxPooling3D
from .group_normalization import GroupNormalization as GroupNormalization
from .grouped_query_attention import GroupQueryAttention as GroupQueryAttention
from .gru import GRU as GRU
from .gru import GRUCell as GRUCell
from .hashing import HashedCrossing as HashedCrossing
from .hashing import Hashing as Hashing
from .histograms import AutoContrast as AutoContrast
from .histograms import (
    ContrastLimitedAdaptiveHistogramEqualization as ContrastLimitedAdaptiveHistogramEqualization,
)
from .histograms import Equalization as Equalization
from .identity import ActivityRegularization as ActivityRegularization
from .identity import Identity as Identity
from .identity import Masking as Masking
from .image_mixing import CutMix as CutMix
from .image_mixing import MixUp as MixUp
from .image_mixing import RandomErasing as RandomErasing
from .input import Input as Input
from .input import InputLayer as InputLayer
from .input_spec import InputSpec as InputSpec
from .joining import Concatenate as Concatenate
from .joining import Dot as Dot
from .joining import concatenate as concatenate
from .joining import dot as dot
from .layer import Layer as Layer
from .layer_normalization import LayerNormalization as LayerNormalization
from .layer_normalization import RMSNormalization as RMSNormalization
from .layer_normalization import UnitNormalization as UnitNormalization
from .loading import deserialize as deserialize
from .loading import serialize as serialize
from .lookup import IntegerLookup as IntegerLookup
from .lookup import StringLookup as StringLookup
from .lstm import LSTM as LSTM
from .lstm import LSTMCell as LSTMCell
from .merging import Add as Add
from .merging import Average as Average
from .merging import Maximum as Maximum
from .merging import Minimum as Minimum
from .merging import Multiply as Multiply
from .merging import Subtract as Subtract
from .merging import add as add
from .merging import average as average
from .merging import maximum as maximum
from .merging import minimum as minimum
from .merging import multiply as multiply
from .merging import subtract as subtract
from .multi_head_attention import MultiHeadAttention as MultiHeadAttention
from .normalization import Normalization as Normalization
from .padding_cropping import Cropping1D as Cropping1D
from .padding_cropping import Cropping2D as Cropping2D
from .padding_cropping import Cropping3D as Cropping3D
from .padding_cropping import ZeroPadding1D as ZeroPadding1D
from .padding_cropping import ZeroPadding2D as ZeroPadding2D
from .padding_cropping import ZeroPadding3D as ZeroPadding3D
from .pipeline import Pipeline as Pipeline
from .pooling import AveragePooling1D as AveragePooling1D
from .pooling import AveragePooling2D as AveragePooling2D
from .pooling import AveragePooling3D as AveragePooling3D
from .pooling import MaxPooling1D as MaxPooling1D
from .pooling import MaxPooling2D as MaxPooling2D
from .pooling import MaxPooling3D as MaxPooling3D
from .random_color import RandomBrightness as RandomBrightness
from .random_color import RandomColorDegeneration as RandomColorDegeneration
from .random_color import RandomColorJitter as RandomColorJitter
from .random_color import RandomContrast as RandomContrast
from .random_color import RandomGrayscale as RandomGrayscale
from .random_color import RandomHue as RandomHue
from .random_color import RandomInvert as RandomInvert
from .random_color import RandomSaturation as RandomSaturation
from .random_geometry import RandomFlip as RandomFlip
from .random_geometry import RandomRotation as RandomRotation
from .random_geometry import RandomShear as RandomShear
from .random_geometry import RandomTranslation as RandomTranslation
from .random_geometry import RandomZoom as RandomZoom
from .random_tones import RandomGaussianBlur as RandomGaussianBlur
from .random_tones import RandomPosterization as RandomPosterization
from .random_tones import RandomSharpness as RandomSharpness
from .random_tones import Solarization as Solarization
from .random_warping import RandomElasticTransform as RandomElasticTransform
from .random_warping import RandomPerspective as RandomPerspective
from .recurrent import RNN as RNN
from .rescaling import Rescaling as Rescaling
from .reshaping import Flatten as Flatten
from .reshaping import Permute as Permute
from .reshaping import RepeatVector as RepeatVector
from .reshaping import Reshape as Reshape
from .resizing import CenterCrop as CenterCrop
from .resizing import RandomCrop as RandomCrop
from .resizing import Resizing as Resizing
from .reversible_embedding import ReversibleEmbedding as ReversibleEmbedding
from .separable_convolution import SeparableConv1D as SeparableConv1D
from .separable_convolution import SeparableConv2D as SeparableConv2D
from .simple_rnn import SimpleRNN as SimpleRNN
from .simple_rnn import SimpleRNNCell as SimpleRNNCell
from .spectral_normalization import SpectralNormalization as SpectralNormalization
from .spectrogram import MelSpectrogram as MelSpectrogram
from .spectrogram import STFTSpectrogram as STFTSpectrogram
from .stacked_cells import StackedRNNCells as StackedRNNCells
from .symbolic import KerasTensor as KerasTensor
from .text_vectorization import TextVectorization as TextVectorization
from .time_distributed import TimeDistributed as TimeDistributed
from .upsampling import UpSampling1D as UpSampling1D
from .upsampling import UpSampling2D as UpSampling2D
from .upsampling import UpSampling3D as UpSampling3D
from .wrapper import Wrapper as Wrapper

# Other names that Keras has for them.
AvgPool1D = AveragePooling1D
AvgPool2D = AveragePooling2D
AvgPool3D = AveragePooling3D
Convolution1D = Conv1D
Convolution1DTranspose = Conv1DTranspose
Convolution2D = Conv2D
Convolution2DTranspose = Conv2DTranspose
Convolution3D = Conv3D
Convolution3DTranspose = Conv3DTranspose
GlobalAvgPool1D = GlobalAveragePooling1D
GlobalAvgPool2D = GlobalAveragePooling2D
GlobalAvgPool3D = GlobalAveragePooling3D
GlobalMaxPool1D = GlobalMaxPooling1D
GlobalMaxPool2D = GlobalMaxPooling2D
GlobalMaxPool3D = GlobalMaxPooling3D
MaxPool1D = MaxPooling1D
MaxPool2D = MaxPooling2D
MaxPool3D = MaxPooling3D
SeparableConvolution1D = SeparableConv1D
SeparableConvolution2D = SeparableConv2D

# What files may name: the classes, and the functions that a Lambda may apply.
_CLASSES = {
    name: value
    for name, value in globals().items()
    if isinstance(value, type) and issubclass(value, Layer)
}
_FUNCTIONS = (add, average, concatenate, dot, maximum, minimum, multiply, subtract)
list_builtins("keras.layers", {**_CLASSES, **{each.__name__: each for each in _FUNCTIONS}})
