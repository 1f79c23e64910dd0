"""Contractions of any size on generic native kernels: plans for matrix products, convolutions."""

from ..ir.kernel_target import Target as Target
from ..ir.launch import Buffer as Buffer
from ..ir.launch import Epilogue as Epilogue
from ..ir.launch import Launch as Launch
from ..ir.launch import Matrix as Matrix
from ..ir.launch import Scratch as Scratch
from ..ir.launch import Stream as Stream
from ..ir.launch import Word as Word
from ..target.bfloat16_unit import PairUnit as PairUnit
from ..target.code import Code as Code
from .bf16.pair_products import plan_pair_products as plan_pair_products
from .conv.conv import plan_conv_forward as plan_conv_forward
from .conv.conv import plan_conv_input_gradient as plan_conv_input_gradient
from .conv.filter_gradient import plan_conv_filter_gradient as plan_conv_filter_gradient
from .conv.window import Convolution as Convolution
from .gemm.gemm import plan_gemm as plan_gemm
