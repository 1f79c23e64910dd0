"""Contractions of any size on generic native kernels: plans for matrix products, convolutions."""

from .conv import plan_conv_forward as plan_conv_forward
from .conv import plan_conv_input_gradient as plan_conv_input_gradient
from .filter_gradient import plan_conv_filter_gradient as plan_conv_filter_gradient
from .gemm import plan_gemm as plan_gemm
from .launch import Buffer as Buffer
from .launch import Code as Code
from .launch import Epilogue as Epilogue
from .launch import Launch as Launch
from .launch import Matrix as Matrix
from .launch import Scratch as Scratch
from .launch import Stream as Stream
from .launch import Word as Word
from .pair_products import plan_pair_products as plan_pair_products
from .pairs import PairUnit as PairUnit
from .tiles import Target as Target
from .window import Convolution as Convolution
