"""Contractions of any size on generic native kernels: plans for matrix products, convolutions."""

from ..ir.launch import Buffer as Buffer
from ..ir.launch import Code as Code
from ..ir.launch import Epilogue as Epilogue
from ..ir.launch import Launch as Launch
from ..ir.launch import Matrix as Matrix
from ..ir.launch import Scratch as Scratch
from ..ir.launch import Stream as Stream
from ..ir.launch import Word as Word
from .bf16.pair_products import plan_pair_products as plan_pair_products
from .bf16.pairs import PairUnit as PairUnit
from .conv.conv import plan_conv_forward as plan_conv_forward
from .conv.conv import plan_conv_input_gradient as plan_conv_input_gradient
from .conv.filter_gradient import plan_conv_filter_gradient as plan_conv_filter_gradient
from .conv.window import Convolution as Convolution
from .gemm.gemm import plan_gemm as plan_gemm
from .gemm.tiles import Target as Target
